package controller

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
)

// ErrLeaseLost says that a process does not lead any more: its Lease was lost, or could not be renewed in time, so that
// another process may lead.
var ErrLeaseLost = errors.New("the lease is lost")

// LeadOptions are what an election can be told; the zero values are valid defaults. All candidates should agree on the
// durations; they may be client-go's, whose defaults are the same.
type LeadOptions struct {
	// Identity is this process' name in the Lease, which no other may have, nor this one when it is started anew; ""
	// means the host's name and something random.
	Identity string
	// LeaseDuration is how long others wait, since they last saw the leader renew its Lease, before one takes over; it
	// is rounded up to seconds. 0 means 15 seconds.
	LeaseDuration time.Duration
	// RenewDeadline is how long the leader leads without having renewed the Lease. It must be less than LeaseDuration:
	// what is between is the time that the leader has to stop. 0 means 10 seconds.
	RenewDeadline time.Duration
	// RetryPeriod is how often the leader renews the Lease and others look at it, and up to half of that more. 0 means 2
	// seconds.
	RetryPeriod time.Duration
	// NewLeader, where set, is called when another identity leads, this process' own included. It must be quick. A panic in
	// it ends Lead with a *[PanicError].
	NewLeader func(identity string)
	// Logger receives who leads, attempts and renewals that failed, and the loss of the Lease; nil means slog.Default().
	Logger *slog.Logger
}

// Lead waits until this process holds the coordination.k8s.io/v1 Lease of that name, in the namespace of the handle
// leases, and then calls lead once; the Lease is renewed until lead returns. Lead then releases it, so that another
// process takes over within its RetryPeriod, and returns lead's error. A Lease that is not there is created. Candidates
// may use client-go's leaderelection.
//
// The ctx of lead ends when ctx does: the Lease is still renewed while lead finishes what it has in hand. It ends with
// [ErrLeaseLost] as its cause when the Lease is another's or gone, and RenewDeadline after the last renewal that
// succeeded was sent, by this machine's clocks, whichever of both went further: the one that no one sets, and the other,
// which also counts the time for which the machine was suspended. lead must then stop within what is left of
// LeaseDuration. Lead waits for it and returns an error that errors.Is finds ErrLeaseLost in: to stand again, call Lead
// again.
//
// No clock can keep a request of a stalled leader from arriving late. What must not happen twice needs a fence: token,
// the Lease's leaseTransitions, is higher for every later leader, for as long as nobody deletes the Lease. Whoever is
// written to keeps the highest token that he has seen and refuses lower ones.
//
// [Run] and [Operator.Run] with lead's ctx end their reconciles with the Lease, without Options.Grace.
//
// While it waits, Lead goes on through restarts of the server and while that cannot be reached. What the server refuses
// before it has answered once is returned, 401 and 403 when they have lasted for five seconds: a server that is starting
// denies everybody. It takes the verbs get, create and update on leases. See
// https://kubernetes.io/docs/concepts/architecture/leases/.
func Lead(ctx context.Context, leases *dynamic.Resource, name string, opts *LeadOptions, lead func(ctx context.Context, token int64) error) error {
	c, err := newCandidate(leases, name, opts)
	if err == nil {
		err = c.acquire(ctx)
	}
	if err != nil {
		return fmt.Errorf("lead by %s %q: %w", leases, name, err)
	}
	c.log.Info("leading", "token", c.term.transitions)
	if err = c.hold(ctx, lead); errors.Is(err, ErrLeaseLost) {
		return fmt.Errorf("lead by %s %q: %w", leases, name, err)
	}
	return err
}

func newCandidate(leases *dynamic.Resource, name string, opts *LeadOptions) (*candidate, error) {
	c := &candidate{leases: leases, name: name}
	if opts != nil {
		c.opts = *opts
	}
	orDefault(&c.opts.LeaseDuration, 15*time.Second)
	orDefault(&c.opts.RenewDeadline, 10*time.Second)
	orDefault(&c.opts.RetryPeriod, 2*time.Second)
	c.opts.LeaseDuration = (c.opts.LeaseDuration + time.Second - 1).Truncate(time.Second)
	if c.opts.RenewDeadline >= c.opts.LeaseDuration || retry.MaxJitter(c.opts.RetryPeriod) >= c.opts.RenewDeadline {
		return nil, fmt.Errorf("the lease duration %s must be more than the renew deadline %s, and that more than 1.5 times the retry period %s",
			c.opts.LeaseDuration, c.opts.RenewDeadline, c.opts.RetryPeriod)
	}
	if c.opts.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("name the candidate: %w", err)
		}
		c.opts.Identity = host + "_" + rand.Text()
	}
	if c.opts.Logger == nil {
		c.opts.Logger = slog.Default()
	}
	c.log = c.opts.Logger.With("lease", name, "identity", c.opts.Identity)
	return c, nil
}

func orDefault(value *time.Duration, otherwise time.Duration) {
	if *value <= 0 {
		*value = otherwise
	}
}
