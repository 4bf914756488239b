package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"
	"time"

	"github.com/anykind/anykind/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gathering reads the logs of many containers at once.
type gathering struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	pods    Target
	opts    LogOptions
	list    *podList
	lines   chan Line
	readers sync.WaitGroup
	known   map[containerKey]*following
}

// containerKey is a container of one pod, in all its runs.
type containerKey struct{ uid, container string }

// following is a container whose log is being read.
type following struct {
	restarts int
	done     chan struct{} // closed when the log of that run is read
}

// followLines reads logs until ctx ends or give says that it is enough.
func followLines(ctx context.Context, pods Target, opts *LogOptions, give func(Line) bool) error {
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	g := &gathering{
		ctx: ctx, cancel: cancel, pods: pods, opts: *opts, lines: make(chan Line), known: map[containerKey]*following{},
	}
	defer g.readers.Wait()
	defer cancel(errLeft)
	g.readers.Go(func() {
		if err := g.watch(); err != nil {
			cancel(err)
		}
	})
	for {
		select {
		case line := <-g.lines:
			if !give(line) {
				return errLeft
			}
		case <-ctx.Done():
			if caller.Err() != nil {
				return ended(caller, context.Canceled)
			}
			return context.Cause(ctx)
		}
	}
}

// watch finds containers until ctx ends.
func (g *gathering) watch() error {
	pause := time.Duration(0)
	for joining := false; ; joining = true {
		begun := time.Now()
		list, err := listPods(g.ctx, g.pods, g.opts.Selector)
		if err == nil {
			g.list = list
			g.forget()
			for i := range list.Items {
				g.note(&list.Items[i], joining)
			}
			err = g.events(list.Metadata.ResourceVersion)
		}
		if err != nil && (!joining && g.list == nil || !passes(err)) {
			return err
		}
		// A watch that ends is nothing unusual; one that ends at once, or fails, is not to be begun in haste.
		if time.Since(begun) > time.Minute {
			pause = 0
		}
		pause = min(10*time.Second, max(100*time.Millisecond, 2*pause))
		select {
		case <-time.After(pause):
		case <-g.ctx.Done():
			return g.ctx.Err()
		}
	}
}

// events notes what happens to the pods until the watch ends, which is no error.
func (g *gathering) events(version string) error {
	query := url.Values{"watch": {"1"}, "resourceVersion": {version}}
	if g.opts.Selector != "" {
		query.Set("labelSelector", g.opts.Selector)
	}
	response, err := g.pods.Conn().Do(g.ctx, &transport.Request{Path: g.list.path, Query: query})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for decoder := json.NewDecoder(response.Body); ; {
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := decoder.Decode(&event); err != nil {
			return nil // a watch that ends, well or not, is begun again
		}
		var pod podParts
		switch event.Type {
		case "ERROR":
			return g.eventError(event.Object)
		case "ADDED", "MODIFIED":
			if err := json.Unmarshal(event.Object, &pod); err != nil {
				return fmt.Errorf("watch pods: %w", err)
			}
			g.note(&pod, true)
		}
	}
}

// eventError is what ends a watch: one whose beginning is forgotten begins with a new list.
func (g *gathering) eventError(object json.RawMessage) error {
	refusal := &apierrors.StatusError{}
	if err := json.Unmarshal(object, &refusal.ErrStatus); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	if refusal.ErrStatus.Reason == metav1.StatusReasonExpired || refusal.ErrStatus.Reason == metav1.StatusReasonGone {
		return nil
	}
	return refusal
}

// forget drops the containers of pods that are there no more.
func (g *gathering) forget() {
	there := map[string]bool{}
	for i := range g.list.Items {
		there[g.list.Items[i].Metadata.UID] = true
	}
	for key := range g.known {
		if !there[key.uid] {
			delete(g.known, key)
		}
	}
}

// note begins to read the logs of a pod's containers that have begun to run.
func (g *gathering) note(pod *podParts, joining bool) {
	for _, container := range pod.containers() {
		if !g.opts.wants(&container) {
			continue
		}
		key := containerKey{pod.Metadata.UID, container.Name}
		before := g.known[key]
		if before != nil && before.restarts >= container.RestartCount {
			continue
		}
		opts := g.opts
		if joining {
			opts.TailLines, opts.SinceSeconds, opts.SinceTime = nil, 0, time.Time{}
		}
		now := &following{restarts: container.RestartCount, done: make(chan struct{})}
		g.known[key] = now
		stream := g.list.stream(g.ctx, g.pods, pod, &container, &opts)
		from := sourceOf(pod, &container)
		g.readers.Go(func() {
			defer close(now.done)
			if before != nil {
				<-before.done
			}
			g.read(stream, from)
		})
	}
}

// read reads one run of one container.
func (g *gathering) read(stream *logStream, from Line) {
	err := stream.await()
	if err == nil {
		err = eachLine(stream, from, func(line Line) bool {
			select {
			case g.lines <- line:
				return true
			case <-g.ctx.Done():
				return false
			}
		})
	}
	if err != nil && !errors.Is(err, errLeft) && !errors.Is(err, errGone) && err != io.EOF { //nolint:errorlint // itself
		g.cancel(err)
	}
}

// await makes the first connection to a container that is said to run: its node may need a moment to give its log.
func (s *logStream) await() error {
	for {
		err := s.connect()
		switch {
		case err == nil:
			return nil
		case apierrors.IsNotFound(err):
			return errGone
		case !passes(err) && !apierrors.IsBadRequest(err):
			return fmt.Errorf("pod %q: %w", s.pod, err)
		}
		if _, _, err := s.look(); err != nil {
			return err
		}
		if err := s.wait(); err != nil {
			return err
		}
	}
}
