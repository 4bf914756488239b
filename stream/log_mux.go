package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/reflector"
	"github.com/anykind/anykind/internal/retry"
)

const (
	// drainTimeout is the idle time after which the log of a deleted pod is abandoned, and maxDrain the maximum reading time.
	drainTimeout = 2 * time.Second
	maxDrain     = time.Minute
)

// logMux merges the logs of many containers: a goroutine lists and watches pods, and a goroutine for each run of a container
// reads its log. A slow consumer makes all of them wait: lines are not queued.
type logMux struct {
	*logPods

	ctx     context.Context
	cancel  context.CancelCauseFunc
	opts    LogOptions
	events  chan logEvent
	readers sync.WaitGroup
	listed  bool // a list has succeeded

	mu       sync.Mutex
	current  map[containerKey]*runReader
	failures logErrors
}

// logEvent is a line, or a call of a callback.
type logEvent struct {
	line     LogLine
	callback func() // nil for a line
}

// containerKey is a container of a pod, in all its runs.
type containerKey struct{ uid, container string }

// runReader reads the log of a container's run.
type runReader struct {
	restarts int
	rejected int // restarts of the newest run that is not selected; 0 if none
	log      *containerLog
	cancel   context.CancelCauseFunc
	done     chan struct{} // closed when the log is read
	failed   bool
	removed  bool // the pod is deleted
}

// followLines reads logs until ctx ends, emit returns false, or no log can be read.
func followLines(parent context.Context, pods *logPods, opts *LogOptions, emit func(LogLine) bool) error {
	ctx, cancel := context.WithCancelCause(parent)
	m := &logMux{
		ctx: ctx, cancel: cancel, logPods: pods, opts: *opts, events: make(chan logEvent),
		current: map[containerKey]*runReader{},
	}
	defer m.readers.Wait()
	defer cancel(errStopped)
	m.readers.Go(func() {
		if err := m.run(); err != nil {
			cancel(err)
		}
	})
	for {
		select {
		case event := <-m.events:
			if event.callback != nil {
				event.callback()
			} else if !emit(event.line) {
				return errStopped
			}
		case <-ctx.Done():
			return m.result(parent)
		}
	}
}

// result returns the cause of ctx's end: the end of the caller's context, or an error. Without OnError it includes the errors of
// containers.
func (m *logMux) result(parent context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if parent.Err() == nil {
		return context.Cause(m.ctx) //nolint:contextcheck // derived from parent
	}
	ended := retry.ContextError(parent)
	if failed := m.failures.err(); failed != nil && m.opts.OnError == nil {
		return fmt.Errorf("%w; %w", ended, failed)
	}
	return ended
}

// run lists and watches pods until ctx ends or an error is terminal.
func (m *logMux) run() error {
	return reflector.Run(m.ctx, reflector.Options[*pod]{Source: m, Emit: m.handle, ListFirst: true, IsTerminal: retry.IsRejected})
}

// List implements reflector.Source. Until the first list succeeds, every error ends following.
func (m *logMux) List(ctx context.Context, handle func(*podEvent) error) (resourceVersion string, err error) {
	list, err := m.list(ctx)
	if err == nil && !m.listed {
		err = list.check(&m.opts, m.logPods)
	}
	if err != nil {
		if !m.listed {
			m.cancel(err)
		}
		return "", err
	}
	for i := range list.Items {
		event := newPodEvent(&list.Items[i])
		if err := handle(&event); err != nil {
			return "", err
		}
	}
	return list.Metadata.ResourceVersion, nil
}

func (m *logMux) handle(event *podEvent) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch event.Type {
	case watch.Added, watch.Modified:
		m.addLocked(event.Object)
	case watch.Deleted:
		for key := range m.current {
			if key.uid == string(event.UID) {
				m.deleteLocked(key)
			}
		}
	case reflector.Synced:
		m.listed = true
		m.endIfAllFailedLocked()
	default: // Started and NotServed
	}
	return nil
}

// addLocked begins to read the new logs of a pod's containers.
func (m *logMux) addLocked(pod *pod) {
	for _, container := range pod.containerStatuses() {
		key := containerKey{pod.Metadata.UID, container.Name}
		previous := m.current[key]
		if previous != nil && previous.restarts >= container.RestartCount {
			continue
		}
		opts := m.opts
		if m.listed {
			opts.TailLines = nil
			opts.SinceSeconds = 0
			opts.SinceTime = time.Time{}
		}
		// A gap in the watch hides runs. The previous log of a running container is the log of the last hidden run.
		if previous != nil && previous.missed(container.RestartCount) > 0 && container.State.Running != nil {
			before := container
			before.RestartCount--
			optsOfBefore := opts
			optsOfBefore.Previous = true
			m.startLocked(pod, &before, &optsOfBefore)
		}
		m.startLocked(pod, &container, &opts)
	}
}

// startLocked begins to read the log of a run if it is selected, after the log of the container's previous run.
func (m *logMux) startLocked(pod *pod, container *containerStatus, opts *LogOptions) {
	key := containerKey{pod.Metadata.UID, container.Name}
	previous := m.current[key]
	source := newLogSource(pod, container)
	if !m.opts.selects(container, source) {
		if previous != nil {
			previous.rejected = container.RestartCount
		}
		return
	}
	ctx, cancel := context.WithCancelCause(m.ctx)
	reader := &runReader{restarts: container.RestartCount, cancel: cancel, done: make(chan struct{})}
	reader.log = m.log(ctx, pod, container, opts)
	reader.log.hadLogs = m.listed
	missed := 0
	if previous != nil {
		reader.log.waitingSince = previous.log.waitingSince
		missed = previous.missed(container.RestartCount)
	}
	m.current[key] = reader
	m.readers.Go(func() {
		defer close(reader.done)
		defer cancel(nil)
		if previous != nil {
			reader.waitFor(ctx, previous)
		}
		if missed > 0 {
			m.reportMissed(source, missed)
		}
		m.read(reader, source)
	})
}

// reportMissed reports runs before the run of source as lost.
func (m *logMux) reportMissed(source LogSource, missed int) {
	lost := fmt.Errorf("pod %q, container %q: %w: the logs of %d earlier runs are lost", source.Pod, source.Container, io.ErrUnexpectedEOF, missed)
	if m.opts.OnError != nil && !m.send(logEvent{callback: func() { m.opts.OnError(source, lost) }}) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failures.add(lost)
}

// deleteLocked drops a container of a deleted pod. The rest of its log on the node is read, without waiting for its end.
func (m *logMux) deleteLocked(key containerKey) {
	reader := m.current[key]
	reader.removed = true
	delete(m.current, key)
	m.readers.Go(reader.drain)
}

func (m *logMux) read(reader *runReader, source LogSource) {
	if m.opts.OnStart != nil {
		m.send(logEvent{callback: func() { m.opts.OnStart(source) }})
	}
	err := reader.log.waitForLog()
	if err == nil {
		err = emitLines(reader.log, source, func(line LogLine) bool { return m.send(logEvent{line: line}) })
	}
	reader.log.lines = nil // recentLines are for the next run
	if m.ctx.Err() != nil {
		return
	}
	reason, failure := endOf(source, err)
	m.mu.Lock()
	if err == nil && (reader.removed || reader.log.isGone) {
		reason = endRemoved
	}
	m.mu.Unlock()
	// OnEnd comes first, because the error may end the loop.
	if !m.send(logEvent{callback: func() { m.opts.notifyEnd(source, reason, failure) }}) || failure == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failures.add(failure)
	reader.failed = !errors.Is(err, io.ErrUnexpectedEOF) // otherwise the next run's log may be readable
	if m.listed {
		m.endIfAllFailedLocked()
	}
}

// send passes an event to the consumer. It returns false when following has ended.
func (m *logMux) send(event logEvent) bool {
	select {
	case m.events <- event:
		return true
	case <-m.ctx.Done():
		return false
	}
}

// endIfAllFailedLocked ends following if no container's log can be read.
func (m *logMux) endIfAllFailedLocked() {
	for _, reader := range m.current {
		if !reader.failed {
			return
		}
	}
	if len(m.current) > 0 {
		m.cancel(m.failures.err())
	}
}

// missed returns the number of runs between the newest known run and the run after restarts.
func (r *runReader) missed(restarts int) int { return restarts - max(r.restarts, r.rejected) - 1 }

// waitFor waits until the previous run is read, and continues after its lines.
func (r *runReader) waitFor(ctx context.Context, previous *runReader) {
	stop := context.AfterFunc(ctx, func() { previous.cancel(context.Cause(ctx)) })
	<-previous.done
	stop()
	r.log.continueAfter(previous.log)
}

// drain ends a reader when it is idle.
func (r *runReader) drain() {
	ticker := time.NewTicker(drainTimeout / 4)
	defer ticker.Stop()
	for begun := time.Now(); ; {
		select {
		case <-r.done:
			return
		case <-ticker.C:
			since := r.log.waitingSince.Load()
			isIdle := since != 0 && time.Since(time.Unix(0, since)) >= drainTimeout
			if isIdle || time.Since(begun) >= maxDrain {
				r.cancel(errPodGone)
				return
			}
		}
	}
}
