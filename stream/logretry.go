package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// instance is one run of a container: a restart makes another, with a log of its own.
type instance struct {
	uid      string // the pod's; "" where it could not be found out
	restarts int
}

// errGone is a pod that is there no more, or was replaced by another of its name.
var errGone = errors.New("the pod is gone")

// connect makes the next connection. The first attempt of all tells its error; later ones go on while that may help.
func (s *logStream) connect() error {
	for {
		attempt := s.open()
		if attempt.err == nil {
			s.opened(attempt.response)
			return nil
		}
		err := attempt.err
		if s.connects == 0 || !passes(err) || (!s.opts.Follow && s.retries >= mostRetries) {
			return s.refused(err)
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
	response, err := s.conn.Do(s.ctx, s.request()) //nolint:bodyclose // hangUp closes it
	return opening{response, err}
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

// passes says whether an error may be gone a moment later.
func passes(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
}

// wait lets some time pass, the more the longer nothing new has come.
func (s *logStream) wait() error {
	s.retries++
	pause := min(10*time.Second, 50*time.Millisecond<<min(s.retries, 10))
	timer := time.NewTimer(pause + rand.N(pause/5)) //nolint:gosec // spread, not secrecy
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.ctx.Done():
		return ended(s.ctx, context.Canceled)
	}
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
		return ended(s.ctx, end)
	}
	if !s.opts.Follow || s.final {
		return s.atFinalEnd()
	}
	if s.retries > 0 || s.broke != nil {
		if err := s.wait(); err != nil {
			return err
		}
	}
	s.retries++
	now, running, err := s.look()
	switch {
	case errors.Is(err, errGone) && s.broke != nil:
		return s.lost(err)
	case errors.Is(err, errGone), apierrors.IsForbidden(err) && s.broke == nil:
		s.complete = true
	case apierrors.IsForbidden(err): // may read logs, but not pods
	case err != nil:
		return err
	case now.restarts > s.first.restarts+1 && s.broke != nil:
		return s.lost(fmt.Errorf("the container was restarted %d times since", now.restarts-s.first.restarts))
	case now.restarts > s.first.restarts+1:
		s.complete = true
	case now.restarts > s.first.restarts:
		s.final, s.opts.Follow, s.opts.Previous = true, false, true
	case !running:
		// A connection that the node broke ends as well as any. One more shows what is missing.
		s.final = true
	}
	return nil
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
		switch {
		case apierrors.IsNotFound(err), err == nil && s.first.uid != "" && pod.Metadata.UID != s.first.uid:
			return now, false, errGone
		case err == nil:
			now, running = pod.instance(s.opts.Container)
			return now, running, nil
		case !passes(err):
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
		if status.Name == container {
			return instance{now.uid, status.RestartCount}, status.State.Running != nil
		}
	}
	return now, true
}
