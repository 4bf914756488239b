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

// Page is the response to one list request, decoded to objects of type T.
type Page[T any] struct {
	Items []*T
	// TypeMeta is the list's own kind and apiVersion, such as PodList and v1; empty if the response is not a list.
	metav1.TypeMeta
	// ListMeta has the resourceVersion to watch from. If ListOptions.Limit cut the list, it also has the continue token
	// and, where the server counts them, the number of remaining items.
	metav1.ListMeta
}

// ListPage sends one list request with opts as they are and decodes the whole response. For the next page pass the page's
// Continue in opts. [Handle.List] requests further pages itself and holds a single object. A page that exceeds the connection's
// MemoryLimits is a *unstructured.LimitError.
func (h *Handle[T]) ListPage(ctx context.Context, opts *metav1.ListOptions) (*Page[T], error) {
	return h.readPage("list", func(handle func(item) error) (metav1.TypeMeta, metav1.ListMeta, error) {
		return h.listPage(ctx, h.codec.form(), opts, handle)
	})
}

// readPage returns the page whose items read passes to handle. verb is for errors.
func (h *Handle[T]) readPage(verb string, read func(handle func(item) error) (metav1.TypeMeta, metav1.ListMeta, error)) (*Page[T], error) {
	page := &Page[T]{}
	var err error
	page.TypeMeta, page.ListMeta, err = read(func(item item) error {
		obj, err := h.codec.decode(&h.endpoint, item)
		if err != nil {
			return h.decodeError(verb, err)
		}
		page.Items = append(page.Items, obj)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// listPage sends one list request and calls handle for every item.
func (e *endpoint) listPage(ctx context.Context, form form, opts *metav1.ListOptions, handle func(item) error) (list metav1.TypeMeta, meta metav1.ListMeta, err error) {
	request := pageRequest{endpoint: e, form: form, opts: valueOf(opts), keepsAll: true}
	response, err := request.send(ctx) //nolint:bodyclose // by close
	if err != nil {
		return list, meta, err
	}
	page := request.read(ctx, response)
	defer page.close()
	return e.handleItems("list", page, handle)
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

// PageOptions configure how [Handle.List] reads a list of several pages. The callbacks are called in the goroutine of
// the loop, between two objects.
type PageOptions struct {
	// OnPage is called after a page's last object with the page's metadata: the list's resourceVersion, the continue token,
	// "" after the last page, and the number of remaining objects where the server counts them.
	OnPage func(metav1.ListMeta)
	// OnExpired is called when the server no longer has the list's resourceVersion, and chooses how to proceed.
	// apierrors.IsResourceExpired or IsGone holds for err. It may be called for any page, and repeatedly. nil means always
	// [ExpiryFail].
	OnExpired func(err error) ExpiryPolicy
}

// ExpiryPolicy selects how List proceeds when the server no longer has the list's resourceVersion. Before it continues or
// restarts, List waits, for up to half a minute if that happens repeatedly, or until ctx ends.
type ExpiryPolicy int

const (
	// ExpiryFail ends the list with the error.
	ExpiryFail ExpiryPolicy = iota
	// ExpiryContinue lists the remaining objects as they are now: every object at most once, but of different
	// resourceVersions. Objects created or deleted in the meantime may be listed or missing. If the server offers no
	// continue token for that, the list fails.
	ExpiryContinue
	// ExpiryRestart lists again from the first page, at a new resourceVersion: objects are yielded again.
	ExpiryRestart
)

// WithPageOptions returns a handle whose List uses these options; nil means defaults.
func (h *Handle[T]) WithPageOptions(opts *PageOptions) *Handle[T] {
	changed := *h
	changed.pageOptions = valueOf(opts)
	return &changed
}

// listPager requests the pages of a list in sequence and yields their objects. It prefetches a single page: the next page is
// requested once the caller has taken a second object and the continue token is known. Its body waits in the connection's buffers.
type listPager struct {
	pageRequest // of the next page

	prefetch <-chan pageResult // of the next page, nil if it has not been requested
	yielded  bool              // and the caller has continued
	expiries int
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
		if !p.continueFrom(status.ErrStatus.Continue) {
			return err
		}
	default:
		return err
	}
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
