// Package suspend ends the goroutine of a stream while nothing changes. The goroutine of a Follow has many frames, so its stack takes 8
// or 16 kB, and its decoder takes 8 kB. A suspended stream has no decoder, and its goroutine has the few frames of [State.Wait].
//
// The owner of a stream passes a State in the ctx of its call. A call that returns Err is suspended: the owner calls Wait, and then
// repeats the call with the same ctx, in a new goroutine with a new stack. A stream is suspended when the server has accepted it and
// after each bookmark, so once a minute at most. A busy stream is thus read by a single goroutine.
//
// Each function between owner and stream supports the repeated call, or hides the State with a nil State. The repeated call has new
// callbacks, and everything else is kept.
package suspend

import (
	"context"
	"errors"
)

// Err is the error of a suspended call.
var Err = errors.New("suspended")

// State is the state of a stream over its calls. One goroutine at a time uses it. A nil State is never suspended.
type State struct {
	call any
	wait func()
}

type stateKey struct{}

// With returns a ctx with a State. A nil State hides the State of ctx.
func With(ctx context.Context, s *State) context.Context {
	return context.WithValue(ctx, stateKey{}, s)
}

// From returns the State of ctx, or nil.
func From(ctx context.Context) *State {
	s, _ := ctx.Value(stateKey{}).(*State)
	return s
}

// Suspend keeps call for the repeated call. wait waits for input.
func (s *State) Suspend(call any, wait func()) {
	s.call = call
	s.wait = wait
}

// IsSuspended reports whether the next call is a repeated call.
func (s *State) IsSuspended() bool { return s != nil && s.call != nil }

// Resume returns the call kept by Suspend, or nil. The State is not suspended afterwards.
func (s *State) Resume() any {
	if s == nil {
		return nil
	}
	call := s.call
	*s = State{}
	return call
}

// Wait waits until a suspended stream has input or has ended, also by the end of its ctx.
func (s *State) Wait() { s.wait() }
