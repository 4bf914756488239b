package discovery

import (
	"context"
	"fmt"
	"net/http"

	jsoniter "github.com/json-iterator/go"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/document"
	"github.com/anykind/anykind/internal/sanitize"
)

const (
	// maxDocument bounds the size of a decompressed document. Documents are held in memory. The discovery document of a server
	// with 10,000 definitions has about 10 MB.
	maxDocument = 64 << 20
	// maxError bounds error text from a server. maxText bounds a quotation in error text, and a decoder's error, because it
	// quotes the input.
	maxError = 1 << 10
	maxText  = 200
)

func (c *Client) get(ctx context.Context, path string, header http.Header) (*document.Document, error) {
	if c.conn == nil {
		return nil, errOffline
	}
	return document.Get(ctx, c.conn, path, header, c.maxDocument)
}

const plainJSON = "application/json"

func accept(mediaTypes string) http.Header { return http.Header{"Accept": {mediaTypes}} }

var codec = jsoniter.Config{CaseSensitive: true}.Froze()

// object is a document with a kind.
type object interface{ GetObjectKind() schema.ObjectKind }

func (c *Client) getKind(ctx context.Context, path, mediaType, kind string, into object) error {
	return c.getDecoded(ctx, path, mediaType, func(body []byte) error { return decodeKind(body, kind, into) })
}

func (c *Client) getDecoded(ctx context.Context, path, mediaType string, decode func(body []byte) error) error {
	doc, err := c.get(ctx, path, accept(mediaType))
	if err != nil {
		return err
	}
	if err = checkMemory(doc.Body, c.memory()); err == nil {
		err = decode(doc.Body)
	}
	if err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return nil
}

func decodeKind(body []byte, kind string, into object) error {
	if err := codec.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decode %s: %w", kind, sanitize.Error(err, maxText))
	}
	return checkKind(into.GetObjectKind().GroupVersionKind().Kind, kind)
}

func checkKind(got, want string) error {
	if got != want {
		return fmt.Errorf("decode %s: kind is %s", want, quoted(got))
	}
	return nil
}

// quoted sanitizes and quotes a name from a server for error text.
func quoted(name string) string { return fmt.Sprintf("%q", sanitize.Text(name, maxText)) }
