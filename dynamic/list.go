package dynamic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// List yields every object that opts select, in the server's order. Objects are decoded one by one from the connection,
// so memory does not grow with the list. List requests pages of opts.Limit objects, 500 by default, which all have the
// first page's resourceVersion. From the second object on, the next page is requested while the current one is read, as
// soon as the server has sent its continue token.
//
// If the list takes longer than the server keeps that resourceVersion, about five minutes, it ends with an error for which
// apierrors.IsResourceExpired holds, unless [Resource.Paging] chooses otherwise. Set a smaller Limit if the loop takes
// longer than a minute for a page: servers close connections on which a large response is not read. Breaking out of the
// loop cancels its requests and closes their connections. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks.
func (r *Resource) List(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[*unstructured.Object, error] {
	return listAs(ctx, r, opts, r.objectDecoder())
}

func listAs[T any](ctx context.Context, r *Resource, opts *metav1.ListOptions, decoder decoder[T]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		p := &listPager[T]{resource: r, decoder: decoder, opts: valueOf(opts)}
		defer p.close()
		defer cancel()
		if err := p.run(ctx, func() (bool, error) { return p.page(ctx, yield) }); err != nil {
			yield(nil, err)
		}
	}
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
// Continue in opts. [Resource.List] does that by itself and holds one object at a time. A page that exceeds the connection's
// MemoryLimits is a *unstructured.LimitError.
func (r *Resource) ListPage(ctx context.Context, opts *metav1.ListOptions) (*Page[unstructured.Object], error) {
	return listPageAs(ctx, r, opts, r.objectDecoder())
}

func listPageAs[T any](ctx context.Context, r *Resource, opts *metav1.ListOptions, decoder decoder[T]) (*Page[T], error) {
	response, err := r.requestPage(ctx, opts)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return decodePage(r, "list", response.Body, decoder)
}

// decodePage decodes the body of a response that is a list; verb is for the error.
func decodePage[T any](r *Resource, verb string, body io.Reader, decoder decoder[T]) (*Page[T], error) {
	page := &Page[T]{}
	items := r.limits().NewPageDecoder(decoder.interner().Source(body))
	for {
		item, err := decoder.listItem(items)
		if err == io.EOF { //nolint:errorlint // a wrapped EOF is a connection that broke, not the end
			page.ListMeta = items.Meta()
			page.TypeMeta = r.representList(items.TypeMeta())
			return page, nil
		}
		if err != nil {
			return nil, r.decodeError(verb, err)
		}
		page.Items = append(page.Items, item)
	}
}

// decodeError is for the response to a call on the handle's collection.
func (r *Resource) decodeError(verb string, err error) error {
	return fmt.Errorf("%s %s: %s %s%s: %w", verb, r, method(verb), r.conn.Server(), r.path(""), err)
}

// defaultPageSize is the number of objects that List requests at once, as in client-go's pager.
const defaultPageSize = 500

// PagingOptions configure how [Resource.List] reads a list of several pages. The callbacks are called in the goroutine of
// the loop, between two objects.
type PagingOptions struct {
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

// Paging returns a handle whose List uses these options; nil means defaults.
func (r *Resource) Paging(opts *PagingOptions) *Resource {
	chosen := *r
	chosen.paging = valueOf(opts)
	return &chosen
}

// listPager requests the pages of one list one after the other and yields their objects. It prefetches one page: once the
// caller has taken a second object and the continue token is known, the next page is requested, and its body waits in the
// connection's buffers.
type listPager[T any] struct {
	resource *Resource
	decoder  decoder[T]
	opts     metav1.ListOptions // of the next page
	prefetch <-chan pageResult  // of the next page, nil if it has not been requested
	yielded  bool               // and the caller has continued
	expiries int
}

// run calls page, which reads one page and reports whether there is another, until there is none or the list fails. An
// expired list is continued as the caller chose.
func (p *listPager[T]) run(ctx context.Context, page func() (more bool, err error)) error {
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
func (p *listPager[T]) close() {
	if p.prefetch == nil {
		return
	}
	if next := <-p.prefetch; next.err == nil {
		_ = next.response.Body.Close()
	}
}

// page yields the objects of one page and reports whether there is another.
func (p *listPager[T]) page(ctx context.Context, yield func(*T, error) bool) (more bool, err error) {
	if p.prefetch == nil {
		p.prefetch = p.resource.prefetchPage(ctx, p.opts)
	}
	current := <-p.prefetch
	p.prefetch = nil
	if current.err != nil {
		return false, current.err
	}
	defer current.response.Body.Close()
	items := p.resource.limits().NewListDecoder(p.decoder.interner().Source(current.response.Body))
	for {
		obj, err := p.decoder.listItem(items)
		if err == io.EOF { //nolint:errorlint // a wrapped EOF is a connection that broke, not the end
			return p.endPage(items.Meta()), nil
		}
		if err != nil {
			return false, p.resource.decodeError("list", err)
		}
		if p.yielded && p.prefetch == nil && p.continueFrom(items.Meta().Continue) {
			p.prefetch = p.resource.prefetchPage(ctx, p.opts)
		}
		if !yield(obj, nil) {
			return false, nil
		}
		p.yielded = true
	}
}

// endPage reports a page whose items have been processed, prepares the request of the next one, and reports whether there is
// one.
func (p *listPager[T]) endPage(meta metav1.ListMeta) bool {
	if onPage := p.resource.paging.OnPage; onPage != nil {
		onPage(meta)
	}
	return p.continueFrom(meta.Continue)
}

// continueFrom sets the options for the page of a continue token, "" for the first page, and reports whether there is a
// token. It contains the list's resourceVersion, and the server rejects requests that have both.
func (p *listPager[T]) continueFrom(token string) bool {
	p.opts.Continue = token
	p.opts.ResourceVersion = ""
	p.opts.ResourceVersionMatch = ""
	return token != ""
}

// handleExpired returns nil if err reports an expired list and OnExpired chooses to proceed, after a delay, and otherwise
// an error.
func (p *listPager[T]) handleExpired(ctx context.Context, err error) error {
	var status *apierrors.StatusError
	isExpired := errors.As(err, &status) && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err))
	if !isExpired || p.resource.paging.OnExpired == nil {
		return err
	}
	switch p.resource.paging.OnExpired(err) {
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
		return fmt.Errorf("list %s: back off after %w: %w", p.resource, err, ended)
	}
	return nil
}

// pageResult is the result of a list request. The caller closes the response, whose body has not been read.
type pageResult struct {
	response *http.Response
	err      error
}

// prefetchPage calls requestPage in the background and returns a channel for its result.
func (r *Resource) prefetchPage(ctx context.Context, opts metav1.ListOptions) <-chan pageResult {
	results := make(chan pageResult, 1)
	go func() {
		response, err := r.requestPage(ctx, &opts) //nolint:bodyclose // by the receiver
		results <- pageResult{response, err}
	}()
	return results
}

func (r *Resource) requestPage(ctx context.Context, opts *metav1.ListOptions) (*http.Response, error) {
	request, err := r.collectionRequest("list", opts)
	if err != nil {
		return nil, err
	}
	return r.do(ctx, request, true)
}
