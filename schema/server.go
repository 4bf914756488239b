package schema

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/anykind/anykind/internal/document"
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
	response, err := document.Get(ctx, s.conn, openAPIPath, header, maxDocument)
	if err != nil {
		return nil, err
	}
	if response.NotModified {
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
	if err := json.Unmarshal(response.Body, &list); err != nil {
		return nil, fmt.Errorf("GET %s: %w", openAPIPath, sanitize.Error(err, maxError))
	}
	read := &savedIndex{ETag: response.ETag, Documents: index{}}
	for path, entry := range list.Paths {
		if !strings.HasPrefix(path, "api/") && !strings.HasPrefix(path, "apis/") {
			continue // version, logs and others without kinds
		}
		hash, err := hashOf(entry.ServerRelativeURL)
		if err != nil {
			return nil, fmt.Errorf("GET %s: document %q: %w", openAPIPath, path, sanitize.Error(err, maxError))
		}
		read.Documents[path] = hash
	}
	return read, nil
}

// hashOf returns the query parameter hash of a document's URL. Servers send one for each group version, so that parsing would take more
// time than all else of a list.
func hashOf(document string) (string, error) {
	if _, hash, found := strings.Cut(document, "?hash="); found && !strings.ContainsAny(hash, "%+&;#") {
		return hash, nil
	}
	target, err := url.Parse(document)
	if err != nil {
		return "", err
	}
	return target.Query().Get("hash"), nil
}

// document reads a document. The server redirects an outdated hash: current is the hash of data.
func (s *server) document(ctx context.Context, path, hash string) (data []byte, current string, err error) {
	target := openAPIPath + "/" + path
	if hash != "" {
		target += "?" + url.Values{"hash": {hash}}.Encode()
	}
	response, err := document.Get(ctx, s.conn, target, http.Header{"Accept": {"application/json"}}, maxDocument)
	if err != nil {
		return nil, "", err
	}
	return response.Body, cmp.Or(response.Hash, hash), nil
}
