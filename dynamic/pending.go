package dynamic

import (
	"context"
	"net/http"

	"github.com/anykind/anykind/transport"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pending is a list request under way. Its answer's body stays unread, in the connection's buffers, until somebody
// wants it.
type pending struct {
	request  *transport.Request
	answered chan struct{} // closed when response and err are there
	response *http.Response
	err      error
}

// ask makes a list request, which ends with ctx.
func (r *Resource) ask(ctx context.Context, opts metav1.ListOptions) *pending {
	asked := &pending{answered: make(chan struct{})}
	if asked.request, asked.err = r.collectionRequest("list", &opts); asked.err != nil {
		close(asked.answered)
		return asked
	}
	go func() {
		defer close(asked.answered)
		asked.response, asked.err = r.do(ctx, asked.request, list) //nolint:bodyclose // by who takes the answer, or by discard
	}()
	return asked
}

// answer waits for the response, which is the caller's to close.
func (p *pending) answer() (*http.Response, error) {
	<-p.answered
	return p.response, p.err
}

// discard waits for the end of a request that nobody wants any more, if there is one, and closes its connection.
func (p *pending) discard() {
	if p == nil {
		return
	}
	if response, err := p.answer(); err == nil {
		_ = response.Body.Close()
	}
}
