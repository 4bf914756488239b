package dynamic

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	// resourceVersions. Objects created or deleted in the meantime may be listed or missing. The list fails if the server
	// offers no continue token for that, or if some objects of the expired page have been yielded.
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
