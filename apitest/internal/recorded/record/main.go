// Command record records the sandbox's API server, without CustomResourceDefinitions, in internal/recorded: discovery, columns of
// tables, field selectors, OpenAPI documents, and data of the Go types of the server's version.
//
//	make apitest-record
//
// APIs not served by default, such as beta APIs, are not recorded.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"

	"github.com/anykind/anykind/transport"
)

const dir = "internal/recorded"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	cfg, err := transport.Load(ctx, nil)
	if err != nil {
		return err
	}
	conn, err := transport.Open(cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	api := &server{conn: conn}
	if err := api.requireNoDefinitions(ctx); err != nil {
		return err
	}
	resources, columns, err := recordResources(ctx, api)
	if err != nil {
		return err
	}
	if err := writeGroups(resources); err != nil {
		return err
	}
	if err := writeColumns(columns); err != nil {
		return err
	}
	if err := recordOpenAPI(ctx, api); err != nil {
		return err
	}
	return recordGoTypes(resources.Version["gitVersion"])
}

// server is the recorded API server.
type server struct {
	conn *transport.Conn
}

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// get decodes the response to a GET request. An empty accept means application/json.
func (s *server) get(ctx context.Context, path, accept string, into any) error {
	text, err := s.getText(ctx, path, accept)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("get %s: %w", path, err)
	}
	return nil
}

func (s *server) getText(ctx context.Context, path, accept string) ([]byte, error) {
	if accept == "" {
		accept = "application/json"
	}
	return s.send(ctx, &transport.Request{Path: path, Header: http.Header{"Accept": {accept}}})
}

func (s *server) send(ctx context.Context, req *transport.Request) ([]byte, error) {
	response, err := s.conn.Do(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", req.Method, req.Path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", req.Method, req.Path, err)
	}
	return text, nil
}

func (s *server) requireNoDefinitions(ctx context.Context) error {
	var list struct{ Items []any }
	err := s.get(ctx, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", &list)
	if err == nil && len(list.Items) > 0 {
		return errors.New("the server has CustomResourceDefinitions: record from a new one (make apitest-record)")
	}
	return err
}
