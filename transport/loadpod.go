package transport

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// fromPod uses the service account that Kubernetes mounts into a pod. Its token and authorities are files that are
// renewed: https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/.
func (p *places) fromPod() (*Config, error) {
	host, port := p.env("KUBERNETES_SERVICE_HOST"), p.env("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, absent("not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
	}
	cfg := &Config{
		Server:    "https://" + net.JoinHostPort(host, port),
		TokenFile: filepath.Join(p.serviceAccount, "token"),
		CAFile:    filepath.Join(p.serviceAccount, "ca.crt"),
	}
	for _, path := range []string{cfg.TokenFile, cfg.CAFile} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, absent("in a pod, but without a service account: there is no %s; is automountServiceAccountToken false?", path)
		} else if err != nil {
			return nil, fmt.Errorf("in a pod: %w", err)
		}
	}
	namespace, err := os.ReadFile(filepath.Join(p.serviceAccount, "namespace"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("in a pod: %w", err)
	}
	cfg.Namespace = strings.TrimSpace(string(namespace))
	return cfg, nil
}
