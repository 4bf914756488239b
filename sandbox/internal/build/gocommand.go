//go:build unix

package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/anykind/anykind/sandbox/internal/process"
)

// goInterruptGrace limits the time for an interrupted go command to remove its temporary folder.
const goInterruptGrace = 5 * time.Second

// maxErrorLines limits the lines of a failed command's output in an error.
const maxErrorLines = 20

// goCommand runs the user's go command in dir as part of family and returns its standard output, even on failure. If ctx ends, it
// returns after the command and its children have exited.
func goCommand(ctx context.Context, family *process.Family, dir, scratch string, args ...string) ([]byte, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return nil, fmt.Errorf("find the go command, which builds Kubernetes: %w (install Go 1.26 or newer, https://go.dev/dl, and put it on PATH)", err)
	}
	stdout, err := os.CreateTemp(scratch, "stdout")
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	stderr, err := os.CreateTemp(scratch, "stderr")
	if err != nil {
		return nil, err
	}
	defer stderr.Close()

	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Env = goEnvironment(dir, scratch)
	cmd.Stdout = stdout
	cmd.Stderr = stderr
	p, err := family.Start(cmd)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Stop(context.WithoutCancel(ctx), syscall.SIGINT, goInterruptGrace)
		return nil, ctx.Err()
	}
	output, readErr := os.ReadFile(stdout.Name())
	if err := p.Err(); err != nil {
		message, _ := os.ReadFile(stderr.Name())
		return output, &goError{args: args, err: err, output: lastLines(append(message, output...), maxErrorLines)}
	}
	return output, readErr
}

// goEnvironment returns the user's environment without settings that change the build. Proxy and toolchain settings stay.
func goEnvironment(dir, scratch string) []string {
	return append(os.Environ(),
		"GOFLAGS=-mod=mod", // not empty: an empty value would use the setting of `go env -w`
		"GOWORK=off", "GO111MODULE=on", "CGO_ENABLED=0",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH,
		"GOTMPDIR="+scratch, "PWD="+dir,
	)
}

type goError struct {
	args   []string
	err    error
	output string
}

func (e *goError) Error() string {
	verb := e.args[0]
	if verb == "mod" {
		verb += " " + e.args[1]
	}
	var exit *exec.ExitError
	if errors.As(e.err, &exit) && e.output != "" {
		return fmt.Sprintf("go %s: %v:\n%s", verb, e.err, e.output)
	}
	return fmt.Sprintf("go %s: %v", verb, e.err)
}

func (e *goError) Unwrap() error { return e.err }

func lastLines(text []byte, n int) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return string(bytes.Join(lines, []byte("\n")))
}

// downloaded is the output of `go mod download -json`.
type downloaded struct {
	Dir, GoMod, Error string
}

// folder returns a path in the module's folder in the module cache.
func (d downloaded) folder(elem ...string) string {
	return filepath.Join(append([]string{d.Dir}, elem...)...)
}
