package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/anykind/anykind/stream"
)

// copyFiles copies files and folders to or from a pod; POD:PATH is in the pod.
func copyFiles(ctx context.Context, p *pod, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: pod cp FROM TO, one of them POD:PATH")
	}
	opts := &stream.CopyOptions{Container: p.container, OnProgress: func(now stream.CopyProgress) {
		if now.Done == now.Size {
			fmt.Fprintf(p.err, "%s (%d bytes)\n", now.Path, now.Size)
		}
	}}
	if name, path, remote := strings.Cut(args[0], ":"); remote {
		return stream.CopyFrom(ctx, p.pods, name, path, args[1], opts)
	}
	name, path, remote := strings.Cut(args[1], ":")
	if !remote {
		return errors.New("usage: pod cp FROM TO, one of them POD:PATH")
	}
	return stream.CopyTo(ctx, p.pods, name, args[0], path, opts)
}
