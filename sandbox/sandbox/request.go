//go:build unix

package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// pollInterval is how long poll waits between probes.
const pollInterval = 50 * time.Millisecond

// errGone is why poll gives up before its context ends.
var errGone = errors.New("a component died")

// poll calls probe until it succeeds, ctx ends or gone is closed.
func poll(ctx context.Context, gone <-chan struct{}, probe func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-gone:
			return errGone
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
	}
}

// becauseOf says what was waited for, and which component's death ended it.
func (c *Cluster) becauseOf(err error, what string) error {
	if died := c.Err(); errors.Is(err, errGone) && died != nil {
		err = died
	}
	return fmt.Errorf("%s: %w", what, err)
}

// get fetches url and decodes its JSON into result unless that is nil.
func get(ctx context.Context, client *http.Client, url string, result any) error {
	return send(ctx, client, http.MethodGet, url, nil, result)
}

// post sends body as JSON and decodes the answer into result unless that is nil.
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
	return fmt.Sprintf("%s %s answered %d: %.300s", e.method, e.url, e.code, e.body)
}

// create posts object to the first API server; one that exists is fine.
func (c *Cluster) create(ctx context.Context, path string, object any) error {
	err := post(ctx, c.client, c.serverURL()+path, object, nil)
	var status *statusError
	if errors.As(err, &status) && status.code == http.StatusConflict {
		return nil
	}
	return err
}

// serverURL is where the first API server listens.
func (c *Cluster) serverURL() string {
	for _, m := range c.members {
		if m.component == APIServer {
			return m.url
		}
	}
	return ""
}
