package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/anykind/anykind/internal/retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	writeTimeout = 30 * time.Second // of one request
	writeTries   = 12               // with back-off: some six minutes
)

// run writes, one by one, until the queue is shut down.
func (r *Recorder) run(ctx context.Context) {
	defer close(r.ended)
	for {
		s, ok := r.queue.Get(ctx)
		if !ok {
			return
		}
		r.write(ctx, s)
		r.queue.Done(s)
	}
}

// write brings the server up to date with a series, or forgets one that has ended.
func (r *Recorder) write(ctx context.Context, s *series) {
	r.mu.Lock()
	count, last := s.count, s.last
	if count == s.written {
		if time.Since(last) >= lastsSilent {
			r.forget(s)
		}
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	err := r.send(ctx, s, count, last)
	if ctx.Err() != nil {
		return // Close has given up, and counts
	}
	denied := r.denials.Transient(err) && !apierrors.HasStatusCause(err, namespaceTerminating)
	if err != nil && (denied || mayBeWritten(err)) && r.queue.NumRequeues(s) < writeTries {
		r.queue.AddRateLimited(s)
		return
	}
	r.queue.Forget(s)
	r.settle(s, count, err)
	if err != nil {
		r.report(err)
	}
}

// send makes the request.
func (r *Recorder) send(ctx context.Context, s *series, count int, last time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if s.written > 0 {
		err := r.sendCount(ctx, s, count, last)
		if !retry.IsObjectNotFound(err) {
			return about(s, err)
		}
		s.rename() // the server forgets events after an hour
	}
	_, err := r.events.In(s.namespace()).Create(ctx, s.object(r, count, last), nil)
	if apierrors.IsAlreadyExists(err) { // an earlier try got there, though its answer did not come back
		err = nil
		if count > 1 {
			err = r.sendCount(ctx, s, count, last)
		}
	}
	return about(s, err)
}

func (r *Recorder) sendCount(ctx context.Context, s *series, count int, last time.Time) error {
	patch, err := json.Marshal(map[string]any{"series": counted(count, last)})
	if err != nil {
		return err
	}
	_, err = r.events.In(s.namespace()).Patch(ctx, s.name, types.MergePatchType, patch, nil)
	return err
}

func about(s *series, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write the event %s about %s %q: %w", s.key.reason, s.key.regarding.kind, s.key.regarding.name, err)
}

// namespaceTerminating is the cause of a 403 that lasts: nothing is created in a namespace that is being deleted.
const namespaceTerminating metav1.CauseType = "NamespaceTerminating"

// mayBeWritten reports whether a failure may pass, also that of a path that a starting server does not serve yet.
func mayBeWritten(err error) bool { return !isTerminal(err) || retry.IsPathNotFound(err) }

// settle notes what has become of count occurrences.
func (r *Recorder) settle(s *series, count int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	settled := count - s.written
	if s.written == 0 {
		r.fresh--
	} else {
		s.interval = min(2*s.interval, longestInterval)
	}
	r.unwritten -= settled
	s.written = count
	defer r.checkFlushed()
	switch {
	case err != nil:
		meanwhile := s.count - count // recorded while the request was under way
		r.dropped += settled + meanwhile
		r.unwritten -= meanwhile
		s.written = s.count
		r.forget(s)
	case s.count > count && r.closing:
		r.queue.Add(s)
	case s.count > count:
		r.queue.AddAfter(s, s.interval)
	case len(r.series) > mostSeries:
		r.forget(s)
	default:
		r.queue.AddAfter(s, lastsSilent)
	}
}

func (r *Recorder) forget(s *series) {
	if r.series[s.key] != s {
		return
	}
	delete(r.series, s.key)
	if r.notes[s.key.groupKey]--; r.notes[s.key.groupKey] <= 0 {
		delete(r.notes, s.key.groupKey)
	}
}
