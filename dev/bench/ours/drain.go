//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/url"

	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/transport"
)

// drain sends the requests of list and discards the responses: the minimum cost of a list.
func (s *side) drain(ctx context.Context, m *measure.Meter) error {
	query := url.Values{"limit": {"500"}}
	for {
		next, err := s.discard(ctx, m, query)
		if err != nil || next == "" {
			return err
		}
		query.Set("continue", next)
	}
}

// drainWhole does so with the request of whole.
func (s *side) drainWhole(ctx context.Context, m *measure.Meter) error {
	_, err := s.discard(ctx, m, nil)
	return err
}

// discard sends a request and reads only the continue token of its response.
func (s *side) discard(ctx context.Context, m *measure.Meter, query url.Values) (next string, err error) {
	path, err := s.pods.Path("")
	if err != nil {
		return "", err
	}
	response, err := s.pods.Conn().Do(ctx, &transport.Request{Path: path, Query: query})
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	// A built-in resource's list begins with its metadata.
	head := make([]byte, 4096)
	n, err := io.ReadFull(response.Body, head)
	if err != nil && err != io.ErrUnexpectedEOF { //nolint:errorlint // ReadFull's own
		return "", err
	}
	var meta struct{ Continue string }
	if _, after, found := bytes.Cut(head[:n], []byte(`"metadata":`)); found {
		if err := json.NewDecoder(bytes.NewReader(after)).Decode(&meta); err != nil {
			return "", err
		}
	}
	// Without a continue token, all requested objects have arrived.
	if meta.Continue == "" {
		m.SeeAll()
	}
	_, err = io.Copy(io.Discard, response.Body)
	return meta.Continue, err
}
