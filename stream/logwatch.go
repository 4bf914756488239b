package stream

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// drainIdle is how long the log of a deleted pod may bring nothing before it is left.
	drainIdle = 2 * time.Second
	// maxDrain is how long it is read at most.
	maxDrain = time.Minute
)

// podEvent is an event of a watch.
type podEvent struct {
	Type   string
	Object json.RawMessage
}

// events notes what happens to the pods until the watch ends, which is no error.
func (f *lineFollower) events(version string) error {
	query := maps.Clone(f.source.query)
	query.Set("watch", "1")
	query.Set("resourceVersion", version)
	response, err := f.source.conn.Do(f.ctx, &transport.Request{Path: f.source.path, Query: query})
	if retry.IsExpired(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body := newLimitedReader(response.Body, "an event", maxObject)
	for decoder := json.NewDecoder(body); ; body.reset() {
		var event podEvent
		if err := decoder.Decode(&event); err != nil {
			return nil // a watch that ends, well or not, is begun again
		}
		if err := f.event(&event); err != nil {
			if retry.IsExpired(err) {
				return nil // with a new list
			}
			return err
		}
	}
}

func (f *lineFollower) event(event *podEvent) error {
	if event.Type == "ERROR" {
		refusal := &apierrors.StatusError{}
		if err := json.Unmarshal(event.Object, &refusal.ErrStatus); err != nil {
			return fmt.Errorf("watch pods: %w", err)
		}
		return sanitized(refusal)
	}
	if event.Type != "ADDED" && event.Type != "MODIFIED" && event.Type != "DELETED" {
		return nil
	}
	var pod podParts
	if err := json.Unmarshal(event.Object, &pod); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if event.Type != "DELETED" {
		f.note(&pod)
		return nil
	}
	for key := range f.known {
		if key.uid == pod.Metadata.UID {
			f.forget(key)
		}
	}
	return nil
}

// forget drops a container of a pod that was deleted: what its node still has is read, but the end of that is not waited
// for. It is called with the lock.
func (f *lineFollower) forget(key containerKey) {
	reader := f.known[key]
	delete(f.known, key)
	f.readers.Go(func() { reader.drain() })
}

// drain ends a reader once nothing more comes.
func (r *containerReader) drain() {
	ticker, limit := time.NewTicker(drainIdle/4), time.NewTimer(maxDrain)
	defer ticker.Stop()
	defer limit.Stop()
	for {
		select {
		case <-r.done:
			return
		case <-limit.C:
			r.cancel(errGone)
			return
		case <-ticker.C:
			if since := r.waitingSince(); since != 0 && time.Since(time.Unix(0, since)) >= drainIdle {
				r.cancel(errGone)
				return
			}
		}
	}
}

// waitingSince is that of the stream that is being read.
func (r *containerReader) waitingSince() int64 {
	if before := r.before.Load(); before != nil {
		return before.waitingSince()
	}
	return r.stream.waiting.Load()
}
