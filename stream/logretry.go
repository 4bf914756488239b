package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// instance is one run of a container: a restart makes another, with a log of its own.
type instance struct {
	uid      string // the pod's; "" where it could not be found out
	restarts int
	finished time.Time // the end of the run before, in whole seconds; zero if unknown
}

// errGone is a pod that is there no more, or was replaced by another of its name.
var errGone = errors.New("the pod is gone")

// logBackoff is the delay between connections that bring nothing new.
func logBackoff() retry.Backoff {
	return retry.Backoff{Min: 100 * time.Millisecond, Max: 10 * time.Second}
}

// connect makes the next connection. The first attempt of all returns its error; later ones go on while that may help.
func (s *logStream) connect() error {
	for {
		attempt := s.open()
		transient := s.transient(attempt.err)
		if attempt.err == nil {
			s.begin(attempt.response, attempt.at)
			if s.verify {
				s.verify = false
				s.identifyAgain()
			}
			return nil
		}
		if s.connects == 0 || !transient || (!s.opts.Follow && s.retries >= mostRetries) {
			return s.refused(attempt.err)
		}
		if err := s.wait(); err != nil {
			return err
		}
	}
}

func (s *logStream) open() opening {
	if begun := s.opening; begun != nil {
		s.opening = nil
		return <-begun
	}
	return openWith(s.ctx, s.conn, s.request())
}

func openWith(ctx context.Context, conn *transport.Conn, request *transport.Request) opening {
	response, err := conn.Do(ctx, request) //nolint:bodyclose // hangUp closes it
	return opening{response, err, time.Now()}
}

// transient reports whether an attempt's error may be gone a moment later. It is called with every attempt's. A server
// that is starting denies everything to users whose rights come from RBAC alone.
func (s *logStream) transient(err error) bool {
	denied := s.denials.Transient(err)
	return !retry.IsTerminal(err) || denied && (s.connects > 0 || s.joined)
}

// refused is what it means that a log cannot be read on: where the last connection ended well and the container with
// it, nothing.
func (s *logStream) refused(err error) error {
	over := apierrors.IsNotFound(err) || (s.opts.Previous && apierrors.IsBadRequest(err))
	switch {
	case s.connects == 0 || !over:
		return err
	case s.broke == nil:
		s.complete = true
		return nil
	default:
		return s.lost(err)
	}
}

// lost is the error of a log whose last lines cannot be had any more.
func (s *logStream) lost(why error) error {
	return fmt.Errorf("%w: the connection broke, and what was logged after that is lost: %w (%w)", io.ErrUnexpectedEOF, why, s.broke)
}

// wait lets some time pass, the more the longer nothing new has come.
func (s *logStream) wait() error {
	s.retries++
	return logBackoff().Wait(s.ctx, s.retries)
}

// mostRetries is how often a log that is not followed is asked for again without getting any further.
const mostRetries = 5

// atEnd decides what the end of a connection means: to connect again, that all is read, or an error.
func (s *logStream) atEnd(end error) error {
	s.broke = nil
	if end != io.EOF { //nolint:errorlint // one that is wrapped is a broken connection
		s.broke = end
	}
	if s.ctx.Err() != nil {
		return retry.WithContextError(s.ctx, end)
	}
	if !s.opts.Follow || s.final {
		return s.atFinalEnd()
	}
	// Connections that end at once are not made again in haste, whatever they bring.
	if s.retries > 0 || s.broke != nil || s.connects > 1 && time.Since(s.opened) < time.Second {
		if err := s.wait(); err != nil {
			return err
		}
	}
	s.retries++
	now, running, err := s.look()
	if err != nil {
		return s.atUnknownEnd(err)
	}
	return s.atEndOf(now, running)
}

// atUnknownEnd is atEnd where the pod could not be read.
func (s *logStream) atUnknownEnd(err error) error {
	unreadable := apierrors.IsForbidden(err) && s.first.uid == "" // may read logs, but not pods
	switch {
	case errors.Is(err, errGone) && s.broke != nil:
		return s.lost(err)
	case errors.Is(err, errGone), unreadable && s.broke == nil:
		s.complete = true
		return nil
	case unreadable:
		return nil
	default:
		return err
	}
}

// atEndOf is atEnd where the container's run is known.
func (s *logStream) atEndOf(now instance, running bool) error {
	if s.connects == 1 && s.isAfter(now) {
		s.first = now
	}
	switch missed := now.restarts - s.first.restarts; {
	case missed > 1 && s.broke != nil:
		return s.lost(fmt.Errorf("the container was restarted %d times since", missed))
	case missed > 1:
		s.complete = true
	case missed == 1:
		s.final, s.opts.Follow, s.opts.Previous = true, false, true
	case !running:
		// A connection that the node broke ends as well as any. One more shows what is missing.
		s.final = true
	}
	return nil
}

// isAfter reports whether lines were given that the run before now cannot have written: the container was restarted
// between being looked at and the opening of its log.
func (s *logStream) isAfter(now instance) bool {
	return now.restarts > s.first.restarts && !now.finished.IsZero() && !s.recent.newest.Before(now.finished.Add(time.Second))
}

// atFinalEnd ends a log that nothing is added to any more.
func (s *logStream) atFinalEnd() error {
	if s.broke == nil {
		s.complete = true
		return nil
	}
	if s.retries >= mostRetries {
		return fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, s.broke)
	}
	return s.wait()
}

// look finds out what has become of the container.
func (s *logStream) look() (now instance, running bool, err error) {
	for {
		var pod podParts
		err := get(s.ctx, s.conn, s.pod, &pod)
		denied := s.denials.Transient(err)
		switch {
		case apierrors.IsNotFound(err), err == nil && s.first.uid != "" && pod.Metadata.UID != s.first.uid:
			return now, false, errGone
		case err == nil:
			now, running = pod.instance(s.opts.Container)
			return now, running, nil
		case retry.IsTerminal(err) && (!denied || s.first.uid == ""):
			return now, false, err
		}
		if err := s.wait(); err != nil {
			return now, false, err
		}
	}
}

// instance is the run that a container is in, and whether that is under way.
func (p *podParts) instance(container string) (now instance, running bool) {
	now.uid = p.Metadata.UID
	for _, status := range p.containers() {
		if status.Name != container {
			continue
		}
		now.restarts = status.RestartCount
		if before := status.LastState.Terminated; before != nil {
			now.finished = before.FinishedAt
		}
		return now, status.State.Running != nil
	}
	return now, true
}
