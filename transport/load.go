package transport

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// LoadOptions says where [Load] looks and what it takes instead of what it finds.
type LoadOptions struct {
	// Path is the one kubeconfig file to read. It must exist. "" looks in the places Load names.
	Path string
	// Context is the context to use; "" means the file's current-context.
	Context string
	// Cluster and User take the place of the context's own, Namespace that of its namespace. Namespace works wherever
	// the cluster was found.
	Cluster, User, Namespace string
}

// Load finds a [Config]. It takes the first that is there of:
//
//  1. the kubeconfig file opts.Path;
//  2. the kubeconfig files that KUBECONFIG lists, merged as kubectl does, those that do not exist skipped, though one of
//     them must exist;
//  3. ~/.kube/config, unless KUBECONFIG is set;
//  4. the service account of the pod that the program runs in;
//  5. a `kubectl proxy` on its default port, localhost:8001.
//
// A place that is there and cannot be used is an error, and not a reason to go on: a program shall not end up on another
// cluster because of a typing error. When there is none, the error tells of each place why not. Context, Cluster and
// User ask for a kubeconfig: with them only the first three count. Only the last place is asked over the network, for
// at most a second. nil opts mean defaults.
func Load(ctx context.Context, opts *LoadOptions) (*Config, error) {
	if opts == nil {
		opts = &LoadOptions{}
	}
	cfg, err := machine().load(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("find a cluster to connect to: %w", err)
	}
	if opts.Namespace != "" {
		cfg.Namespace = opts.Namespace
	}
	return cfg, nil
}

// places is where on a machine clusters are found.
type places struct {
	env            func(string) string
	home           func() (string, error)
	serviceAccount string // folder
	kubectlProxy   string // URL
}

func machine() *places {
	return &places{
		env:            os.Getenv,
		home:           os.UserHomeDir,
		serviceAccount: "/var/run/secrets/kubernetes.io/serviceaccount",
		kubectlProxy:   "http://localhost:8001",
	}
}

// absentError says that there is nothing at a place, so that the next one counts.
type absentError struct{ error }

func (e absentError) Unwrap() error { return e.error }

func absent(format string, args ...any) error { return absentError{fmt.Errorf(format, args...)} }

func (p *places) load(ctx context.Context, opts *LoadOptions) (*Config, error) {
	ways := []func() (*Config, error){
		func() (*Config, error) { return p.fromKubeconfig(opts) },
		p.fromPod,
		func() (*Config, error) { return p.fromKubectlProxy(ctx) },
	}
	if opts.Path != "" || opts.Context != "" || opts.Cluster != "" || opts.User != "" {
		ways = ways[:1]
	}
	var reasons []error
	for _, way := range ways {
		cfg, err := way()
		if err == nil {
			return cfg, nil
		}
		reasons = append(reasons, err)
		if !errors.As(err, new(absentError)) {
			break
		}
	}
	return nil, errors.Join(reasons...)
}
