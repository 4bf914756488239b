package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport"
	jsoniter "github.com/json-iterator/go"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Every document is held whole in memory, and is read up to a limit that counts what comes out of compression. A server
// with 10,000 definitions has a discovery document of about 10 MB.
const (
	maxDocument = 64 << 20
	// maxError bounds the text of an error that a server caused.
	maxError = 1 << 10
)

// document is an answer of the server.
type document struct {
	body              []byte
	contentType, etag string
	unchanged         bool
}

func (c *Client) get(ctx context.Context, path string, header http.Header) (*document, error) {
	if c.conn == nil {
		return nil, errOffline
	}
	response, err := c.conn.Do(ctx, &transport.Request{Path: path, Header: header})
	if err != nil {
		return nil, printable(retry.WithContextError(ctx, err))
	}
	defer response.Body.Close()
	read := &document{
		contentType: response.Header.Get("Content-Type"), etag: response.Header.Get("ETag"),
		unchanged: response.StatusCode == http.StatusNotModified,
	}
	if read.body, err = readLimited(response.Body, c.maxDocument); err != nil {
		return nil, fmt.Errorf("GET %s: read the answer: %w", path, retry.WithContextError(ctx, err))
	}
	return read, nil
}

func readLimited(body io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("it is longer than %d bytes", limit)
	}
	return data, nil
}

// plainJSON asks for a document as every server has it.
func plainJSON() http.Header { return http.Header{"Accept": {"application/json"}} }

var codec = jsoniter.Config{CaseSensitive: true}.Froze()

// decodeKind reads a document of the one kind that is expected.
func decodeKind(body []byte, kind string, into interface{ GetObjectKind() schema.ObjectKind }) error {
	if err := codec.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer is no %s: %w", kind, decodeError(err))
	}
	return checkKind(into.GetObjectKind().GroupVersionKind().Kind, kind)
}

func checkKind(got, want string) error {
	if got != want {
		return fmt.Errorf("the answer is no %s: its kind is %s", want, quoted(got))
	}
	return nil
}

// decodeError makes one short line of a decoder's error, which quotes what it read.
func decodeError(err error) error { return errors.New(sanitize.Text(err.Error(), maxText)) }

// printable returns err with a text of one short line, whatever the server wrote into it.
func printable(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := sanitize.Text(text, maxError); clean != text {
		return &printableError{text: clean, err: err}
	}
	return err
}

type printableError struct {
	text string
	err  error
}

func (e *printableError) Error() string { return e.text }

func (e *printableError) Unwrap() error { return e.err }
