package dynamic

import (
	"context"
	"io"
	"iter"

	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultPageSize is how many objects List asks for at once, as in client-go's pager.
const defaultPageSize = 500

// List yields every object that opts select, in the server's order, decoding them off the wire one by one: memory does
// not grow with the list. It asks for pages of opts.Limit objects, 500 unless set; all pages show the same moment. From
// the second object on it asks for the next page while this one is read, as soon as the server has said that there is
// one. Where the list takes longer than the server keeps its moment, about five minutes, it ends with an error that
// apierrors.IsResourceExpired knows, unless [Resource.Paging] says what else to do. A loop that takes longer than a minute
// for a page wants a smaller Limit: servers give up on large answers that nobody reads. Breaking out of the loop ends its
// requests and closes their connections. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks.
func (r *Resource) List(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[*unstructured.Object, error] {
	return listAs(ctx, r, opts, r.objects())
}

// listAs yields the objects of a list as read reads them.
func listAs[T any](ctx context.Context, r *Resource, opts *metav1.ListOptions, read reader[T]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		ctx, leave := context.WithCancel(ctx)
		l := &listing[T]{of: r, read: read}
		if opts != nil {
			l.opts = *opts
		}
		if l.opts.Limit == 0 {
			l.opts.Limit = defaultPageSize
		}
		defer func() {
			leave()
			l.next.discard()
		}()
		for {
			more, err := l.page(ctx, yield)
			if err != nil {
				more, err = true, l.expired(ctx, err)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !more {
				return
			}
		}
	}
}

// listing is one run through a list.
type listing[T any] struct {
	of       *Resource
	read     reader[T]
	opts     metav1.ListOptions // of the page that is next
	next     *pending           // its request where it has been made, else nil
	goesOn   bool               // the caller has come for a second object
	expiries int
}

// page yields the objects of one page, and tells whether the list goes on behind it.
func (l *listing[T]) page(ctx context.Context, yield func(*T, error) bool) (more bool, err error) {
	if l.next == nil {
		l.next = l.of.ask(ctx, l.opts)
	}
	this := l.next
	l.next = nil
	response, err := this.answer()
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	items := unstructured.NewListDecoder(response.Body)
	for {
		obj, err := l.read.item(items)
		if err == io.EOF { //nolint:errorlint // a wrapped EOF is a connection that broke, not the end
			meta := items.Meta()
			l.follow(meta)
			if hear := l.of.paging.Page; hear != nil {
				hear(meta)
			}
			return meta.Continue != "", nil
		}
		if err != nil {
			return false, l.of.brokenList("list", this.request, err)
		}
		if l.goesOn && l.next == nil && l.follow(items.Meta()) {
			l.next = l.of.ask(ctx, l.opts)
		}
		if !yield(obj, nil) {
			return false, nil
		}
		l.goesOn = true
	}
}

// follow turns to the page behind the one of that metadata, if there is one.
func (l *listing[T]) follow(meta metav1.ListMeta) bool {
	if meta.Continue == "" {
		return false
	}
	// The token stands for the first page's moment; the server refuses a resourceVersion beside it.
	l.opts.Continue, l.opts.ResourceVersion, l.opts.ResourceVersionMatch = meta.Continue, "", ""
	return true
}
