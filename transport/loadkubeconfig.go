package transport

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/anykind/anykind/transport/kubeconfig"
)

// fromKubeconfig reads the kubeconfig files and takes one context.
func (p *places) fromKubeconfig(opts *LoadOptions) (*Config, error) {
	file, from, err := p.kubeconfig(opts.Path)
	if err != nil {
		return nil, err
	}
	if opts.Path == "" && len(file.Contexts) == 0 && len(file.Clusters) == 0 {
		return nil, absent("%s: nothing in it", from)
	}
	resolved, err := file.Resolve(&kubeconfig.ResolveOptions{Context: opts.Context, Cluster: opts.Cluster, User: opts.User})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	cfg := configOf(resolved)
	if resolved.User.AuthProvider != nil {
		if cfg.OIDC, err = oidcOf(resolved); err != nil {
			return nil, fmt.Errorf("%s: user %q: %w", from, resolved.UserName, err)
		}
	}
	return cfg, nil
}

// kubeconfig reads the one file, or those that count where there is none, and says where they came from.
func (p *places) kubeconfig(path string) (*kubeconfig.File, string, error) {
	if path != "" {
		file, err := kubeconfig.Read(path)
		return file, path, err
	}
	if list := p.env("KUBECONFIG"); list != "" {
		file, err := readList(filepath.SplitList(list))
		if errors.Is(err, fs.ErrNotExist) {
			// Not absent: a typing error must not lead to another cluster.
			return nil, "", fmt.Errorf("KUBECONFIG=%s: none of its files exists (correct it, or unset it to look elsewhere): %w", list, fs.ErrNotExist)
		}
		if err != nil {
			return nil, "", fmt.Errorf("KUBECONFIG=%s: %w", list, err)
		}
		return file, "KUBECONFIG=" + list, nil
	}
	home, err := p.home()
	if err != nil {
		return nil, "", absent("KUBECONFIG is not set, and there is no home directory to hold .kube/config: %w", err)
	}
	path = filepath.Join(home, ".kube", "config")
	file, err := kubeconfig.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", absent("KUBECONFIG is not set, and there is no %s", path)
	case err != nil:
		return nil, "", err
	}
	return file, path, nil
}

// readList merges the files of a KUBECONFIG list; the missing ones do not count, unless all are.
func readList(paths []string) (*kubeconfig.File, error) {
	var files []*kubeconfig.File
	for _, path := range paths {
		if path == "" {
			continue
		}
		file, err := kubeconfig.Read(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, fs.ErrNotExist
	}
	return kubeconfig.Merge(files...), nil
}
