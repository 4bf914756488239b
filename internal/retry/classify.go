package retry

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// terminalError marks an error of this client as one that another attempt would return again.
type terminalError struct{ error }

// Terminal marks err so that [IsTerminal] reports true. Its text and errors.Is and errors.As are those of err. nil stays
// nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &terminalError{err}
}

func (e *terminalError) Unwrap() error { return e.error }

// IsTerminal reports whether the same request would most likely fail in the same way again: what [Terminal] marked, an
// ended context, a certificate that cannot be verified, and Status errors with a code from 400 to 499 except 408, 410 and
// 429. A conflict (409) is terminal for the request, though not for a caller that reads the object and tries again: see
// [IsConflict].
//
// 401 and 403 are terminal here. A server that has just started returns them to everybody for up to a second or so;
// long-lived calls put [Denials] in front.
func IsTerminal(err error) bool {
	return IsRejected(err) ||
		statusCode(err) == 0 && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// IsRejected is [IsTerminal] without ended contexts, for calls that look at their own ctx first: what is left then are
// time-outs of one attempt, such as http.Client's.
func IsRejected(err error) bool {
	var marked *terminalError
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &marked) || errors.As(err, &untrusted) {
		return true
	}
	code := statusCode(err)
	switch code {
	case http.StatusRequestTimeout, http.StatusGone, http.StatusTooManyRequests:
		return false
	}
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}

// IsConflict reports whether the object has changed since it was read: reading it again and repeating the change may
// succeed.
func IsConflict(err error) bool { return apierrors.IsConflict(err) }

// IsExpired reports whether a list or watch must begin again without its resourceVersion or continue token: 410 with
// reason Expired or Gone, and a resourceVersion that is newer than the server's.
func IsExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// IsDenied reports whether the server answered 401 or 403.
func IsDenied(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }

// IsPathNotFound reports whether the server has nothing at a request's path: it does not serve the resource, its version
// or its subresource. The API server answers such a request with 404 and without a Status of its own.
func IsPathNotFound(err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" ||
		apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// IsObjectNotFound reports whether the server serves the path's resource and has no object of the name.
func IsObjectNotFound(err error) bool { return apierrors.IsNotFound(err) && !IsPathNotFound(err) }

func statusCode(err error) int32 {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return 0
	}
	return status.Status().Code
}

// denialGrace is for how long 401 and 403 may be those of a server that is starting: it denies every request until it
// has read who may do what, which takes up to a second on an idle machine.
const denialGrace = 5 * time.Second

// Denials tells a server that is starting from one that denies a request for good. The zero value is ready. It is not
// safe for concurrent use.
type Denials struct {
	Grace time.Duration // for how long denials may pass; 0 means five seconds
	since time.Time
}

// Transient reports whether err is a 401 or 403 that may pass: denials have been returned for less than the grace since
// the last call with another error. Call it with the result of every attempt, nil included.
func (d *Denials) Transient(err error) bool {
	if !IsDenied(err) {
		d.since = time.Time{}
		return false
	}
	if d.since.IsZero() {
		d.since = time.Now()
	}
	grace := d.Grace
	if grace == 0 {
		grace = denialGrace
	}
	return time.Since(d.since) < grace
}
