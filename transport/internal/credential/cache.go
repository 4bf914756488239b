package credential

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// ExpiryLeeway is the time before its expiry in which a credential is not used any more.
const ExpiryLeeway = 10 * time.Second

// Cache is an [Authenticator] for credentials with a slow source. Concurrent requests share a fetch, and the credential is used
// until it expires.
type Cache struct {
	Name string // in errors
	// Fetch obtains a credential. Calls are sequential. With an error it may also return a credential for later requests.
	Fetch func(context.Context) (*Credential, error)
	// MustComplete keeps a fetch running after its last waiter has left; otherwise its ctx is canceled.
	MustComplete bool
	Now          func() time.Time // time.Now, unless a test replaces it

	mu       sync.Mutex
	current  *Credential
	expires  time.Time // of the last fetched credential, which may be equal to current
	inFlight *call
	// renewals counts consecutive renewals without an accepted credential. The last renewal ended at renewedAt with renewErr.
	renewals  int
	renewedAt time.Time
	renewErr  error
}

// call is a running call of Fetch.
type call struct {
	waiters int
	renewal bool // started because of a rejection
	cancel  context.CancelFunc
	done    chan struct{} // closed when the result is set

	credential *Credential
	err        error
}

func renewalBackoff() retry.Backoff { return retry.Backoff{Min: time.Second, Max: time.Minute} }

// Credential implements [Authenticator].
func (c *Cache) Credential(ctx context.Context) (*Credential, error) { return c.Renew(ctx, nil) }

// Set makes a credential the current one. It must not be called concurrently with other methods.
func (c *Cache) Set(credential *Credential) {
	c.current = credential
	c.expires = credential.Expires
}

// IsFresh reports whether a credential with this expiry can still be used.
func (c *Cache) IsFresh(expires time.Time) bool {
	return expires.IsZero() || c.Now().Add(ExpiryLeeway).Before(expires)
}

// Renew implements [Authenticator]. It returns a new credential in place of the rejected credential, unless Fetch returns an
// equal credential.
func (c *Cache) Renew(ctx context.Context, rejected *Credential) (*Credential, error) {
	current, call, err := c.join(ctx, rejected)
	if call == nil {
		return current, err
	}
	select {
	case <-call.done:
		return call.credential, call.err
	case <-ctx.Done():
		c.leave(call)
		return nil, c.waitError(ctx)
	}
}

// join returns the current credential or an error, or the call to wait for.
func (c *Cache) join(ctx context.Context, rejected *Credential) (*Credential, *call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight == nil {
		fresh := c.current != nil && c.IsFresh(c.expires)
		renewal := fresh && c.current.equal(rejected)
		switch {
		case fresh && !renewal:
			return c.current, nil, nil
		case renewal && c.backsOff() && c.renewErr != nil:
			return nil, nil, c.renewErr
		case renewal && c.backsOff():
			return c.current, nil, nil
		case ctx.Err() != nil:
			return nil, nil, c.waitError(ctx)
		}
		c.start(ctx, renewal)
	} // otherwise the fetch was started for the same rejection or expiry
	c.inFlight.waiters++
	return nil, c.inFlight, nil
}

// backsOff reports whether the last renewal is too recent for a new renewal.
func (c *Cache) backsOff() bool {
	since := c.Now().Sub(c.renewedAt)
	if since > renewalBackoff().Max {
		c.renewals = 0
	}
	return c.renewals > 0 && since < renewalBackoff().Delay(c.renewals) && !c.current.WasAccepted()
}

// start calls Fetch with a ctx independent of the first caller's ctx.
func (c *Cache) start(ctx context.Context, renewal bool) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	started := &call{renewal: renewal, cancel: cancel, done: make(chan struct{})}
	c.inFlight = started
	go func() {
		defer cancel()
		fetched, err := c.Fetch(ctx)
		c.finish(started, fetched, err)
	}()
}

func (c *Cache) finish(call *call, fetched *Credential, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(call.done)
	if c.inFlight != call {
		return // canceled: no waiters are left
	}
	c.inFlight = nil
	if call.renewal {
		if c.current.WasAccepted() {
			c.renewals = 0
		}
		c.renewals++
		c.renewedAt = c.Now()
		c.renewErr = err
	}
	if fetched != nil {
		c.store(fetched, call.renewal)
	}
	if call.err = err; err == nil {
		call.credential = c.current
	}
}

// store makes a fetched credential the current credential. Unchanged parts keep their pointers.
func (c *Cache) store(fetched *Credential, renewal bool) {
	fetched.accepted = new(atomic.Bool)
	if renewal {
		fetched.renewedAt = time.Now()
	}
	if c.current != nil && equalCertificates(fetched, c.current) {
		fetched.Certificate = c.current.Certificate
	}
	c.expires = fetched.Expires
	if !fetched.equal(c.current) {
		c.current = fetched
	} else if renewal && c.current.accepted != nil {
		c.current.accepted.Store(false) // the renewal was in vain
	}
}

// leave cancels a call without waiters.
func (c *Cache) leave(call *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call.waiters--
	if call.waiters == 0 && c.inFlight == call && !c.MustComplete {
		call.cancel()
		c.inFlight = nil
	}
}

func (c *Cache) waitError(ctx context.Context) error {
	return fmt.Errorf("wait for %s: %w", c.Name, retry.ContextError(ctx))
}
