package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/internal/sanitize"
)

const (
	maxBody      = 64 << 20 // bytes of a URL's body, decompressed
	maxAttempts  = 3
	maxRedirects = 10
)

func isURL(path string) bool {
	return strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://")
}

// validateURL rejects a malformed URL and one with a user. Errors have neither user nor query.
func validateURL(address string) error {
	parsed, err := url.Parse(address)
	switch {
	case err != nil || parsed.Host == "":
		return fmt.Errorf("read %s: not a valid URL", sanitize.URL(address))
	case parsed.User != nil:
		return fmt.Errorf("read %s: a URL with a user is not supported, credentials are not sent (run: curl -sSLf URL | … -f -)", sanitize.URL(address))
	}
	return nil
}

// readURL decodes the body of a URL.
func readURL(ctx context.Context, client *http.Client, address string, withLines bool) ([]*Object, error) {
	name := sanitize.URL(address)
	body, err := openURL(ctx, withRedirects(client), address)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { _ = body.Close() }() // only read
	return decode(name, &limitedReader{in: body, left: maxBody}, withLines)
}

// openURL returns the body of a successful response.
func openURL(ctx context.Context, client *http.Client, address string) (io.ReadCloser, error) {
	backoff := retry.Backoff{Min: 200 * time.Millisecond, Max: time.Second}
	for n := 1; ; n++ {
		body, err := requestURL(ctx, client, address)
		if err == nil || ctx.Err() != nil || retry.IsRejected(err) || n == maxAttempts {
			return body, err
		}
		if ended := backoff.Wait(ctx, n); ended != nil {
			return nil, fmt.Errorf("%w; the last error: %w", ended, err)
		}
	}
}

func requestURL(ctx context.Context, client *http.Client, address string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, retry.Terminal(err)
	}
	response, err := client.Do(req)
	if err != nil {
		if withURL, ok := errors.AsType[*url.Error](err); ok {
			err = withURL.Err // the URL may have a token in its query
		}
		return nil, err
	}
	if err := responseError(response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response.Body, nil
}

// responseError returns the error of a response without a manifest.
func responseError(response *http.Response) error {
	switch code := response.StatusCode; {
	case code >= http.StatusInternalServerError:
		return fmt.Errorf("the server reported %s", sanitize.Text(response.Status, 128))
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return retry.Terminal(fmt.Errorf("the server reported %s (no credentials are sent: download the file)", sanitize.Text(response.Status, 128)))
	case code != http.StatusOK:
		return retry.Terminal(fmt.Errorf("the server reported %s (check the URL)", sanitize.Text(response.Status, 128)))
	}
	if mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); mediaType == "text/html" {
		return retry.Terminal(errors.New("the server sent a page of HTML, not a manifest (use the URL of the raw file)"))
	}
	return nil
}

// withRedirects returns a copy of client that follows the redirects that checkRedirect and client.CheckRedirect accept. client may be
// nil.
func withRedirects(client *http.Client) *http.Client {
	checked := http.Client{}
	if client != nil {
		checked = *client
	}
	own := checked.CheckRedirect
	checked.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if err := checkRedirect(req, via); err != nil || own == nil {
			return err
		}
		return own(req, via)
	}
	return &checked
}

// checkRedirect is the policy of each client.
func checkRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= maxRedirects:
		return retry.Terminal(fmt.Errorf("stopped after %d redirects", maxRedirects))
	case req.URL.Scheme != "https" && via[len(via)-1].URL.Scheme == "https":
		return retry.Terminal(fmt.Errorf("redirect to %s rejected: it is not encrypted", sanitize.URL(req.URL.String())))
	}
	req.URL.User = nil // would be sent as a header
	return nil
}

// limitedReader returns an error in place of further bytes once its limit is exceeded.
type limitedReader struct {
	in   io.Reader
	left int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	l.left -= int64(n)
	if l.left < 0 {
		return 0, fmt.Errorf("the body is larger than %d MiB (download the file)", maxBody>>20)
	}
	return n, err
}
