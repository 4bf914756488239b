// Package document reads documents of an API server that are held in memory: discovery and OpenAPI.
package document

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport"
)

// maxError bounds error text from a server.
const maxError = 1 << 10

// Document is a response body with the relevant headers.
type Document struct {
	Body              []byte
	ContentType, ETag string
	// Hash is the query parameter hash of the request, after redirects.
	Hash        string
	NotModified bool
}

// Get sends a GET request and reads at most limit bytes of the decompressed response. A longer response is an error.
func Get(ctx context.Context, conn *transport.Conn, path string, header http.Header, limit int64) (*Document, error) {
	response, err := conn.Do(ctx, &transport.Request{Path: path, Header: header})
	if err != nil {
		return nil, sanitize.Error(retry.WithContextError(ctx, err), maxError)
	}
	defer response.Body.Close()
	doc := &Document{
		ContentType: response.Header.Get("Content-Type"), ETag: response.Header.Get("ETag"),
		NotModified: response.StatusCode == http.StatusNotModified,
	}
	if final := response.Request; final != nil && final.URL != nil {
		doc.Hash = final.URL.Query().Get("hash")
	}
	doc.Body, err = io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err == nil && int64(len(doc.Body)) > limit {
		err = fmt.Errorf("longer than %d bytes", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("GET %s: read the body: %w", path, retry.WithContextError(ctx, err))
	}
	return doc, nil
}
