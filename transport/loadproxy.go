package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// probeTimeout is how long a kubectl proxy on this machine may take to answer.
const probeTimeout = time.Second

// fromKubectlProxy asks whether a kubectl proxy listens: something else may, on that port.
func (p *places) fromKubectlProxy(ctx context.Context) (*Config, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	cfg := &Config{Server: p.kubectlProxy}
	if err := probe(ctx, cfg); err != nil {
		return nil, absent("no kubectl proxy at %s: %w", p.kubectlProxy, err)
	}
	return cfg, nil
}

func probe(ctx context.Context, cfg *Config) error {
	conn, err := Open(cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	response, err := conn.Do(ctx, &Request{Method: http.MethodGet, Path: "/version"})
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
		return fmt.Errorf("what answers there is no Kubernetes API server")
	}
	return nil
}
