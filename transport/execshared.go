package transport

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// expiryLeeway is how long before its end a credential is no longer used: a request takes its time, and clocks differ.
const expiryLeeway = 10 * time.Second

// sharedIdentity is an identity that lasts for a while and takes long to get. Those who need a new one at the same
// time wait for the same. It is an authenticator.
type sharedIdentity struct {
	what string // gives the identity, as errors call it
	// obtain gets a new one and says when it expires, the zero time meaning never. With an error it may return an
	// identity for later requests.
	obtain func(context.Context) (*identity, time.Time, error)
	// finishes says that obtain goes on when nobody waits for it any more; else its ctx ends.
	finishes bool
	now      func() time.Time

	mu      sync.Mutex
	current *identity
	expires time.Time
	running *obtaining
	// refusals are the runs in a row that began because a server refused current, the last of which ended at refused with
	// refusedErr.
	refusals   int
	refused    time.Time
	refusedErr error
}

// renewalBackoff returns the least time between two runs that begin because a server refused the identity: a server that
// refuses every one must not cause a log-in for each request.
func renewalBackoff() retry.Backoff { return retry.Backoff{Min: time.Second, Max: time.Minute} }

// obtaining is one call of obtain.
type obtaining struct {
	waiting int
	refusal bool // whether a refusal is why it began
	stop    context.CancelFunc
	done    chan struct{} // closed when the rest is there
	got     *identity
	err     error
}

func (s *sharedIdentity) identity(ctx context.Context) (*identity, error) { return s.other(ctx, nil) }

func (s *sharedIdentity) renew(ctx context.Context, refused *identity) (*identity, error) {
	return s.other(ctx, refused)
}

// other is an identity that is not the refused one, unless obtain gives that again.
func (s *sharedIdentity) other(ctx context.Context, refused *identity) (*identity, error) {
	s.mu.Lock()
	if s.running == nil && s.fresh() && !s.current.same(refused) {
		defer s.mu.Unlock()
		return s.current, nil
	}
	refusal := s.fresh() && s.current.same(refused)
	if s.running == nil && refusal && s.renewedJustNow() {
		defer s.mu.Unlock()
		if s.refusedErr != nil {
			return nil, s.refusedErr
		}
		return s.current, nil
	}
	// One that is already under way was begun because of the same refusal or expiry.
	if s.running == nil && ctx.Err() == nil {
		s.start(ctx, refusal)
	}
	run := s.running
	if run == nil {
		s.mu.Unlock()
		return nil, s.left(ctx)
	}
	run.waiting++
	s.mu.Unlock()

	select {
	case <-run.done:
		return run.got, run.err
	case <-ctx.Done():
		s.leave(run)
		return nil, s.left(ctx)
	}
}

func (s *sharedIdentity) fresh() bool {
	return s.current != nil && (s.expires.IsZero() || s.now().Add(expiryLeeway).Before(s.expires))
}

// renewedJustNow reports whether a run that a refusal caused ended so short a time ago that another is not worth it.
func (s *sharedIdentity) renewedJustNow() bool {
	since := s.now().Sub(s.refused)
	if since > renewalBackoff().Max {
		s.refusals = 0
	}
	return s.refusals > 0 && since < renewalBackoff().Delay(s.refusals) && !s.current.wasAccepted()
}

// start makes a new run, whose ctx does not end with that of the caller who happened to be first.
func (s *sharedIdentity) start(ctx context.Context, refusal bool) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	run := &obtaining{refusal: refusal, stop: stop, done: make(chan struct{})}
	s.running = run
	go func() {
		defer stop()
		got, expires, err := s.obtain(ctx)
		s.settle(run, got, expires, err)
	}()
}

// settle hands the result to those who wait. What did not change keeps its pointer.
func (s *sharedIdentity) settle(run *obtaining, got *identity, expires time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(run.done)
	if s.running != run {
		return // everybody has left
	}
	s.running = nil
	if run.refusal {
		if s.current.wasAccepted() {
			s.refusals = 0
		}
		s.refusals++
		s.refused, s.refusedErr = s.now(), err
	}
	if got != nil {
		got.accepted = new(atomic.Bool)
		if run.refusal {
			got.renewed = time.Now()
		}
		if s.current != nil && sameCertificate(got, s.current) {
			got.certificate = s.current.certificate
		}
		if got.same(s.current) {
			if run.refusal && s.current.accepted != nil {
				s.current.accepted.Store(false) // the run was in vain
			}
			got = s.current
		}
		s.current, s.expires = got, expires
	}
	run.got, run.err = got, err
	if err != nil {
		run.got = nil
	}
}

func (s *sharedIdentity) leave(run *obtaining) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run.waiting--
	if run.waiting == 0 && s.running == run && !s.finishes {
		run.stop()
		s.running = nil
	}
}

func (s *sharedIdentity) left(ctx context.Context) error {
	return fmt.Errorf("wait for %s: %w", s.what, retry.ContextError(ctx))
}

// same says whether a server would not see a difference.
func (i *identity) same(other *identity) bool {
	return other != nil && i.authorization == other.authorization && i.certificate == other.certificate
}

func sameCertificate(a, b *identity) bool {
	return a.certificate != nil && b.certificate != nil &&
		slices.EqualFunc(a.certificate.Certificate, b.certificate.Certificate, bytes.Equal)
}
