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

// Page is one answer to a list request, of objects or of what they are read as.
type Page[T any] struct {
	Items []*T
	// TypeMeta is the list's own kind and apiVersion, such as PodList and v1; empty if the server answered with no list.
	metav1.TypeMeta
	// ListMeta has the resourceVersion to watch from, the token that continues the list where it was cut by
	// ListOptions.Limit, and how many items remain then, where the server counts them.
	metav1.ListMeta
}

// ListPage makes one list request, with opts as they are, and reads all of its answer. For the next page pass the
// page's Continue in opts. [Resource.List] does that by itself and holds one object at a time.
func (r *Resource) ListPage(ctx context.Context, opts *metav1.ListOptions) (*Page[unstructured.Object], error) {
	return listPageAs(ctx, r, opts, r.objects())
}

// listPageAs makes one list request and reads its items with read.
func listPageAs[T any](ctx context.Context, r *Resource, opts *metav1.ListOptions, read reader[T]) (*Page[T], error) {
	request, err := r.collectionRequest("list", opts)
	if err != nil {
		return nil, err
	}
	response, err := r.do(ctx, request, list) //nolint:bodyclose // by readAll
	if err != nil {
		return nil, err
	}
	return readAll(r, "list", request, response, read)
}

// collectionRequest is the request for the objects that opts select, checked.
func (r *Resource) collectionRequest(verb string, opts *metav1.ListOptions) (*transport.Request, error) {
	path, err := r.collectionPath(verb)
	if err != nil {
		return nil, err
	}
	if opts != nil && opts.Watch && verb != "watch" {
		return nil, r.refuse(verb, "", "ListOptions.Watch is set: call Watch to watch")
	}
	if err := r.checkSelectors(verb, opts); err != nil {
		return nil, err
	}
	query, err := queryOf(opts)
	if err != nil {
		return nil, err
	}
	return &transport.Request{Method: http.MethodGet, Path: path, Query: query}, nil
}

// readAll reads and closes an answer that is a list; verb only serves the error.
func readAll[T any](r *Resource, verb string, request *transport.Request, response *http.Response, read reader[T]) (*Page[T], error) {
	defer response.Body.Close()
	page := &Page[T]{}
	items := unstructured.NewListDecoder(response.Body)
	for {
		item, err := read.item(items)
		if err == io.EOF { //nolint:errorlint // a wrapped EOF is a connection that broke, not the end
			page.ListMeta, page.TypeMeta = items.Meta(), r.listInForm(items.TypeMeta())
			return page, nil
		}
		if err != nil {
			return nil, r.brokenList(verb, request, err)
		}
		page.Items = append(page.Items, item)
	}
}

// brokenList is the error of an answer that is no whole list.
func (r *Resource) brokenList(verb string, request *transport.Request, err error) error {
	return fmt.Errorf("%s %s: %s %s%s: %w", verb, r, request.Method, r.conn.Server(), request.Path, err)
}
