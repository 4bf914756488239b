package dynamic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/retry"
)

// List yields every object selected by opts, in the server's order. Objects are decoded from the connection while it is read,
// so memory does not grow with the list. List requests pages of opts.Limit objects, 500 by default. All pages have the
// first page's resourceVersion. From the second object on, the next page is requested while the current page is read, as
// soon as the server has sent its continue token.
//
// Servers keep a resourceVersion for about five minutes. A longer list ends with an error for which
// apierrors.IsResourceExpired holds, unless [Handle.WithPageOptions] chooses a different policy. Set a smaller Limit if the
// loop takes longer than a minute for a page: servers close connections with a large unread response. Breaking out of the
// loop cancels its requests and closes their connections. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks.
func (h *Handle[T]) List(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		err := h.list(ctx, h.codec.form(), nil, opts, func(item item) error {
			obj, err := h.codec.decode(&h.endpoint, item)
			if err != nil {
				return h.decodeError("list", err)
			}
			if !yield(obj, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// errStopped is returned by the handler of an item after the caller has left the loop over the items.
var errStopped = errors.New("stopped")

// list calls handle for every item that opts select, until handle returns an error. interner may be nil.
func (e *endpoint) list(ctx context.Context, form form, interner *jsonread.Interner, opts *metav1.ListOptions, handle func(item) error) error {
	ctx, cancel := context.WithCancel(ctx)
	p := &listPager{pageRequest: pageRequest{endpoint: e, form: form, interner: interner, opts: valueOf(opts)}}
	defer p.close()
	defer cancel()
	return p.run(ctx, func() (bool, error) { return p.page(ctx, handle) })
}

// handleItems calls handle for the items of a response that is a list or a table; verb is for the error.
func (e *endpoint) handleItems(verb string, items itemReader, handle func(item) error) (list metav1.TypeMeta, meta metav1.ListMeta, err error) {
	for {
		item, err := items.next()
		if err == io.EOF { //nolint:errorlint // a wrapped EOF is a connection that broke, not the end
			return e.representList(items.typeMeta()), items.meta(), nil
		}
		if err != nil {
			return list, meta, e.decodeError(verb, err)
		}
		if err := handle(item); err != nil {
			return list, meta, err
		}
	}
}

// decodeError is for the response to a call on the handle's collection.
func (e *endpoint) decodeError(verb string, err error) error {
	return fmt.Errorf("%s %s: %s %s%s: %w", verb, e, method(verb), e.conn.Server(), e.path(""), err)
}

// defaultPageSize is the number of objects that List requests at once, as in client-go's pager.
const defaultPageSize = 500

// listPager requests the pages of a list in sequence and yields their objects. It prefetches a single page: the next page is
// requested once the caller has taken a second object and the continue token is known. Its body waits in the connection's buffers.
type listPager struct {
	pageRequest // of the next page

	prefetch    <-chan pageResult // of the next page, nil if it has not been requested
	yielded     bool              // and the caller has continued
	pageYielded bool              // an object of the current page has been yielded
	expiries    int
}

// run calls page until there are no more pages or the list fails. page reads a page and reports whether there is a next page. An
// expired list is continued by the caller's policy.
func (p *listPager) run(ctx context.Context, page func() (more bool, err error)) error {
	if p.opts.Limit == 0 {
		p.opts.Limit = defaultPageSize
	}
	for {
		more, err := page()
		if err != nil {
			more = true
			err = p.handleExpired(ctx, err)
		}
		if err != nil || !more {
			return err
		}
	}
}

// close waits for the prefetched response, if there is one, and closes its connection.
func (p *listPager) close() {
	if p.prefetch == nil {
		return
	}
	if next := <-p.prefetch; next.err == nil {
		_ = next.response.Body.Close()
	}
}

// page calls handle for the items of a page and reports whether there is a next page.
func (p *listPager) page(ctx context.Context, handle func(item) error) (more bool, err error) {
	if p.prefetch == nil {
		p.prefetch = p.prefetchPage(ctx)
	}
	current := <-p.prefetch
	p.prefetch = nil
	p.pageYielded = false
	if current.err != nil {
		return false, current.err
	}
	items := current.request.read(ctx, current.response)
	defer items.close()
	for {
		item, err := items.next()
		if err == io.EOF { //nolint:errorlint // a wrapped EOF is a connection that broke, not the end
			return p.endPage(items.meta()), nil
		}
		if err != nil {
			return false, p.endpoint.decodeError("list", err)
		}
		if p.yielded && p.prefetch == nil && p.continueFrom(items.meta().Continue) {
			p.prefetch = p.prefetchPage(ctx)
		}
		if err := handle(item); err != nil {
			return false, err
		}
		p.yielded = true
		p.pageYielded = true
	}
}

// endPage calls OnPage after the items of a page, prepares the request of the next page, and reports whether there is a next
// page.
func (p *listPager) endPage(meta metav1.ListMeta) bool {
	if onPage := p.endpoint.pageOptions.OnPage; onPage != nil {
		onPage(meta)
	}
	return p.continueFrom(meta.Continue)
}

// continueFrom sets the options for the page of a continue token, "" for the first page, and reports whether there is a
// token. It contains the list's resourceVersion, and the server rejects requests that have both.
func (p *listPager) continueFrom(token string) bool {
	p.opts.Continue = token
	p.opts.ResourceVersion = ""
	p.opts.ResourceVersionMatch = ""
	return token != ""
}

// handleExpired returns nil if err reports an expired list and OnExpired chooses to proceed, after a delay, and otherwise
// an error.
func (p *listPager) handleExpired(ctx context.Context, err error) error {
	var status *apierrors.StatusError
	isExpired := errors.As(err, &status) && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err))
	if !isExpired || p.endpoint.pageOptions.OnExpired == nil {
		return err
	}
	switch p.endpoint.pageOptions.OnExpired(err) {
	case ExpiryRestart:
		p.continueFrom("")
	case ExpiryContinue:
		if p.pageYielded || !p.continueFrom(status.ErrStatus.Continue) { // the token is for all objects of the page
			return err
		}
	default:
		return err
	}
	p.close() // the page after the expired page
	p.prefetch = nil
	p.expiries++
	backoff := retry.Backoff{Min: 100 * time.Millisecond, Max: 30 * time.Second}
	if ended := backoff.Wait(ctx, p.expiries); ended != nil {
		return fmt.Errorf("list %s: back off after %w: %w", p.endpoint, err, ended)
	}
	return nil
}

// pageResult is the result of a list request. The caller closes the response, whose body has not been read.
type pageResult struct {
	request  pageRequest
	response *http.Response
	err      error
}

// prefetchPage sends the request of the next page in the background and returns a channel for its result.
func (p *listPager) prefetchPage(ctx context.Context) <-chan pageResult {
	results := make(chan pageResult, 1)
	request := p.pageRequest
	go func() {
		response, err := request.send(ctx) //nolint:bodyclose // by the receiver
		results <- pageResult{request, response, err}
	}()
	return results
}

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
