package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// clock is one that a test sets.
type clock struct{ nanoseconds atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanoseconds.Store(time.Now().UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.nanoseconds.Load()) }
func (c *clock) advance(d time.Duration) { c.nanoseconds.Add(int64(d)) }

// slowly gives identities as its test sends them.
type slowly struct {
	*sharedIdentity
	clock  *clock
	begun  chan struct{} // one for each call
	result chan obtained // what each call ends with
	ended  chan error    // why the ctx of a call ended
	expire func() time.Time
}

func newSlowly() *slowly {
	s := &slowly{clock: newClock(), begun: make(chan struct{}, 9), result: make(chan obtained), ended: make(chan error, 9)}
	s.expire = func() time.Time { return time.Time{} }
	s.sharedIdentity = &sharedIdentity{what: "the test", now: s.clock.now, obtain: func(ctx context.Context) (*identity, time.Time, error) {
		s.begun <- struct{}{}
		select {
		case got := <-s.result:
			return got.who, s.expire(), got.err
		case <-ctx.Done():
			s.ended <- ctx.Err()
			return nil, time.Time{}, ctx.Err()
		}
	}}
	return s
}

// waits waits until n callers do.
func (s *slowly) waits(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.running != nil && s.running.waiting == n
	}, time.Minute, time.Millisecond)
}

func TestAnIdentityIsUsedUntilShortlyBeforeItExpires(t *testing.T) {
	s := newSlowly()
	end := s.clock.now().Add(time.Hour)
	s.expire = func() time.Time { return end }
	first := s.ask(t.Context())
	s.result <- obtained{who: &identity{authorization: "a"}}
	a := (<-first).who

	s.clock.advance(time.Hour - expiryLeeway - time.Second)
	again, err := s.identity(t.Context())
	require.NoError(t, err)
	assert.Same(t, a, again)

	s.clock.advance(time.Second)
	end = end.Add(time.Hour)
	next := s.ask(t.Context())
	s.result <- obtained{who: &identity{authorization: "b"}}
	assert.Equal(t, "b", (<-next).who.authorization)
}

func TestOneThatNeverExpiresIsGotOnce(t *testing.T) {
	s := newSlowly()
	first := s.ask(t.Context())
	s.result <- obtained{who: &identity{authorization: "a"}}
	a := (<-first).who
	s.clock.advance(1000 * time.Hour)
	again, err := s.identity(t.Context())
	require.NoError(t, err)
	assert.Same(t, a, again)
}

func TestARefusedIdentityIsReplacedOnce(t *testing.T) {
	s := newSlowly()
	first := s.ask(t.Context())
	s.result <- obtained{who: &identity{authorization: "a"}}
	old := (<-first).who
	<-s.begun

	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			who, err := s.renew(t.Context(), old)
			assert.NoError(t, err)
			assert.Equal(t, "b", who.authorization)
		})
	}
	s.waits(t, 8)
	// One that comes now waits as well: it would be refused, too.
	late := s.ask(t.Context())
	s.waits(t, 9)
	s.result <- obtained{who: &identity{authorization: "b"}}
	wait.Wait()
	assert.Equal(t, "b", (<-late).who.authorization)
	// And one whose refusal took longer finds it replaced.
	who, err := s.renew(t.Context(), old)
	require.NoError(t, err)
	assert.Equal(t, "b", who.authorization)
	assert.Len(t, s.begun, 1)
}

func TestWhatDidNotChangeKeepsItsPointer(t *testing.T) {
	certificate, key := pairUntil(t, "ann", time.Now().Add(time.Hour))
	other, otherKey := pairUntil(t, "ann", time.Now().Add(time.Hour))
	parse := func(certificate, key []byte) *tls.Certificate {
		parsed, err := parsePair(certificate, key)
		require.NoError(t, err)
		return parsed
	}
	s := newSlowly()
	var who *identity
	give := func(next *identity) *identity {
		result := make(chan *identity, 1)
		before := who
		s.clock.advance(2 * time.Minute) // see renewalBackoff
		go func() {
			got, err := s.renew(t.Context(), before)
			assert.NoError(t, err)
			result <- got
		}()
		s.result <- obtained{who: next}
		who = <-result
		return who
	}
	a := give(&identity{authorization: "a", certificate: parse(certificate, key)})
	assert.Same(t, a, give(&identity{authorization: "a", certificate: parse(certificate, key)}))
	b := give(&identity{authorization: "b", certificate: parse(certificate, key)})
	assert.NotSame(t, a, b)
	assert.Same(t, a.certificate, b.certificate, "its connections go on")
	c := give(&identity{authorization: "b", certificate: parse(other, otherKey)})
	assert.NotSame(t, b.certificate, c.certificate)
	assert.Same(t, c, give(&identity{authorization: "b", certificate: parse(other, otherKey)}))
	assert.Nil(t, give(&identity{authorization: "b"}).certificate)
}

func TestACallerWhoLeavesDoesNotStopTheOthers(t *testing.T) {
	s := newSlowly()
	ctx, cancel := context.WithCancel(t.Context())
	leaves := s.ask(ctx) // the first, whose ctx began it
	s.waits(t, 1)
	stays := s.ask(t.Context())
	s.waits(t, 2)
	cancel()
	require.ErrorIs(t, (<-leaves).err, context.Canceled)
	s.result <- obtained{who: &identity{authorization: "a"}}
	assert.Equal(t, "a", (<-stays).who.authorization)
	assert.Len(t, s.begun, 1)
}

func TestWhenAllHaveLeftItEndsAndTheNextBeginsAnew(t *testing.T) {
	s := newSlowly()
	ctx, cancel := context.WithCancel(t.Context())
	one, two := s.ask(ctx), s.ask(ctx)
	s.waits(t, 2)
	cancel()
	require.ErrorIs(t, (<-one).err, context.Canceled)
	require.ErrorIs(t, (<-two).err, context.Canceled)
	require.ErrorIs(t, <-s.ended, context.Canceled)
	next := s.ask(t.Context())
	s.result <- obtained{who: &identity{authorization: "a"}}
	assert.Equal(t, "a", (<-next).who.authorization)
}

func TestWhatFinishesGoesOnWhenAllHaveLeft(t *testing.T) {
	s := newSlowly()
	s.finishes = true
	ctx, cancel := context.WithCancel(t.Context())
	one := s.ask(ctx)
	s.waits(t, 1)
	cancel()
	require.ErrorIs(t, (<-one).err, context.Canceled)
	s.waits(t, 0)
	next := s.ask(t.Context())
	s.waits(t, 1)
	s.result <- obtained{who: &identity{authorization: "a"}}
	assert.Equal(t, "a", (<-next).who.authorization)
	assert.Len(t, s.begun, 1)
}

func TestAFailureIsForThoseWhoWaitedAndNotRemembered(t *testing.T) {
	s := newSlowly()
	broken := errors.New("broken")
	one, two := s.ask(t.Context()), s.ask(t.Context())
	s.waits(t, 2)
	s.result <- obtained{err: broken}
	require.ErrorIs(t, (<-one).err, broken)
	require.ErrorIs(t, (<-two).err, broken)
	next := s.ask(t.Context())
	s.result <- obtained{who: &identity{authorization: "a"}}
	a := (<-next).who
	require.NotNil(t, a)

	// A refused identity may only be refused for now: a failure to replace it does not end its use.
	renewed := make(chan error)
	go func() {
		_, err := s.renew(t.Context(), a)
		renewed <- err
	}()
	s.result <- obtained{err: broken}
	require.ErrorIs(t, <-renewed, broken)
	again, err := s.identity(t.Context())
	require.NoError(t, err)
	assert.Same(t, a, again)
}

func TestACallerWhoseTimeIsUpBeginsNothing(t *testing.T) {
	s := newSlowly()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.identity(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "wait for the test")
	assert.Empty(t, s.begun)
}
