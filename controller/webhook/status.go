package webhook

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cache"
)

// statusOf returns the status of a rejected request. ctx is the function's. code and reason are those of a plain error.
func statusOf(ctx context.Context, err error, code int32, reason metav1.StatusReason) *metav1.Status {
	status := metav1.Status{Code: code, Reason: reason}
	var panicked *cache.PanicError
	var known apierrors.APIStatus
	switch {
	case errors.As(err, &panicked): // its value is for the log only
		status = apierrors.NewInternalError(errors.New("the webhook panicked")).ErrStatus
		status.Status = metav1.StatusFailure
		return &status
	case ctx.Err() != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)):
		status.Code = http.StatusGatewayTimeout
		status.Reason = metav1.StatusReasonTimeout
	case errors.As(err, &known) && known.Status().Code >= http.StatusBadRequest:
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{}
	status.Status = metav1.StatusFailure
	status.Message = err.Error()
	return &status
}
