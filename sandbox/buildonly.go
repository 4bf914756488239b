//go:build unix

package main

import (
	"context"
	"errors"
	"os"

	"github.com/anykind/anykind/sandbox/sandbox"
)

func buildOnly(ctx context.Context, args []string) error {
	var opts sandbox.Options
	flags := newFlags("build", "[flags]", "Builds what up and exec need with the same flags, and starts nothing.")
	clusterFlags(flags, &opts)
	if err := errors.Join(parse(flags, args), noArguments(flags)); err != nil {
		return err
	}
	opts.Progress = os.Stderr
	return sandbox.Build(ctx, &opts)
}
