package credential

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// ExpiryLeeway is how long before its expiry a credential is no longer used.
const ExpiryLeeway = 10 * time.Second

// Cache is an [Authenticator] whose credential is fetched once for all concurrent requests and used until it expires.
type Cache struct {
	Name string // in errors
	// Fetch obtains a credential. Only one call runs at a time. With an error it may also return a credential, which later
	// requests use.
	Fetch func(context.Context) (*Credential, error)
	// MustComplete keeps a fetch running that nobody waits for any more; otherwise its ctx is canceled.
	MustComplete bool
	Now          func() time.Time // time.Now, unless a test replaces it

	mu       sync.Mutex
	current  *Credential
	expires  time.Time // of the last one fetched, which may be equal to current
	inFlight *call
	// renewals counts the renewals in a row whose credential was not accepted; the last one ended at renewedAt with renewErr.
	renewals  int
	renewedAt time.Time
	renewErr  error
}

// call is one call of Fetch.
type call struct {
	waiters int
	renewal bool // started because of a rejection
	cancel  context.CancelFunc
	done    chan struct{} // closed when the result is there

	credential *Credential
	err        error
}

func renewalBackoff() retry.Backoff { return retry.Backoff{Min: time.Second, Max: time.Minute} }

// Credential implements [Authenticator].
func (c *Cache) Credential(ctx context.Context) (*Credential, error) { return c.Renew(ctx, nil) }

// Set makes a credential the current one. It must not be called concurrently with other methods.
func (c *Cache) Set(credential *Credential) {
	c.current, c.expires = credential, credential.Expires
}

// IsFresh reports whether a credential that expires then can still be used.
func (c *Cache) IsFresh(expires time.Time) bool {
	return expires.IsZero() || c.Now().Add(ExpiryLeeway).Before(expires)
}

// Renew implements [Authenticator]. It returns a credential other than the rejected one, unless Fetch returns that again.
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
	} // else it was started because of the same rejection or expiry
	c.inFlight.waiters++
	return nil, c.inFlight, nil
}

// backsOff reports whether the last renewal is too recent for another.
func (c *Cache) backsOff() bool {
	since := c.Now().Sub(c.renewedAt)
	if since > renewalBackoff().Max {
		c.renewals = 0
	}
	return c.renewals > 0 && since < renewalBackoff().Delay(c.renewals) && !c.current.WasAccepted()
}

// start calls Fetch with a ctx that does not end with that of the caller who happens to be first.
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
		return // canceled, as nobody waits for it
	}
	c.inFlight = nil
	if call.renewal {
		if c.current.WasAccepted() {
			c.renewals = 0
		}
		c.renewals++
		c.renewedAt, c.renewErr = c.Now(), err
	}
	if fetched != nil {
		c.store(fetched, call.renewal)
	}
	if call.err = err; err == nil {
		call.credential = c.current
	}
}

// store makes a fetched credential the current one. What has not changed keeps its pointer.
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

// leave cancels a call that nobody else waits for.
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
