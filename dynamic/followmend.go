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

// steady is how long a stream must last for the next pause to be short again.
const steady = 10 * time.Second

func followBackoff() retry.Backoff {
	return retry.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
}

// mend decides how to go on after a stream that lasted so long and ended with err, nil where the server closed it. The
// error that it returns is the end.
func (f *follower[T, P]) mend(ctx context.Context, err error, lasted time.Duration) error {
	if ctx.Err() != nil {
		return f.ended(ctx)
	}
	if f.version == "" && !f.lists && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
		f.lists = true // what is wrong besides, the list will say
		return nil
	}
	if (err == nil || errors.Is(err, errSilent)) && f.version == "" && !f.lists {
		// Twice is a server that does not know what it was asked for, and would never say that all has been told.
		f.unfinished++
		f.lists = f.unfinished > 1
	}
	if !apierrors.IsNotFound(err) {
		f.missing = absence{}
	}
	relist := apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
	switch {
	case relist, f.garbled.heard(f.version, err):
		f.version = ""
	case f.ends(err):
		return err
	case apierrors.IsNotFound(err) && f.missing.heard():
		f.version = ""
		if err := f.lose(); err != nil {
			return err
		}
	}
	if err != nil {
		f.trouble = err
	}
	return f.pause(ctx, Interruption{Err: err, Relist: f.version == ""}, lasted)
}

// ends says whether asking again would not change the answer. What has been followed once is not given up: rights and
// credentials come back.
func (f *follower[T, P]) ends(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) || !f.once && final(err)
}

// pause waits before the next stream, the longer the more streams in a row did not last.
func (f *follower[T, P]) pause(ctx context.Context, i Interruption, lasted time.Duration) error {
	if lasted >= steady {
		f.brief = 0
	}
	if i.Err != nil || lasted < time.Second {
		f.brief++
		i.Wait = followBackoff().Delay(f.brief)
	}
	if seconds, asked := apierrors.SuggestsClientDelay(i.Err); asked {
		i.Wait = max(i.Wait, time.Duration(seconds)*time.Second)
	}
	f.interruptions++
	i.Count = f.interruptions
	if f.opts.Interrupted != nil {
		f.opts.Interrupted(i)
	}
	if i.Wait > 0 && retry.Sleep(ctx, retry.Jitter(i.Wait)) != nil {
		return f.ended(ctx)
	}
	return nil
}

// ended is the error of a ctx that ended, with what kept the follower from its first Synced.
func (f *follower[T, P]) ended(ctx context.Context) error {
	if f.once || f.trouble == nil {
		return fmt.Errorf("follow %s: %w", f.resource, retry.ContextError(ctx))
	}
	return fmt.Errorf("follow %s: %w; it could not begin: %w", f.resource, retry.ContextError(ctx), f.trouble)
}
