package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport"
)

const openAPIPath = "/openapi/v3"

const (
	// maxDocument bounds a decompressed document, which is held in memory. The largest of 400 definitions' has about 10 MB.
	maxDocument = 128 << 20
	maxError    = 1 << 10 // of an error text from a server
)

// server reads the documents of an API server.
type server struct {
	conn *transport.Conn
	etag string // of the last index
}

// index reads the list of documents. With the ETag of known it returns known itself.
func (s *server) index(ctx context.Context, known *savedIndex) (*savedIndex, error) {
	header := http.Header{"Accept": {"application/json"}}
	if known != nil && known.ETag != "" {
		header.Set("If-None-Match", known.ETag)
	}
	response, err := s.get(ctx, openAPIPath, header)
	if err != nil {
		return nil, err
	}
	if response.isNotModified {
		if known == nil {
			return nil, fmt.Errorf("GET %s: the server's response is 304 to an unconditional request", openAPIPath)
		}
		return known, nil
	}
	list := struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}{}
	if err := json.Unmarshal(response.body, &list); err != nil {
		return nil, fmt.Errorf("GET %s: %w", openAPIPath, sanitize.Error(err, maxError))
	}
	read := &savedIndex{ETag: response.etag, Documents: index{}}
	for path, entry := range list.Paths {
		if !strings.HasPrefix(path, "api/") && !strings.HasPrefix(path, "apis/") {
			continue // version, logs and others without kinds
		}
		target, err := url.Parse(entry.ServerRelativeURL)
		if err != nil {
			return nil, fmt.Errorf("GET %s: document %q: %w", openAPIPath, path, sanitize.Error(err, maxError))
		}
		read.Documents[path] = target.Query().Get("hash")
	}
	return read, nil
}

// document reads a document.
func (s *server) document(ctx context.Context, path, hash string) ([]byte, error) {
	target := openAPIPath + "/" + path
	if hash != "" {
		target += "?" + url.Values{"hash": {hash}}.Encode()
	}
	response, err := s.get(ctx, target, http.Header{"Accept": {"application/json"}})
	if err != nil {
		return nil, err
	}
	return response.body, nil
}

// response is a response that was read.
type response struct {
	body          []byte
	etag          string
	isNotModified bool
}

func (s *server) get(ctx context.Context, path string, header http.Header) (*response, error) {
	r, err := s.conn.Do(ctx, &transport.Request{Path: path, Header: header})
	if err != nil {
		return nil, sanitize.Error(retry.WithContextError(ctx, err), maxError)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxDocument+1))
	if err == nil && len(body) > maxDocument {
		err = errors.New("longer than 128 MiB")
	}
	if err != nil {
		return nil, fmt.Errorf("GET %s: read the body: %w", path, retry.WithContextError(ctx, err))
	}
	return &response{body: body, etag: r.Header.Get("ETag"), isNotModified: r.StatusCode == http.StatusNotModified}, nil
}
