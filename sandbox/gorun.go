//go:build unix

package main

import (
	"context"
	"os"
	"regexp"
	"time"
)

// goRunPath is where go run puts a program: in its build cache since Go 1.24, and
// in a temporary folder when it cannot.
var goRunPath = regexp.MustCompile(`/[0-9a-f]{2}/[0-9a-f]{64}-d/[^/]+$|/go-build\d+/b\d+/exe/[^/]+$`)

// endWithGoRun returns a context that also ends when `go run` does, if that is
// what runs this program: go run does not pass SIGTERM on, its death is all we
// notice.
func endWithGoRun(ctx context.Context) context.Context {
	path, err := os.Executable()
	if err != nil || !goRunPath.MatchString(path) {
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
