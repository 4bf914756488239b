package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anykind/anykind/transport/kubeconfig"
)

// LoadOptions restrict the search of [Load], and override its result.
type LoadOptions struct {
	// Path is the only kubeconfig file to read. It must exist. "" searches the places of Load.
	Path string
	// Kubeconfig is used in place of a file. It may be the result of [LoadKubeconfig], to load several of its contexts, or of
	// [kubeconfig.Parse], for example for bytes from a Secret. A kubeconfig may name programs to run and files to read: do not
	// load an untrusted kubeconfig. It is not changed. Path must be "".
	Kubeconfig *kubeconfig.File
	// InClusterFirst searches the pod's service account before KUBECONFIG and ~/.kube/config, for a program that usually runs in
	// a pod. It has no effect with Path, Kubeconfig, Context, Cluster or User.
	InClusterFirst bool
	// Context is the context to use; "" means the kubeconfig's current-context.
	Context string
	// Cluster and User override the context's fields, and Namespace its namespace. Namespace applies to a cluster from any place.
	Cluster, User, Namespace string
}

// Load finds a [Config]. The first existing place wins:
//
//  1. opts.Kubeconfig, or the kubeconfig file opts.Path;
//  2. the kubeconfig files listed in KUBECONFIG, merged like by kubectl; missing files are skipped, but at least one must exist;
//  3. ~/.kube/config, unless KUBECONFIG is set;
//  4. the service account of this program's pod; with opts.InClusterFirst this is the first place;
//  5. a `kubectl proxy` on its default port, localhost:8001.
//
// An existing but unusable place is an error, and the search ends: a program must not end up on a different cluster because of a
// typing error. If no place exists, the error has the reason for each place. Context, Cluster and User require a kubeconfig: with
// them only the first three places count. Only the last place is tried over the network, for at most a second. nil opts mean
// defaults.
func Load(ctx context.Context, opts *LoadOptions) (*Config, error) {
	if opts == nil {
		opts = &LoadOptions{}
	}
	cfg, err := newLocator().load(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("find a cluster to connect to: %w", err)
	}
	if opts.Namespace != "" {
		cfg.Namespace = opts.Namespace
	}
	return cfg, nil
}

// locator finds clusters in the places of a machine.
type locator struct {
	env               func(string) string
	home              func() (string, error)
	serviceAccountDir string
	kubectlProxyURL   string
}

func newLocator() *locator {
	return &locator{
		env:               os.Getenv,
		home:              os.UserHomeDir,
		serviceAccountDir: "/var/run/secrets/kubernetes.io/serviceaccount",
		kubectlProxyURL:   "http://localhost:8001",
	}
}

// absentError reports a missing place: the search continues.
type absentError struct{ error }

func (e absentError) Unwrap() error { return e.error }

func absent(format string, args ...any) error { return absentError{fmt.Errorf(format, args...)} }

func (l *locator) load(ctx context.Context, opts *LoadOptions) (*Config, error) {
	fromKubeconfig := func() (*Config, error) { return l.fromKubeconfig(opts) }
	fromKubectlProxy := func() (*Config, error) { return l.fromKubectlProxy(ctx) }
	places := []func() (*Config, error){fromKubeconfig, l.fromPod, fromKubectlProxy}
	switch {
	case opts.Path != "" || opts.Kubeconfig != nil || opts.Context != "" || opts.Cluster != "" || opts.User != "":
		places = places[:1]
	case opts.InClusterFirst:
		places = []func() (*Config, error){l.fromPod, fromKubeconfig, fromKubectlProxy}
	}
	var reasons []error
	for _, place := range places {
		cfg, err := place()
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

// fromPod uses the service account mounted into a pod by Kubernetes. Its token and certificate authority are files renewed by
// Kubernetes: https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/.
func (l *locator) fromPod() (*Config, error) {
	host := l.env("KUBERNETES_SERVICE_HOST")
	port := l.env("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, absent("not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
	}
	cfg := &Config{
		Server:    "https://" + net.JoinHostPort(host, port),
		TokenFile: filepath.Join(l.serviceAccountDir, "token"),
		CAFile:    filepath.Join(l.serviceAccountDir, "ca.crt"),
	}
	for _, path := range []string{cfg.TokenFile, cfg.CAFile} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, absent("in a pod without a service account: there is no %s (is automountServiceAccountToken false?)", path)
		} else if err != nil {
			return nil, fmt.Errorf("in a pod: %w", err)
		}
	}
	namespace, err := os.ReadFile(filepath.Join(l.serviceAccountDir, "namespace"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("in a pod: %w", err)
	}
	cfg.Namespace = strings.TrimSpace(string(namespace))
	return cfg, nil
}

// probeTimeout limits the response time of a kubectl proxy on this machine.
const probeTimeout = time.Second

// fromKubectlProxy uses a kubectl proxy if it responds like an API server: a different program may listen on that port.
func (l *locator) fromKubectlProxy(ctx context.Context) (*Config, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	cfg := &Config{Server: l.kubectlProxyURL}
	if err := probe(ctx, cfg); err != nil {
		return nil, absent("no kubectl proxy at %s: %w", l.kubectlProxyURL, err)
	}
	return cfg, nil
}

// probe returns an error unless an API server responds.
func probe(ctx context.Context, cfg *Config) error {
	conn, err := Open(cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	response, err := conn.Do(ctx, &Request{Path: "/version"})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	if err != nil {
		return err
	}
	var version struct{ GitVersion string }
	if err := json.Unmarshal(body, &version); err != nil || version.GitVersion == "" {
		return errors.New("the response is not a Kubernetes API server's")
	}
	return nil
}
