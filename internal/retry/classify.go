package retry

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// terminalError marks an error as terminal: a new attempt would return it again.
type terminalError struct{ error }

// Terminal marks err so that [IsTerminal] reports true. Its text, errors.Is and errors.As are unchanged. nil stays nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &terminalError{err}
}

func (e *terminalError) Unwrap() error { return e.error }

// IsTerminal reports whether the same request would most likely fail again: err is marked by [Terminal], an ended context, an
// untrusted certificate, or a Status error with a code from 400 to 499 except 408, 410 and 429. A conflict (409) is terminal for
// the request, though not for a caller that reads the object again: see [IsConflict].
//
// 401 and 403 are terminal here; long-lived calls check [Denials] first.
func IsTerminal(err error) bool {
	return IsRejected(err) || statusCode(err) == 0 && (errors.Is(err, context.Canceled) || hasDeadlineExceeded(err))
}

// hasDeadlineExceeded reports whether err wraps context.DeadlineExceeded itself. errors.Is would also find time-outs of a single
// attempt, those of dialing and of http.Client: their methods Is match it.
func hasDeadlineExceeded(err error) bool {
	if err == context.DeadlineExceeded { //nolint:errorlint // itself
		return true
	}
	switch wrapper := err.(type) { //nolint:errorlint // each error of the chain
	case interface{ Unwrap() error }:
		return hasDeadlineExceeded(wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(wrapper.Unwrap(), hasDeadlineExceeded)
	}
	return false
}

// IsRejected is [IsTerminal] without ended contexts, for calls that check their own ctx first. All remaining time-outs belong to
// a single attempt, such as http.Client's.
func IsRejected(err error) bool {
	var marked *terminalError
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &marked) || errors.As(err, &untrusted) {
		return true
	}
	switch code := statusCode(err); code {
	case http.StatusRequestTimeout, http.StatusGone, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

// IsConflict reports whether the object has changed since it was read: a retry with the current object may succeed.
func IsConflict(err error) bool { return apierrors.IsConflict(err) }

// IsExpired reports whether a list or watch must be repeated without its resourceVersion or continue token: 410 with reason
// Expired or Gone, or a resourceVersion newer than the server's.
func IsExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// IsDenied reports whether the response was 401 or 403.
func IsDenied(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }

// IsPathNotFound reports whether the server does not serve a request's path: the resource, its version or its
// subresource. The API server then returns 404 without a Status of its own.
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

// IsObjectNotFound reports whether the server serves the resource but has no object of the name.
func IsObjectNotFound(err error) bool { return apierrors.IsNotFound(err) && !IsPathNotFound(err) }

func statusCode(err error) int32 {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return 0
	}
	return status.Status().Code
}

// defaultDenialGrace is the time in which a starting server may return 401 and 403: it denies every request until it has read its
// RBAC rules. That takes up to a second on an idle machine.
const defaultDenialGrace = 5 * time.Second

// Denials distinguishes denials of a starting server from permanent denials. The zero value is ready to use. It is not safe for
// concurrent use.
type Denials struct {
	Grace time.Duration // duration of transient denials; 0 means five seconds
	since time.Time
}

// Record records the start of denials. It reports whether err is a transient 401 or 403: denials began less than Grace ago. Call it
// with the result of every attempt, nil included; any different result ends a period of denials.
func (d *Denials) Record(err error) (isTransient bool) {
	if !IsDenied(err) {
		d.since = time.Time{}
		return false
	}
	if d.since.IsZero() {
		d.since = time.Now()
	}
	return time.Since(d.since) < cmp.Or(d.Grace, defaultDenialGrace)
}
