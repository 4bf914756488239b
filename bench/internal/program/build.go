//go:build unix

// Package program builds the programs that the benchmarks run.
package program

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
)

// Build builds a package to a program with more arguments of go build, and with the race detector if this program has it: a
// test that was compiled for it has the dependencies compiled already. folder is that of the package's module, "" for this one.
func Build(ctx context.Context, folder, pkg, program string, args, env []string) error {
	if hasRaceDetector() {
		args, env = []string{"-race"}, nil
	}
	command := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-C", cmp.Or(folder, "."), "-o", program}, args, []string{pkg})...)
	command.Env = append(os.Environ(), env...)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, output)
	}
	return nil
}

func hasRaceDetector() bool {
	info, found := debug.ReadBuildInfo()
	return found && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
