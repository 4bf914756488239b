package dynamic

import (
	"context"
	"iter"

	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultPageSize is how many objects List asks for at once, as in client-go's pager.
const defaultPageSize = 500

// List yields every object that opts select, in the server's order, decoding them off the wire one by one: memory does
// not grow with the list. It asks for pages of opts.Limit objects, 500 unless set, and for the next page when the one
// before is used up; all pages show the same moment. Where the list takes longer than the server keeps that moment,
// about five minutes, it ends with an error that apierrors.IsResourceExpired knows. Breaking out of the loop closes the
// connection. See https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks.
func (r *Resource) List(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[*unstructured.Object, error] {
	return func(yield func(*unstructured.Object, error) bool) {
		page := metav1.ListOptions{}
		if opts != nil {
			page = *opts
		}
		if page.Limit == 0 {
			page.Limit = defaultPageSize
		}
		for {
			stopped := false
			meta, err := r.readPage(ctx, &page, func(obj *unstructured.Object) bool {
				stopped = !yield(obj, nil)
				return !stopped
			})
			switch {
			case stopped:
				return
			case err != nil:
				yield(nil, err)
				return
			case meta.Continue == "":
				return
			}
			// The token stands for the first page's moment; the server refuses a resourceVersion beside it.
			page.Continue, page.ResourceVersion, page.ResourceVersionMatch = meta.Continue, "", ""
		}
	}
}
