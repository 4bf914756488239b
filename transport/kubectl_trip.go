package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// kubectlLastWords is how long an error waits for the end of kubectl, which may be its cause: a connection breaks before
// the process has ended.
const kubectlLastWords = time.Second

// RoundTrip implements http.RoundTripper.
func (k *kubectl) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := k.direct.RoundTrip(req)
	if err != nil {
		return nil, k.explain(req.Context(), err)
	}
	body := &kubectlBody{ReadCloser: response.Body, kubectl: k, ctx: req.Context()}
	if stream, ok := response.Body.(io.ReadWriteCloser); ok && response.StatusCode == http.StatusSwitchingProtocols {
		body.upgraded = true
		response.Body = &kubectlStream{kubectlBody: body, Writer: stream}
	} else {
		response.Body = body
	}
	return response, nil
}

// explain names kubectl and its last words in the error of a connection that broke because kubectl has ended.
func (k *kubectl) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil || !broke(err) && !isUnreachable(err) {
		return err
	}
	wait := time.NewTimer(kubectlLastWords)
	defer wait.Stop()
	select {
	case <-k.ended:
	case <-wait.C:
		return err
	case <-ctx.Done():
		return err
	}
	why := k.err
	if why == nil {
		why = errors.New("exit status 0")
	}
	return retry.Terminal(fmt.Errorf("the kubectl that makes the requests has ended: %w: %w", why, err))
}

// isUnreachable reports whether nobody listens on a socket any more.
func isUnreachable(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EPIPE)
}

// kubectlBody explains the errors of an answer's body.
type kubectlBody struct {
	io.ReadCloser
	kubectl  *kubectl
	ctx      context.Context //nolint:containedctx // the request's, which ends the body
	upgraded bool
}

func (b *kubectlBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil || err == io.EOF && !b.upgraded {
		return n, err
	}
	if explained := b.kubectl.explain(b.ctx, err); explained != err { //nolint:errorlint // the very same if unexplained
		if errors.Is(err, io.EOF) {
			explained = fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, explained)
		}
		return n, explained
	}
	return n, err
}

// kubectlStream is the body of an upgrade.
type kubectlStream struct {
	*kubectlBody
	io.Writer
}
