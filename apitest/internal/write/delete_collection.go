package write

import (
	"context"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// DeleteCollection executes a DELETE of the objects selected by matches, or of all if it is nil. The caller parses the request's
// selectors. The response is the list of the selected objects.
func (w *Writer) DeleteCollection(ctx context.Context, req *Request, body Body, matches func(obj map[string]any) bool) (result Result, err error) {
	op := w.begin(ctx, req)
	defer op.finish(&result, &err)
	options, err := deleteOptions(req.Query, body)
	if err != nil {
		return Result{}, err
	}
	op.warnOrphans(options)
	stored, revision, err := w.store.List(req.Resource.Group, req.Resource.Plural, op.objectNamespace(), 0)
	if err != nil {
		return Result{}, err
	}
	items := []any{}
	for _, object := range stored {
		obj := w.viewOf(req.Resource, object)
		if matches != nil && !matches(obj) {
			continue
		}
		if err := op.deleteItem(ctx, obj, options); err != nil && !apierrors.IsNotFound(err) {
			return Result{}, err
		}
		if req.Resource.Definition == nil { // items of typed lists have no kind
			delete(obj, "kind")
			delete(obj, "apiVersion")
		}
		items = append(items, obj)
	}
	metadata := map[string]any{"resourceVersion": strconv.FormatInt(revision, 10)}
	if req.Resource.Definition != nil {
		metadata["continue"] = "" // lists of custom resources are untyped
	}
	list := map[string]any{"kind": req.Resource.ListKind, "apiVersion": req.Resource.APIVersion(), "items": items, "metadata": metadata}
	return Result{Object: list, Code: http.StatusOK}, nil
}

func (op *operation) deleteItem(ctx context.Context, obj map[string]any, options *metav1.DeleteOptions) error {
	item := &unstructuredv1.Unstructured{Object: obj}
	req := *op.req
	req.Namespace = item.GetNamespace()
	req.Name = item.GetName()
	one := op.begin(ctx, &req)
	one.options.dryRun = options.DryRun
	one.isOfMany = true
	_, _, err := one.delete(options)
	op.warnings = append(op.warnings, one.warnings...)
	return err
}
