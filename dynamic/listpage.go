package dynamic

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Page is one answer to a list request.
type Page struct {
	Items []*unstructured.Object
	// ListMeta has the resourceVersion to watch from, the token that continues the list where it was cut by
	// ListOptions.Limit, and how many items remain then, where the server counts them.
	metav1.ListMeta
}

// ListPage makes one list request, with opts as they are, and reads all of its answer. For the next page pass the
// page's Continue in opts. [Resource.List] does that by itself and holds one object at a time.
func (r *Resource) ListPage(ctx context.Context, opts *metav1.ListOptions) (*Page, error) {
	page := &Page{}
	meta, err := r.readPage(ctx, opts, func(obj *unstructured.Object) bool {
		page.Items = append(page.Items, obj)
		return true
	})
	if err != nil {
		return nil, err
	}
	page.ListMeta = meta
	return page, nil
}

// readPage makes one list request and hands its items over as they come off the wire, until take returns false.
func (r *Resource) readPage(ctx context.Context, opts *metav1.ListOptions, take func(*unstructured.Object) bool) (metav1.ListMeta, error) {
	path, err := r.collectionPath("list")
	if err != nil {
		return metav1.ListMeta{}, err
	}
	if opts != nil && opts.Watch {
		return metav1.ListMeta{}, r.refuse("list", "", "ListOptions.Watch is set: call Watch to watch")
	}
	query, err := queryOf(opts)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	response, err := r.conn.Do(ctx, &transport.Request{Method: http.MethodGet, Path: path, Query: query})
	if err != nil {
		return metav1.ListMeta{}, err
	}
	defer response.Body.Close()
	items := unstructured.NewListDecoder(response.Body)
	for {
		obj, err := items.Next()
		if err == io.EOF { // a wrapped EOF is a connection that broke, not the end
			return items.Meta(), nil
		}
		if err != nil {
			return metav1.ListMeta{}, fmt.Errorf("list %s: GET %s%s: %w", r, r.conn.Server(), path, err)
		}
		if !take(obj) {
			return items.Meta(), nil
		}
	}
}
