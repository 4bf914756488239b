package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/internal/retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// lineFollower reads the logs of many containers at once: one goroutine finds containers, and one reads each run.
type lineFollower struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	source  *podSource
	opts    LogOptions
	lines   chan Line
	readers sync.WaitGroup
	listed  bool // a list has succeeded

	mu       sync.Mutex
	known    map[containerKey]*containerReader
	failures logFailures
}

// containerKey is a container of one pod, in all its runs.
type containerKey struct{ uid, container string }

// containerReader reads one run of a container.
type containerReader struct {
	restarts int
	stream   *logStream
	cancel   context.CancelCauseFunc
	done     chan struct{} // closed when the log of that run is read
	failed   bool
	before   atomic.Pointer[containerReader] // reads the run before; nil once that is done
}

// followLines reads logs until ctx ends, give returns false, or no log can be read.
func followLines(ctx context.Context, source *podSource, opts *LogOptions, give func(Line) bool) error {
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	f := &lineFollower{
		ctx: ctx, cancel: cancel, source: source, opts: *opts, lines: make(chan Line),
		known: map[containerKey]*containerReader{}, failures: logFailures{opts: opts},
	}
	defer f.readers.Wait()
	defer cancel(errLeft)
	f.readers.Go(func() { //nolint:contextcheck // the follower has it
		if err := f.watch(); err != nil {
			cancel(err)
		}
	})
	for {
		select {
		case line := <-f.lines:
			if !give(line) {
				return errLeft
			}
		case <-ctx.Done():
			return f.end(caller)
		}
	}
}

// end returns why the following ended: the end of the caller's context, or an error of its own. Without OnError the
// failures of containers are told now.
func (f *lineFollower) end(caller context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if caller.Err() == nil {
		return context.Cause(f.ctx) //nolint:contextcheck // derived from caller
	}
	ended := retry.ContextError(caller)
	if failed := f.failures.err(); failed != nil && f.opts.OnError == nil {
		return fmt.Errorf("%w; %w", ended, failed)
	}
	return ended
}

// watch finds containers until ctx ends.
func (f *lineFollower) watch() error {
	var denials retry.Denials
	backoff := retry.Backoff{Min: 100 * time.Millisecond, Max: 10 * time.Second}
	for first, n := true, 1; ; first, n = false, n+1 {
		begun := time.Now()
		err := f.listAndWatch()
		denied := denials.Transient(err)
		if err != nil && (!f.listed || retry.IsTerminal(err) && (first || !denied)) {
			return retry.WithContextError(f.ctx, err)
		}
		// A watch that ends is nothing unusual; one that ends at once, or fails, is not to be begun in haste.
		if time.Since(begun) > time.Minute {
			n = 1
		}
		if err := backoff.Wait(f.ctx, n); err != nil {
			return err
		}
	}
}

func (f *lineFollower) listAndWatch() error {
	list, err := f.source.list(f.ctx)
	if err == nil && !f.listed {
		err = list.check(&f.opts, f.source)
	}
	if err != nil {
		return err
	}
	f.replace(list)
	return f.events(list.Metadata.ResourceVersion)
}

// replace makes the pods of a list those that are read.
func (f *lineFollower) replace(list *podList) {
	f.mu.Lock()
	defer f.mu.Unlock()
	there := map[string]bool{}
	for i := range list.Items {
		there[list.Items[i].Metadata.UID] = true
	}
	for key := range f.known {
		if !there[key.uid] {
			f.forget(key)
		}
	}
	for i := range list.Items {
		f.note(&list.Items[i])
	}
	f.listed = true
	f.endIfAllFailed()
}

// note begins to read the logs of a pod's containers that have begun to run. It is called with the lock.
func (f *lineFollower) note(pod *podParts) {
	for _, container := range pod.containers() {
		if !f.opts.wants(&container) {
			continue
		}
		key := containerKey{pod.Metadata.UID, container.Name}
		before := f.known[key]
		if before != nil && before.restarts >= container.RestartCount {
			continue
		}
		opts := f.opts
		if f.listed {
			opts.TailLines, opts.SinceSeconds, opts.SinceTime = nil, 0, time.Time{}
		}
		ctx, cancel := context.WithCancelCause(f.ctx)
		reader := &containerReader{restarts: container.RestartCount, cancel: cancel, done: make(chan struct{})}
		reader.stream = f.source.stream(ctx, pod, &container, &opts)
		reader.stream.joined = f.listed
		reader.before.Store(before)
		f.known[key] = reader
		from := sourceOf(pod, &container)
		f.readers.Go(func() {
			defer close(reader.done)
			defer cancel(nil)
			reader.awaitBefore(ctx)
			f.read(reader, from)
		})
	}
}

// awaitBefore waits until the run before is read, and continues after it.
func (r *containerReader) awaitBefore(ctx context.Context) {
	before := r.before.Load()
	if before == nil {
		return
	}
	select {
	case <-before.done:
	case <-ctx.Done():
		before.cancel(context.Cause(ctx))
		<-before.done
	}
	r.stream.continueAfter(before.stream)
	r.before.Store(nil)
}

// read reads one run of one container.
func (f *lineFollower) read(reader *containerReader, from Line) {
	err := reader.stream.await()
	if err == nil {
		err = eachLine(reader.stream, from, func(line Line) bool {
			select {
			case f.lines <- line:
				return true
			case <-f.ctx.Done():
				return false
			}
		})
	}
	reader.stream.lines = nil                                                                                    // the stream's memory of lines is for the next run
	if err == nil || err == io.EOF || errors.Is(err, errLeft) || errors.Is(err, errGone) || f.ctx.Err() != nil { //nolint:errorlint // itself
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures.add(from, err)
	reader.failed = !errors.Is(err, io.ErrUnexpectedEOF) // of which a part was read: the next run's may be
	if f.listed {
		f.endIfAllFailed()
	}
}

// endIfAllFailed ends the following if there is no container whose log can be read. It is called with the lock.
func (f *lineFollower) endIfAllFailed() {
	for _, reader := range f.known {
		if !reader.failed {
			return
		}
	}
	if len(f.known) > 0 {
		f.cancel(f.failures.err())
	}
}

// await makes the first connection to a container that is said to run: its node may need a moment to give its log.
func (s *logStream) await() error {
	s.waiting.Store(time.Now().UnixNano())
	for {
		err := s.connect()
		switch {
		case err == nil:
			return nil
		case apierrors.IsNotFound(err):
			return errGone
		case retry.IsTerminal(err) && !apierrors.IsBadRequest(err) && (!s.joined || !s.transient(err)):
			return err
		}
		_, running, lookErr := s.look()
		switch {
		case lookErr != nil:
			return lookErr
		case !running && s.retries >= mostRetries:
			return err
		}
		if err := s.wait(); err != nil {
			return err
		}
	}
}
