package credential

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/credentials"
)

// result is that of one fetch.
type result struct {
	credential *Credential
	err        error
}

// request requests a credential in the background.
func (s *fakeFetch) request(ctx context.Context) <-chan result {
	results := make(chan result, 1)
	go func() {
		got, err := s.Credential(ctx)
		results <- result{got, err}
	}()
	return results
}

// fakeFetch is a cache whose fetches return what its test sends.
type fakeFetch struct {
	*Cache
	clock   *credentials.Clock
	begun   chan struct{} // one for each call
	results chan result   // what each call returns
	ended   chan error    // why the ctx of a call ended
	expire  func() time.Time
}

func newFakeFetch() *fakeFetch {
	s := &fakeFetch{clock: credentials.NewClock(), begun: make(chan struct{}, 9), results: make(chan result), ended: make(chan error, 9)}
	s.expire = func() time.Time { return time.Time{} }
	s.Cache = &Cache{Name: "the test", Now: s.clock.Now, Fetch: func(ctx context.Context) (*Credential, error) {
		s.begun <- struct{}{}
		select {
		case got := <-s.results:
			if got.credential != nil {
				got.credential.Expires = s.expire()
			}
			return got.credential, got.err
		case <-ctx.Done():
			s.ended <- ctx.Err()
			return nil, ctx.Err()
		}
	}}
	return s
}

// awaitWaiters waits until n callers wait.
func (s *fakeFetch) awaitWaiters(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.inFlight != nil && s.inFlight.waiters == n
	}, time.Minute, time.Millisecond)
}

func TestCache_CredentialFetchedBeforeExpiry(t *testing.T) {
	s := newFakeFetch()
	end := s.clock.Now().Add(time.Hour)
	s.expire = func() time.Time { return end }
	first := s.request(t.Context())
	s.results <- result{credential: &Credential{Authorization: "a"}}
	a := (<-first).credential

	s.clock.Advance(time.Hour - ExpiryLeeway - time.Second)
	again, err := s.Credential(t.Context())
	require.NoError(t, err)
	assert.Same(t, a, again)

	s.clock.Advance(time.Second)
	end = end.Add(time.Hour)
	next := s.request(t.Context())
	s.results <- result{credential: &Credential{Authorization: "b"}}
	assert.Equal(t, "b", (<-next).credential.Authorization)
}

func TestCache_CredentialWithoutExpiryFetchedOnce(t *testing.T) {
	s := newFakeFetch()
	first := s.request(t.Context())
	s.results <- result{credential: &Credential{Authorization: "a"}}
	a := (<-first).credential
	s.clock.Advance(1000 * time.Hour)
	again, err := s.Credential(t.Context())
	require.NoError(t, err)
	assert.Same(t, a, again)
}

func TestCache_RenewCoalesced(t *testing.T) {
	s := newFakeFetch()
	first := s.request(t.Context())
	s.results <- result{credential: &Credential{Authorization: "a"}}
	old := (<-first).credential
	<-s.begun

	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			got, err := s.Renew(t.Context(), old)
			assert.NoError(t, err)
			assert.Equal(t, "b", got.Authorization)
		})
	}
	s.awaitWaiters(t, 8)
	// One that comes now waits as well: it would be refused, too.
	late := s.request(t.Context())
	s.awaitWaiters(t, 9)
	s.results <- result{credential: &Credential{Authorization: "b"}}
	wait.Wait()
	assert.Equal(t, "b", (<-late).credential.Authorization)
	// And one whose refusal took longer finds it replaced.
	got, err := s.Renew(t.Context(), old)
	require.NoError(t, err)
	assert.Equal(t, "b", got.Authorization)
	assert.Len(t, s.begun, 1)
}

func TestCache_UnchangedCredentialKeepsPointer(t *testing.T) {
	certificate, key := credentials.NewCertificate(t, "ann", time.Now().Add(time.Hour))
	other, otherKey := credentials.NewCertificate(t, "ann", time.Now().Add(time.Hour))
	parse := func(certificate, key []byte) *tls.Certificate {
		parsed, err := ParsePair(certificate, key)
		require.NoError(t, err)
		return parsed
	}
	s := newFakeFetch()
	var current *Credential
	give := func(next *Credential) *Credential {
		renewed := make(chan *Credential, 1)
		before := current
		s.clock.Advance(2 * time.Minute) // see renewalBackoff
		go func() {
			got, err := s.Renew(t.Context(), before)
			assert.NoError(t, err)
			renewed <- got
		}()
		s.results <- result{credential: next}
		current = <-renewed
		return current
	}
	a := give(&Credential{Authorization: "a", Certificate: parse(certificate, key)})
	assert.Same(t, a, give(&Credential{Authorization: "a", Certificate: parse(certificate, key)}))
	b := give(&Credential{Authorization: "b", Certificate: parse(certificate, key)})
	assert.NotSame(t, a, b)
	assert.Same(t, a.Certificate, b.Certificate, "its connections go on")
	c := give(&Credential{Authorization: "b", Certificate: parse(other, otherKey)})
	assert.NotSame(t, b.Certificate, c.Certificate)
	assert.Same(t, c, give(&Credential{Authorization: "b", Certificate: parse(other, otherKey)}))
	assert.Nil(t, give(&Credential{Authorization: "b"}).Certificate)
}

func TestCache_CanceledWaiterLeavesFetchRunning(t *testing.T) {
	s := newFakeFetch()
	ctx, cancel := context.WithCancel(t.Context())
	leaves := s.request(ctx) // the first, whose ctx began it
	s.awaitWaiters(t, 1)
	stays := s.request(t.Context())
	s.awaitWaiters(t, 2)
	cancel()
	require.ErrorIs(t, (<-leaves).err, context.Canceled)
	s.results <- result{credential: &Credential{Authorization: "a"}}
	assert.Equal(t, "a", (<-stays).credential.Authorization)
	assert.Len(t, s.begun, 1)
}

func TestCache_LastWaiterCancelsFetch(t *testing.T) {
	s := newFakeFetch()
	ctx, cancel := context.WithCancel(t.Context())
	one := s.request(ctx)
	two := s.request(ctx)
	s.awaitWaiters(t, 2)
	cancel()
	require.ErrorIs(t, (<-one).err, context.Canceled)
	require.ErrorIs(t, (<-two).err, context.Canceled)
	require.ErrorIs(t, <-s.ended, context.Canceled)
	next := s.request(t.Context())
	s.results <- result{credential: &Credential{Authorization: "a"}}
	assert.Equal(t, "a", (<-next).credential.Authorization)
}

func TestCache_MustCompleteWithoutWaiters(t *testing.T) {
	s := newFakeFetch()
	s.MustComplete = true
	ctx, cancel := context.WithCancel(t.Context())
	one := s.request(ctx)
	s.awaitWaiters(t, 1)
	cancel()
	require.ErrorIs(t, (<-one).err, context.Canceled)
	s.awaitWaiters(t, 0)
	next := s.request(t.Context())
	s.awaitWaiters(t, 1)
	s.results <- result{credential: &Credential{Authorization: "a"}}
	assert.Equal(t, "a", (<-next).credential.Authorization)
	assert.Len(t, s.begun, 1)
}

func TestCache_ErrorNotCached(t *testing.T) {
	s := newFakeFetch()
	broken := errors.New("broken")
	one := s.request(t.Context())
	two := s.request(t.Context())
	s.awaitWaiters(t, 2)
	s.results <- result{err: broken}
	require.ErrorIs(t, (<-one).err, broken)
	require.ErrorIs(t, (<-two).err, broken)
	next := s.request(t.Context())
	s.results <- result{credential: &Credential{Authorization: "a"}}
	a := (<-next).credential
	require.NotNil(t, a)

	// A refused identity may only be refused for now: a failure to replace it does not end its use.
	renewed := make(chan error)
	go func() {
		_, err := s.Renew(t.Context(), a)
		renewed <- err
	}()
	s.results <- result{err: broken}
	require.ErrorIs(t, <-renewed, broken)
	again, err := s.Credential(t.Context())
	require.NoError(t, err)
	assert.Same(t, a, again)
}

func TestCache_EndedContextStartsNoFetch(t *testing.T) {
	s := newFakeFetch()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Credential(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "wait for the test")
	assert.Empty(t, s.begun)
}
