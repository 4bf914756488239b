package dynamic

import (
	"context"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/jsonread"
)

// pageRequest is a list request and how to read its response.
type pageRequest struct {
	endpoint *endpoint
	form     form
	opts     metav1.ListOptions
	interner *jsonread.Interner // nil for none
	keepsAll bool               // the caller keeps the items
}

// send sends the request.
func (r *pageRequest) send(ctx context.Context) (*http.Response, error) {
	request, err := r.endpoint.collectionRequest("list", &r.opts)
	if err != nil {
		return nil, err
	}
	return r.endpoint.do(ctx, request, true)
}

// pageReader reads the items of the response to a list request. It requests a page again as JSON if a field of its protobuf is
// unknown.
type pageReader struct {
	itemReader

	ctx     context.Context
	request pageRequest
	body    io.Closer
	count   int // items read
}

// read returns a reader of the response to a request.
func (r *pageRequest) read(ctx context.Context, response *http.Response) *pageReader {
	items := formOf(r.form, response.Header).readItems(r.endpoint, response.Body, r.interner, r.keepsAll)
	return &pageReader{itemReader: items, ctx: ctx, request: *r, body: response.Body}
}

func (p *pageReader) close() { _ = p.body.Close() }

// next implements itemReader.
func (p *pageReader) next() (item, error) {
	next, err := p.itemReader.next()
	if err != nil && p.request.endpoint.fallBackToJSON(err) {
		if err := p.requestAgain(); err != nil {
			return item{}, err
		}
		next, err = p.itemReader.next()
	}
	p.count++
	return next, err
}

// requestAgain requests the same items and skips those that have been read.
func (p *pageReader) requestAgain() error {
	p.close()
	again := p.request
	if list := p.meta(); again.opts.Continue == "" && list.ResourceVersion != "" {
		again.opts.ResourceVersion = list.ResourceVersion
		again.opts.ResourceVersionMatch = metav1.ResourceVersionMatchExact
		if list.Continue == "" { // the whole list, from a server that may ignore a limit
			again.opts.Limit = 0
		}
	}
	response, err := again.send(p.ctx) //nolint:bodyclose // by close
	if err != nil {
		return err
	}
	count := p.count
	*p = *again.read(p.ctx, response)
	for p.count = 0; p.count < count; p.count++ {
		if _, err := p.itemReader.next(); err != nil {
			return fmt.Errorf("read the page again as JSON: item %d: %w", p.count, noEOF(err))
		}
	}
	return nil
}

// noEOF returns err, and io.ErrUnexpectedEOF for io.EOF.
func noEOF(err error) error {
	if err == io.EOF { //nolint:errorlint // itself
		return io.ErrUnexpectedEOF
	}
	return err
}
