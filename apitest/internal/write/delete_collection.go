package write

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// DeleteCollection executes a DELETE of the objects returned by list: a page of the selected objects, which is the response.
func (w *Writer) DeleteCollection(ctx context.Context, req *Request, body Body, list func() (map[string]any, error)) (result Result, err error) {
	op := w.begin(ctx, req)
	defer op.finish(&result, &err)
	options, err := deleteOptions(req.Query, body)
	if err != nil {
		return Result{}, err
	}
	op.warnOrphans(options)
	page, err := list()
	if err != nil {
		return Result{}, err
	}
	for _, item := range nested.Maps(page, "items") {
		if err := op.deleteItem(ctx, item, options); err != nil && !apierrors.IsNotFound(err) {
			return Result{}, err
		}
	}
	return Result{Object: page, Code: http.StatusOK}, nil
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
