//go:build unix

package cluster

import (
	"context"
	"os"
	"path/filepath"

	"github.com/anykind/anykind/sandbox/internal/progress"
)

// Link builds the programs of Start for the same options and creates links to them in dir, each named after its component: etcd,
// kube-apiserver, kubectl. controller-runtime's envtest expects this layout in KUBEBUILDER_ASSETS. Links of an earlier call are
// replaced.
func Link(ctx context.Context, opts *Options, dir string) error {
	o, err := opts.Complete()
	if err != nil {
		return err
	}
	cache, err := o.build(ctx, progress.New(o.Progress))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, component := range o.Components {
		if err := replaceLink(cache.Path(o.binary(component)), filepath.Join(dir, string(component))); err != nil {
			return err
		}
	}
	return nil
}

// replaceLink creates or atomically replaces the link at path: it may be in use.
func replaceLink(target, path string) error {
	scratch, err := os.MkdirTemp(filepath.Dir(path), ".link-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	link := filepath.Join(scratch, filepath.Base(path))
	if err := os.Symlink(target, link); err != nil {
		return err
	}
	return os.Rename(link, path)
}
