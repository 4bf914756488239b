// Package leaderelection elects a leader among several processes: the holder of a coordination.k8s.io/v1 Lease.
//
//	leases, err := client.Resource(ctx, "leases.coordination.k8s.io")
//	if err != nil {
//		return err
//	}
//	return leaderelection.Run(ctx, leases.Namespace("shop"), "widgets", nil, func(ctx context.Context, token int64) error {
//		return controller.Run(ctx, widgets, reconcile, nil) // ends with the Lease
//	})
//
// Candidates may also use client-go's leaderelection. See https://kubernetes.io/docs/concepts/architecture/leases/.
package leaderelection

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/fence"
	"github.com/anykind/anykind/unstructured"
)

// ErrLeaseLost reports that this process is no longer the leader: its Lease was taken or deleted, or could not be renewed in
// time. A different process may lead.
var ErrLeaseLost = errors.New("lease lost")

// Options configure a leader election. nil and zero values mean client-go's defaults. All candidates should agree on the
// durations.
type Options struct {
	// Identity is this process' name in the Lease. It must be unique, even across restarts of the process. "" means the host's
	// name and a random suffix.
	Identity string
	// LeaseDuration is the time after the last observed renewal before a candidate takes over. It is rounded up to seconds. 0
	// means 15 seconds.
	LeaseDuration time.Duration
	// RenewDeadline is the time a leader leads without a renewal. It must be less than LeaseDuration: the difference is the
	// leader's time to stop. A renewal without a response is repeated after half of RenewDeadline - RetryPeriod. 0 means 10 seconds.
	RenewDeadline time.Duration
	// RetryPeriod is the interval of renewals and of the candidates' attempts; jitter adds up to a half. 0 means 2 seconds.
	RetryPeriod time.Duration
	// OnNewLeader is called when the observed leader changes, also to this process. It must be quick. A panic in it ends Run with
	// a *[cache.PanicError].
	OnNewLeader func(identity string)
	// Logger receives the leaders, failed attempts and renewals, and the loss of the Lease; nil means slog.Default().
	Logger *slog.Logger
}

// Run waits until this process holds the named Lease, in the namespace of the handle leases, and then calls lead once. It renews
// the Lease until lead returns. Then it releases the Lease, so that a candidate takes over within its RetryPeriod, and returns
// lead's error. A missing Lease is created.
//
// The ctx of lead ends with ctx; the Lease is still renewed while lead finishes its work. It ends with [ErrLeaseLost] as its
// cause when the Lease is taken or deleted, or RenewDeadline after the last successful renewal was sent. That time is the larger
// of the monotonic clock's and the wall clock's progress: the monotonic clock cannot be set, and the wall clock also counts the
// time of a suspended machine. A request with the ctx is not sent after this time, even if the ctx ends late. lead must then stop
// within the rest of LeaseDuration. Run waits for lead and returns an error that
// wraps ErrLeaseLost; call Run again to become a candidate again.
//
// No clock can prevent the late arrival of a stalled leader's request. Writes that must not happen twice need a fencing token:
// token, the Lease's leaseTransitions, increases with every later leader, unless somebody deletes the Lease. The receiver of
// writes stores the highest token and rejects lower tokens.
//
// controller.Run and controller.Operator.Run with lead's ctx end their reconciles with the Lease, without a grace period; see
// [AfterFunc].
//
// A candidate retries through restarts of the server. Terminal errors end Run if the server has not responded before, 401 and 403
// after they have lasted for five seconds: a starting server denies every request. Run needs the verbs get, create and update on
// leases.
func Run(ctx context.Context, leases *dynamic.Resource, name string, opts *Options, lead func(ctx context.Context, token int64) error) error {
	c, err := newCandidate(leases, name, opts)
	if err == nil {
		err = c.acquire(ctx)
	}
	if err != nil {
		return fmt.Errorf("leader election %s %q: %w", leases, name, err)
	}
	c.log.Info("leading", "token", c.term.Transitions)
	if err = c.lead(ctx, lead); errors.Is(err, ErrLeaseLost) {
		return fmt.Errorf("leader election %s %q: %w", leases, name, err)
	}
	return err
}

func newCandidate(leases *dynamic.Resource, name string, opts *Options) (*candidate, error) {
	c := &candidate{leases: leases, name: name, opts: *cmp.Or(opts, &Options{})}
	orDefault(&c.opts.LeaseDuration, 15*time.Second)
	orDefault(&c.opts.RenewDeadline, 10*time.Second)
	orDefault(&c.opts.RetryPeriod, 2*time.Second)
	c.opts.LeaseDuration = (c.opts.LeaseDuration + time.Second - 1).Truncate(time.Second)
	if err := fence.CheckDurations(c.opts.LeaseDuration, c.opts.RenewDeadline, c.opts.RetryPeriod); err != nil {
		return nil, err
	}
	if c.opts.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("default identity: %w", err)
		}
		c.opts.Identity = host + "_" + rand.Text()
	}
	c.deadline = fence.NewDeadline(c.opts.RenewDeadline)
	c.log = cmp.Or(c.opts.Logger, slog.Default()).With("lease", name, "identity", c.opts.Identity)
	return c, nil
}

func orDefault(value *time.Duration, defaultValue time.Duration) {
	if *value <= 0 {
		*value = defaultValue
	}
}

// leaseKey is the key of the Lease's context in the ctx of lead.
type leaseKey struct{}

// AfterFunc calls f once, in its own goroutine, when work continuing after the end of ctx must stop: when the Lease of [Run] is
// lost or released, or ctx ends with [ErrLeaseLost] as its cause. f receives the cause. stop cancels the call, like
// the stop of context.AfterFunc.
func AfterFunc(ctx context.Context, f func(cause error)) (stop func()) { //nolint:contextcheck // the Lease ends later than ctx
	var once sync.Once
	stopCtx := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); errors.Is(cause, ErrLeaseLost) {
			once.Do(func() { f(cause) })
		}
	})
	lease, leads := ctx.Value(leaseKey{}).(context.Context)
	if !leads {
		return func() { stopCtx() }
	}
	stopLease := context.AfterFunc(lease, func() { //nolint:contextcheck // the Lease ends later than ctx
		once.Do(func() { f(context.Cause(lease)) })
	})
	return func() { stopCtx(); stopLease() }
}

// record is the spec of a Lease, https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/.
type record struct {
	Holder          string `json:"holderIdentity"`
	DurationSeconds int64  `json:"leaseDurationSeconds"`
	Acquired        string `json:"acquireTime"`
	Renewed         string `json:"renewTime"`
	Transitions     int64  `json:"leaseTransitions"`
}

// applyTo returns a copy of a Lease with the record's fields.
func (r record) applyTo(lease *unstructured.Object) *unstructured.Object {
	changed := lease.DeepCopy()
	spec, _ := changed.Object["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
		changed.Object["spec"] = spec
	}
	spec["holderIdentity"] = r.Holder
	spec["leaseDurationSeconds"] = r.DurationSeconds
	spec["acquireTime"] = r.Acquired
	spec["renewTime"] = r.Renewed
	spec["leaseTransitions"] = r.Transitions
	return changed
}

func timestamp(t time.Time) string { return t.UTC().Format(metav1.RFC3339Micro) }
