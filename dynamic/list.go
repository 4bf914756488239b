package dynamic

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
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
	return listAs(ctx, r, opts, r.objectDecoder(nil))
}

// listAs is List for any decoder.
func listAs[T any](ctx context.Context, r *Resource, opts *metav1.ListOptions, decoder decoder[T]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		p := &listPager[T]{resource: r, decoder: decoder}
		defer p.close()
		defer cancel()
		if opts != nil {
			p.opts = *opts
		}
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
// Continue in opts. [Resource.List] does that by itself and holds one object at a time.
func (r *Resource) ListPage(ctx context.Context, opts *metav1.ListOptions) (*Page[unstructured.Object], error) {
	return listPageAs(ctx, r, opts, r.objectDecoder(nil))
}

// listPageAs is ListPage for any decoder.
func listPageAs[T any](ctx context.Context, r *Resource, opts *metav1.ListOptions, decoder decoder[T]) (*Page[T], error) {
	request, err := r.collectionRequest("list", opts)
	if err != nil {
		return nil, err
	}
	response, err := r.do(ctx, request, true) //nolint:bodyclose // by decodePage
	if err != nil {
		return nil, err
	}
	return decodePage(r, "list", request, response, decoder)
}

// decodePage decodes and closes a response that is a list; verb is for the error.
func decodePage[T any](r *Resource, verb string, request *transport.Request, response *http.Response, decoder decoder[T]) (*Page[T], error) {
	defer response.Body.Close()
	page := &Page[T]{}
	items := decoder.newList(response.Body)
	for {
		item, err := decoder.listItem(items)
		if err == io.EOF { //nolint:errorlint // a wrapped EOF is a connection that broke, not the end
			page.ListMeta, page.TypeMeta = items.Meta(), r.representList(items.TypeMeta())
			return page, nil
		}
		if err != nil {
			return nil, r.decodeError(verb, request, err)
		}
		page.Items = append(page.Items, item)
	}
}

// decodeError returns the error for a response that could not be decoded.
func (r *Resource) decodeError(verb string, request *transport.Request, err error) error {
	return fmt.Errorf("%s %s: %s %s%s: %w", verb, r, request.Method, r.conn.Server(), request.Path, err)
}
