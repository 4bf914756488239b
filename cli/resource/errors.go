package resource

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

// ListError rewrites the message of a rejected list as kubectl does, with the resource and the selectors. Only errors 400 and 404
// are rewritten.
func ListError(err error, r *dynamic.Resource, opts *metav1.ListOptions) error {
	var status *apierrors.StatusError
	if apierrors.IsResourceExpired(err) || !apierrors.IsBadRequest(err) && !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return err
	}
	changed := *status
	what := r.APIResource().GVR.String()
	if opts.LabelSelector == "" && opts.FieldSelector == "" {
		changed.ErrStatus.Message = fmt.Sprintf("Unable to list %q: %v", what, status.ErrStatus.Message)
	} else {
		changed.ErrStatus.Message = fmt.Sprintf("Unable to find %q that match label selector %q, field selector %q: %v",
			what, opts.LabelSelector, opts.FieldSelector, status.ErrStatus.Message)
	}
	return &changed
}

// getError returns the error of a Get. For an object that is not found it is, as in kubectl, the error of its namespace if that is not
// found either.
func getError(ctx context.Context, r *dynamic.Resource, err error) error {
	if !apierrors.IsNotFound(err) || !r.APIResource().Namespaced {
		return err
	}
	path, _ := r.Path("")
	_, behind, _ := strings.Cut(path, "/namespaces/")
	namespace, _, _ := strings.Cut(behind, "/")
	if namespace == "" || namespace == metav1.NamespaceDefault {
		return err
	}
	response, missing := r.Conn().Do(ctx, &transport.Request{Path: "/api/v1/namespaces/" + namespace})
	if missing == nil {
		_ = response.Body.Close()
	}
	if apierrors.IsNotFound(missing) {
		return missing
	}
	return err
}

// contextError returns the error of a ctx that has ended, with its cause.
func contextError(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}
