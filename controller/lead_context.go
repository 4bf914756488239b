package controller

import (
	"context"
	"errors"
)

// leaseKey is the key under which the ctx of Lead's lead carries the context that ends with the Lease. The ctx itself
// may have ended before, while lead finishes what it has in hand.
type leaseKey struct{}

// onLeaseEnd calls f when the Lease under which ctx leads is lost or released, and when ctx ends with ErrLeaseLost; f may
// be called twice. What it returns ends that.
func onLeaseEnd(ctx context.Context, f func()) (stop func()) {
	stopOwn := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), ErrLeaseLost) {
			f()
		}
	})
	lease, leads := ctx.Value(leaseKey{}).(context.Context)
	if !leads {
		return func() { stopOwn() }
	}
	stopLease := context.AfterFunc(lease, f) //nolint:contextcheck // it ends later than ctx
	return func() { stopOwn(); stopLease() }
}

// leaseEnd returns why onLeaseEnd called its f.
func leaseEnd(ctx context.Context) error {
	if lease, leads := ctx.Value(leaseKey{}).(context.Context); leads && lease.Err() != nil {
		return context.Cause(lease) //nolint:contextcheck // it ends later than ctx
	}
	return context.Cause(ctx)
}
