package retry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errCause = errors.New("the operator asked for it")

func TestContextError_CarriesErrorAndCause(t *testing.T) {
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errCause)
	timedOut, stop := context.WithTimeoutCause(t.Context(), 0, errCause)
	defer stop()
	plain, end := context.WithCancel(t.Context())
	end()
	wrapped, endWrapped := context.WithCancelCause(t.Context())
	endWrapped(fmt.Errorf("the queue drains: %w", context.Canceled))
	for _, c := range []struct {
		name string
		ctx  context.Context
		want []error
		text string
	}{
		{"cancelled with a cause", cancelled, []error{context.Canceled, errCause}, "context canceled: the operator asked for it"},
		{"timed out with a cause", timedOut, []error{context.DeadlineExceeded, errCause}, "context deadline exceeded: the operator asked for it"},
		{"cancelled", plain, []error{context.Canceled}, "context canceled"},
		{"the cause wraps the error", wrapped, []error{context.Canceled}, "the queue drains: context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := ContextError(c.ctx)
			assert.EqualError(t, err, c.text)
			for _, want := range c.want {
				assert.ErrorIs(t, err, want)
			}
		})
	}
	assert.NoError(t, ContextError(t.Context()))
}

func TestWithContextError_ReplacesHalves(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	assert.Equal(t, io.EOF, WithContextError(ctx, io.EOF), "ctx has not ended")
	cancel(errCause)
	assert.NoError(t, WithContextError(ctx, nil))
	whole := fmt.Errorf("GET /api: %w", ContextError(ctx))
	assert.Equal(t, whole, WithContextError(ctx, whole))
	for _, half := range []error{errCause, context.Canceled, io.ErrUnexpectedEOF} {
		err := WithContextError(ctx, half)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, errCause)
	}
}

func TestBackoff_DoublesUpToMax(t *testing.T) {
	b := Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	for n, want := range map[int]time.Duration{
		-1: 0, 0: 0, 1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 4: 800 * time.Millisecond,
		5: time.Second, 6: time.Second, math.MaxInt: time.Second,
	} {
		assert.Equal(t, want, b.Delay(n), n)
	}
	assert.Equal(t, time.Second, Backoff{Min: time.Minute, Max: time.Second}.Delay(1))
}

func TestJitter_AddsUpToAHalf(t *testing.T) {
	for range 1000 {
		got := Jitter(t.Context(), time.Second)
		assert.GreaterOrEqual(t, got, time.Second)
		assert.LessOrEqual(t, got, 1500*time.Millisecond)
	}
	assert.Zero(t, Jitter(t.Context(), 0))
	assert.Zero(t, Jitter(t.Context(), -time.Second))
}

func TestSleep_EndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.NoError(t, Sleep(t.Context(), time.Second))
		assert.Equal(t, time.Second, time.Since(began))
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errCause)
		defer cancel()
		err := Sleep(ctx, time.Hour)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, errCause)
		assert.Equal(t, 2*time.Second, time.Since(began))
		assert.ErrorIs(t, Sleep(ctx, 0), errCause, "a context that has ended before")
		assert.ErrorIs(t, Backoff{Min: 1, Max: 1}.Wait(ctx, 1), errCause)
	})
}

// With the race detector, Go 1.26 crashes when several goroutines of a bubble receive from timers that are due already.
func TestSleep_ManyGoroutinesWithoutTimer(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			var sleepers sync.WaitGroup
			for range 200 {
				sleepers.Go(func() {
					for range 20 {
						assert.NoError(t, Sleep(t.Context(), 0))
					}
				})
			}
			sleepers.Wait()
		})
	}
}

var widgets = schema.GroupResource{Group: "example.com", Resource: "widgets"}

func status(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason}}
}

// unserved is the error of a path that the server does not serve, as transport makes it from a body that is no Status.
func unserved() error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "GET", widgets, "web", "404 page not found", 0, true)
}

func tooLarge() error {
	err := apierrors.NewTimeoutError("Too large resource version: 9, current: 3", 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	return err
}

// dialTimeout returns the error of a dial whose time-out has passed. No context has ended.
func dialTimeout(t *testing.T) error {
	t.Helper()
	_, err := (&net.Dialer{Timeout: time.Nanosecond}).DialContext(t.Context(), "tcp", "127.0.0.1:1")
	require.ErrorIs(t, err, context.DeadlineExceeded, "by its method Is")
	return err
}

func TestIsTerminal_ByError(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"none", nil, false},
		{"a broken connection", io.ErrUnexpectedEOF, false},
		{"marked", fmt.Errorf("get: %w", Terminal(io.EOF)), true},
		{"an untrusted certificate", &tls.CertificateVerificationError{Err: io.EOF}, true},
		{"cancelled", context.Canceled, true},
		{"a deadline", fmt.Errorf("get: %w", fmt.Errorf("%w: %w", context.DeadlineExceeded, errCause)), true},
		{"a time-out of dialing", fmt.Errorf("get: %w", dialTimeout(t)), false},
		{"bad request", status(400, metav1.StatusReasonBadRequest), true},
		{"unauthorized", status(401, metav1.StatusReasonUnauthorized), true},
		{"forbidden", apierrors.NewForbidden(widgets, "web", io.EOF), true},
		{"not found", apierrors.NewNotFound(widgets, "web"), true},
		{"request timeout", status(408, metav1.StatusReasonTimeout), false},
		{"conflict", apierrors.NewConflict(widgets, "web", io.EOF), true},
		{"expired", apierrors.NewResourceExpired("old"), false},
		{"too many requests", apierrors.NewTooManyRequests("later", 1), false},
		{"internal", status(500, metav1.StatusReasonInternalError), false},
		{"unavailable, wrapped", fmt.Errorf("get: %w", apierrors.NewServiceUnavailable("starting")), false},
		{"unavailable behind a context's end", fmt.Errorf("%w: %w", context.Canceled, apierrors.NewServiceUnavailable("x")), false},
	} {
		assert.Equal(t, c.want, IsTerminal(c.err), c.name)
		isContext := errors.Is(c.err, context.Canceled) || errors.Is(c.err, context.DeadlineExceeded)
		assert.Equal(t, c.want && !isContext, IsRejected(c.err), c.name)
	}
	assert.NoError(t, Terminal(nil))
	assert.ErrorIs(t, Terminal(io.EOF), io.EOF)
	assert.EqualError(t, Terminal(io.EOF), "EOF")
}

func TestIsExpired_ByError(t *testing.T) {
	for _, err := range []error{
		apierrors.NewResourceExpired("old"), status(410, metav1.StatusReasonGone), tooLarge(), fmt.Errorf("watch: %w", status(410, metav1.StatusReasonGone)),
	} {
		assert.True(t, IsExpired(err), err)
	}
	for _, err := range []error{nil, io.EOF, apierrors.NewTimeoutError("slow", 1), apierrors.NewConflict(widgets, "web", io.EOF)} {
		assert.False(t, IsExpired(err), err)
	}
	assert.True(t, IsConflict(apierrors.NewConflict(widgets, "web", io.EOF)))
	assert.False(t, IsConflict(status(410, metav1.StatusReasonGone)))
}

func TestIsPathNotFound_PathOrObject(t *testing.T) {
	for _, c := range []struct {
		name         string
		err          error
		path, object bool
	}{
		{"none", nil, false, false},
		{"another error", io.EOF, false, false},
		{"the object", apierrors.NewNotFound(widgets, "web"), false, true},
		{"the object, wrapped", fmt.Errorf("get: %w", apierrors.NewNotFound(widgets, "web")), false, true},
		{"the path", unserved(), true, false},
		{"the path, wrapped", fmt.Errorf("get: %w", unserved()), true, false},
		{"a Status without details", status(404, metav1.StatusReasonNotFound), true, false},
		{"a Status without a name", apierrors.NewNotFound(widgets, ""), true, false},
	} {
		assert.Equal(t, c.path, IsPathNotFound(c.err), c.name)
		assert.Equal(t, c.object, IsObjectNotFound(c.err), c.name)
	}
}

func TestDenials_TransientForGraceOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Denials
		denied := apierrors.NewForbidden(widgets, "web", io.EOF)
		assert.False(t, d.Record(nil))
		assert.False(t, d.Record(io.EOF))
		assert.True(t, d.Record(denied))
		time.Sleep(defaultDenialGrace - time.Nanosecond)
		assert.True(t, d.Record(apierrors.NewUnauthorized("starting")))
		time.Sleep(time.Nanosecond)
		assert.False(t, d.Record(denied))
		assert.False(t, d.Record(nil), "a response ends the series")
		assert.True(t, d.Record(denied))
		d.Grace = time.Second
		time.Sleep(time.Second)
		assert.False(t, d.Record(denied))
	})
}

func TestWithRandom_DeterminesJitter(t *testing.T) {
	ctx := WithRandom(t.Context(), func(limit time.Duration) time.Duration { return limit / 2 }, nil)
	assert.Equal(t, 5*time.Second, Jitter(ctx, 4*time.Second))
	assert.Equal(t, 2*time.Second, Random(ctx, 4*time.Second))
	for range 100 {
		got := Random(t.Context(), time.Second)
		assert.GreaterOrEqual(t, got, time.Duration(0))
		assert.LessOrEqual(t, got, time.Second)
	}
}

func TestBackoff_LargeMax(t *testing.T) {
	assert.Equal(t, time.Duration(math.MaxInt64), Backoff{Min: time.Second, Max: math.MaxInt64}.Delay(100))
}

func TestBucket_TakesWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Bucket{Burst: 3, Interval: time.Second}
		assert.False(t, b.Allow(4), "more than the burst")
		assert.True(t, b.Allow(3))
		assert.False(t, b.Allow(1))
		assert.Equal(t, 2*time.Second, b.Reserve(2))
		time.Sleep(2500 * time.Millisecond)
		assert.False(t, b.Allow(1))
		time.Sleep(500 * time.Millisecond)
		assert.True(t, b.Allow(1))
		time.Sleep(time.Hour)
		assert.Zero(t, b.Reserve(3))
		assert.Equal(t, time.Second, b.Reserve(1))
	})
}
