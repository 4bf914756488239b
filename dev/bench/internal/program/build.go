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
	"testing"
)

// Build builds a package to a program with additional arguments of go build. In a test it builds as the test was built, because the
// dependencies are then already compiled. folder is the folder of the package's module, "" for this module.
func Build(ctx context.Context, folder, pkg, program string, args, env []string) error {
	if testing.Testing() {
		args = nil
		env = nil
		if hasRaceDetector() {
			args = []string{"-race"}
		}
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
