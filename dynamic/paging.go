package dynamic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anykind/anykind/internal/retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Paging says how [Resource.List] goes through a list of many pages. Its functions are called in the loop's own
// goroutine, between two objects.
type Paging struct {
	// Page hears of every page when its last object has been yielded: the list's resourceVersion, the token of the next
	// page, "" behind the last one, and how many objects remain, where the server counts them.
	Page func(metav1.ListMeta)
	// Expired is asked what to do where the server no longer keeps the list's moment: err is one that
	// apierrors.IsResourceExpired or IsGone knows. It may come at any page, and again. nil means always [Fail].
	Expired func(err error) Expiry
}

// Expiry is what List does where the server no longer keeps the list's moment. The list goes on after a pause, which
// grows to half a minute if that happens again and again, and which ctx ends.
type Expiry int

const (
	// Fail ends the list with the error.
	Fail Expiry = iota
	// GoOn lists the rest as it is now: every object at most once, but not all at the same moment. Objects created or
	// deleted in the meantime may be there or be missing. A server that offers no such rest means Fail.
	GoOn
	// Restart lists from the first page on, at a new moment: objects come again.
	Restart
)

// Paging chooses how List goes through many pages; nil means the default.
func (r *Resource) Paging(p *Paging) *Resource {
	chosen := *r
	chosen.paging = Paging{}
	if p != nil {
		chosen.paging = *p
	}
	return &chosen
}

// expiryBackoff is for lists whose continue token expires again and again.
func expiryBackoff() retry.Backoff {
	return retry.Backoff{Min: 100 * time.Millisecond, Max: 30 * time.Second}
}

// expired asks what to do if err is the answer of a server that no longer keeps the list's moment, and prepares for it.
func (l *listing[T]) expired(ctx context.Context, err error) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		return err
	}
	choice := Fail
	if decide := l.of.paging.Expired; decide != nil {
		choice = decide(err)
	}
	rest := ""
	switch choice {
	case Restart:
	case GoOn:
		if rest = status.ErrStatus.Continue; rest == "" {
			return err
		}
	default:
		return err
	}
	l.opts.Continue, l.opts.ResourceVersion, l.opts.ResourceVersionMatch = rest, "", ""
	l.expiries++
	if ended := expiryBackoff().Wait(ctx, l.expiries); ended != nil {
		return fmt.Errorf("list %s: wait to go on after %w: %w", l.of, err, ended)
	}
	return nil
}
