//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/anykind/anykind/sandbox/sandbox"
)

// call sends a request to the control socket of the cluster in dir and decodes
// the answer into result.
func call(ctx context.Context, dir, method, path string, query url.Values, result any) error {
	socket := filepath.Join(dir, sandbox.ControlSocketName)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	target := url.URL{Scheme: "http", Host: "sandbox", Path: path, RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("asking the sandbox in %s: %w", dir, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var failure struct{ Error string }
		_ = json.NewDecoder(response.Body).Decode(&failure)
		return errors.New(failure.Error)
	}
	return json.NewDecoder(response.Body).Decode(result)
}

// findCluster returns the folder of the cluster to act on: inside exec the
// cluster of exec, otherwise the background cluster called name.
func findCluster(name string) (string, error) {
	if dir := os.Getenv(clusterDirEnv); dir != "" && name == defaultName {
		return dir, nil
	}
	records, err := openRecords("", name)
	if err != nil {
		return "", err
	}
	running, err := records.read()
	if errors.Is(err, errNotRunning) {
		return "", fmt.Errorf("sandbox %q is not running; start it with: go run -C sandbox . up", name)
	}
	if err != nil {
		return "", err
	}
	return running.Dir, nil
}
