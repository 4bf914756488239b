//go:build unix

// Package program builds the programs of the benchmarks.
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

// Build builds a package to a program with additional arguments of go build. It uses the race detector if this program has it:
// the dependencies are then already compiled for a test. folder is the folder of the package's module, "" for this module.
func Build(ctx context.Context, folder, pkg, program string, args, env []string) error {
	if hasRaceDetector() {
		args = []string{"-race"}
		env = nil
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
