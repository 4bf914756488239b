package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// command is a program with its working directory and additional environment variables.
type command struct {
	dir  string
	env  []string
	name string
	args []string
}

// output runs a command and returns its standard output without the last line break. Its error includes stdout and stderr.
func output(ctx context.Context, c command) (string, error) {
	cmd := exec.CommandContext(ctx, c.name, c.args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), c.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s in %s: %w\n%s%s", c.name, strings.Join(c.args, " "), c.dir, err, stdout.String(), stderr.String())
	}
	return strings.TrimSuffix(stdout.String(), "\n"), nil
}

// git runs git in a folder.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	return output(ctx, command{dir: dir, name: "git", args: args})
}
