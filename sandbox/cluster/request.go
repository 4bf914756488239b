//go:build unix

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// pollInterval is the delay between probes.
const pollInterval = 50 * time.Millisecond

// errDied is returned by poll if a process died.
var errDied = errors.New("component died")

// poll calls probe until it succeeds, ctx ends or died is closed.
func poll(ctx context.Context, died <-chan struct{}, probe func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-died:
			return errDied
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
	}
}

// waitError adds the awaited condition, or the error of a dead component.
func (c *Cluster) waitError(err error, what string) error {
	if died := c.Err(); errors.Is(err, errDied) && died != nil {
		err = died
	}
	return fmt.Errorf("%s: %w", what, err)
}

// get sends a GET and decodes the JSON response into result, unless result is nil.
func get(ctx context.Context, client *http.Client, url string, result any) error {
	return send(ctx, client, http.MethodGet, url, nil, result)
}

// post sends body as JSON and decodes the response into result, unless result is nil.
func post(ctx context.Context, client *http.Client, url string, body, result any) error {
	return send(ctx, client, http.MethodPost, url, body, result)
}

func send(ctx context.Context, client *http.Client, method, url string, body, result any) error {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, url, reader)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, url, err)
	}
	if response.StatusCode/100 != 2 {
		return &statusError{method: method, url: url, code: response.StatusCode, body: string(text)}
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}

type statusError struct {
	method, url, body string
	code              int
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s %s responded with %d: %.300s", e.method, e.url, e.code, e.body)
}

// create creates an object on the first API server, unless it exists.
func (c *Cluster) create(ctx context.Context, path string, object any) error {
	err := post(ctx, c.client, c.serverURL()+path, object, nil)
	var status *statusError
	if errors.As(err, &status) && status.code == http.StatusConflict {
		return nil
	}
	return err
}

// serverURL returns the URL of the first API server.
func (c *Cluster) serverURL() string {
	for _, m := range c.members {
		if m.component == APIServer {
			return m.url
		}
	}
	return ""
}

// Compact compacts etcd to its newest revision and returns the revision: older resource versions and continue tokens expire (410
// Gone). An API server's watch cache still holds recent events; restart the server to expire them. See
// https://etcd.io/docs/v3.6/op-guide/maintenance/.
func (c *Cluster) Compact(ctx context.Context) (revision string, err error) {
	m, err := c.member(string(Etcd))
	if err != nil {
		return "", err
	}
	var status struct{ Header struct{ Revision string } }
	if err := post(ctx, c.etcd, m.url+"/v3/maintenance/status", struct{}{}, &status); err != nil {
		return "", fmt.Errorf("get etcd's revision: %w", err)
	}
	revision = status.Header.Revision
	err = post(ctx, c.etcd, m.url+"/v3/kv/compaction", map[string]any{"revision": revision, "physical": true}, nil)
	var statusErr *statusError
	if errors.As(err, &statusErr) && strings.Contains(statusErr.body, "has been compacted") {
		return revision, nil // nothing was written since the last call
	}
	if err != nil {
		return "", fmt.Errorf("compact etcd to revision %s: %w", revision, err)
	}
	return revision, nil
}

// freePorts returns n different loopback ports that are probably free.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port on loopback: %w", err)
		}
		// Open until all are chosen, so that each port is returned once.
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
