package transport

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anykind/anykind/transport/kubeconfig"
)

// LoadOptions says where [Load] looks and which context it takes.
type LoadOptions struct {
	// Path is the one kubeconfig file to read. It must exist. "" looks in the places Load names.
	Path string
	// Context is the context to use; "" means the file's current-context.
	Context string
}

// Load finds a [Config] as kubectl finds it, in this order: opts.Path; else the files that KUBECONFIG lists, merged,
// those that do not exist skipped; else ~/.kube/config. nil opts mean defaults. When nothing can be used the error
// says of each place why. It reads files only: no request is made.
func Load(opts *LoadOptions) (*Config, error) {
	if opts == nil {
		opts = &LoadOptions{}
	}
	file, from, err := loadFile(opts.Path)
	if err != nil {
		return nil, fmt.Errorf("find a cluster to connect to: %w", err)
	}
	resolved, err := file.Resolve(opts.Context)
	if err != nil {
		return nil, fmt.Errorf("find a cluster to connect to: %s: %w", from, err)
	}
	config, err := fromKubeconfig(resolved)
	if err != nil {
		return nil, fmt.Errorf("find a cluster to connect to: %s: context %q: %w", from, resolved.Context, err)
	}
	return config, nil
}

// loadFile reads the kubeconfig and says where it came from.
func loadFile(path string) (*kubeconfig.File, string, error) {
	if path != "" {
		file, err := kubeconfig.Read(path)
		return file, path, err
	}
	if list := os.Getenv("KUBECONFIG"); list != "" {
		file, err := loadList(filepath.SplitList(list))
		if err != nil {
			return nil, "", fmt.Errorf("KUBECONFIG=%s: %w", list, err)
		}
		return file, "KUBECONFIG=" + list, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, "", fmt.Errorf("KUBECONFIG is not set, and there is no home directory to hold .kube/config: %w", err)
	}
	path = filepath.Join(home, ".kube", "config")
	file, err := kubeconfig.Read(path)
	if err != nil {
		return nil, "", fmt.Errorf("KUBECONFIG is not set, and %s cannot be used: %w", path, err)
	}
	return file, path, nil
}

// loadList merges the files of a KUBECONFIG list; the missing ones do not count, unless all are.
func loadList(paths []string) (*kubeconfig.File, error) {
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

func fromKubeconfig(r *kubeconfig.Resolved) (*Config, error) {
	switch {
	case r.User.Exec != nil:
		return nil, errors.New("its user authenticates with an exec plugin, which this version cannot run: use a token or a client certificate")
	case r.User.AuthProvider != nil:
		return nil, errors.New("its user has an auth-provider, which kubectl itself no longer knows: use a token or a client certificate")
	}
	return &Config{
		Server:             r.Cluster.Server,
		Namespace:          r.Namespace,
		CAFile:             r.Cluster.CertificateAuthority,
		CAData:             r.Cluster.CertificateAuthorityData,
		ServerName:         r.Cluster.TLSServerName,
		Insecure:           r.Cluster.InsecureSkipTLSVerify,
		ProxyURL:           r.Cluster.ProxyURL,
		DisableCompression: r.Cluster.DisableCompression,
		CertFile:           r.User.ClientCertificate,
		CertData:           r.User.ClientCertificateData,
		KeyFile:            r.User.ClientKey,
		KeyData:            r.User.ClientKeyData,
		Token:              r.User.Token,
		TokenFile:          r.User.TokenFile,
		Username:           r.User.Username,
		Password:           r.User.Password,
		Impersonate: Impersonation{
			User:   r.User.Impersonate,
			UID:    r.User.ImpersonateUID,
			Groups: r.User.ImpersonateGroups,
			Extra:  r.User.ImpersonateUserExtra,
		},
	}, nil
}
