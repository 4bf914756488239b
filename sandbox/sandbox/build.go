//go:build unix

package sandbox

import (
	"context"

	"github.com/anykind/anykind/sandbox/internal/build"
	"github.com/anykind/anykind/sandbox/internal/progress"
)

// Build builds what Start would with the same options, and starts nothing.
func Build(ctx context.Context, opts *Options) error {
	o, err := opts.Complete()
	if err != nil {
		return err
	}
	_, err = o.build(ctx, progress.New(o.Progress))
	return err
}

func (o *Options) build(ctx context.Context, report *progress.Report) (*build.Cache, error) {
	cache, err := build.OpenCache(o.CacheDir)
	if err != nil {
		return nil, err
	}
	var binaries []build.Binary
	for _, c := range o.Components {
		binaries = append(binaries, o.binary(c))
	}
	return cache, cache.Build(ctx, report, binaries...)
}
