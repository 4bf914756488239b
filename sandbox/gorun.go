//go:build unix

package main

import (
	"context"
	"os"
	"strings"
	"time"
)

// endWithGoRun returns a context that also ends when `go run` does, if that is
// what runs this program: go run does not pass SIGTERM on, its death is all we
// notice.
func endWithGoRun(ctx context.Context) context.Context {
	path, err := os.Executable()
	if err != nil || !strings.Contains(path, "/go-build") || !strings.Contains(path, "/exe/") {
		return ctx
	}
	if len(os.Args) > 1 && os.Args[1] == superviseCommand {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	parent := os.Getppid()
	go func() {
		ticker := time.NewTicker(250 * time.Millisecond)
		defer ticker.Stop()
		for range ticker.C {
			if os.Getppid() != parent {
				cancel()
				return
			}
		}
	}()
	return ctx
}
