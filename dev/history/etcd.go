package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Event is a change of a key in etcd. The first events of an epoch are the keys at its begin.
type Event struct {
	Key      ID
	Revision int64 // mod_revision
	Created  int64 // create_revision; 0 for a deletion
	At       int64 // the time of its receipt
}

// Deleted reports whether the event is a deletion.
func (e Event) Deleted() bool { return e.Created == 0 }

// Gap is a range of unrecorded revisions, after First and before Last. The events at Last are the differences.
type Gap struct{ First, Last int64 }

// Epoch is the history of etcd from the start of the recording, or from a restore.
type Epoch struct {
	Begin  int64
	Events []Event // by Revision
	Gaps   []Gap

	byKey map[ID][]Event
}

// Etcd records the history of etcd's keys below a prefix. It survives restarts and compactions of etcd.
type Etcd struct {
	client   *clientv3.Client
	prefix   string
	recorder *Recorder
	stop     context.CancelFunc
	work     sync.WaitGroup

	mu       sync.Mutex
	epochs   []*Epoch
	live     map[ID]int64 // the mod_revision of each key
	revision int64        // all events up to it are recorded
}

// retryInterval is the time between attempts to read etcd, and between requests for progress.
const retryInterval = 50 * time.Millisecond

// RecordEtcd starts a recording. Close ends it and does not close the client.
func RecordEtcd(ctx context.Context, client *clientv3.Client, prefix string, r *Recorder) (*Etcd, error) {
	e := &Etcd{client: client, prefix: prefix, recorder: r}
	return e, e.beginEpoch(ctx)
}

// Close ends the recording.
func (e *Etcd) Close() {
	e.stop()
	e.work.Wait()
}

// Restored begins a new history after the restore of an older state. It is called before the API servers start again.
func (e *Etcd) Restored(ctx context.Context) error {
	e.Close()
	return e.beginEpoch(ctx)
}

func (e *Etcd) beginEpoch(ctx context.Context) error {
	e.mu.Lock()
	e.epochs = append(e.epochs, &Epoch{Begin: e.recorder.Now()})
	e.live = map[ID]int64{}
	e.revision = 0
	e.mu.Unlock()
	if err := e.list(ctx); err != nil {
		return fmt.Errorf("record etcd: %w", err)
	}
	watching, stop := context.WithCancel(ctx)
	e.stop = stop
	e.work.Go(func() {
		for watching.Err() == nil {
			e.watch(watching)
			if e.list(watching) != nil { // the next events were compacted
				return
			}
		}
	})
	return nil
}

// list records the differences between the recorded keys and etcd's. It retries until ctx ends.
func (e *Etcd) list(ctx context.Context) error {
	for {
		response, err := e.client.Get(ctx, e.prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err == nil {
			e.compare(response)
			return nil
		}
		if err := sleep(ctx, retryInterval); err != nil {
			return err
		}
	}
}

func (e *Etcd) compare(response *clientv3.GetResponse) {
	current := response.Header.Revision
	missing := map[ID]bool{}
	e.mu.Lock()
	first := e.revision
	for id := range e.live {
		missing[id] = true
	}
	e.mu.Unlock()
	var events []Event
	for _, kv := range response.Kvs {
		id := e.recorder.intern(string(kv.Key))
		delete(missing, id)
		if kv.ModRevision > first {
			events = append(events, Event{Key: id, Revision: kv.ModRevision, Created: kv.CreateRevision})
		}
	}
	slices.SortFunc(events, func(a, b Event) int { return cmp.Compare(a.Revision, b.Revision) })
	for id := range missing {
		events = append(events, Event{Key: id, Revision: current})
	}
	e.add(events, current, &Gap{first, current})
}

// watch records events until ctx ends, or the next events are compacted. The client resumes it after restarts of etcd.
func (e *Etcd) watch(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.mu.Lock()
	next := e.revision + 1
	e.mu.Unlock()
	for response := range e.client.Watch(ctx, e.prefix, clientv3.WithPrefix(), clientv3.WithRev(next)) {
		if response.Err() != nil {
			return
		}
		var events []Event
		for _, event := range response.Events {
			events = append(events, Event{Key: e.recorder.intern(string(event.Kv.Key)), Revision: event.Kv.ModRevision, Created: event.Kv.CreateRevision})
		}
		switch {
		case len(events) > 0: // the revision of the header may be ahead of them
			e.add(events, events[len(events)-1].Revision, nil)
		case response.IsProgressNotify():
			e.add(nil, response.Header.Revision, nil)
		}
	}
}

func (e *Etcd) add(events []Event, revision int64, gap *Gap) {
	now := e.recorder.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	epoch := e.epochs[len(e.epochs)-1]
	for _, event := range events {
		event.At = now
		epoch.Events = append(epoch.Events, event)
		if event.Deleted() {
			delete(e.live, event.Key)
		} else {
			e.live[event.Key] = event.Revision
		}
	}
	if gap != nil {
		epoch.Gaps = append(epoch.Gaps, *gap)
	}
	e.revision = max(e.revision, revision)
}

// Await waits until the events up to etcd's current revision are recorded, and returns that revision.
func (e *Etcd) Await(ctx context.Context) (revision int64, err error) {
	response, err := e.client.Get(ctx, e.prefix, clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("read etcd's revision: %w", err)
	}
	revision = response.Header.Revision
	for {
		e.mu.Lock()
		reached := e.revision >= revision
		e.mu.Unlock()
		if reached {
			return revision, nil
		}
		_ = e.client.RequestProgress(ctx) // an error means that there is no stream at this time
		if err := sleep(ctx, retryInterval); err != nil {
			return 0, fmt.Errorf("wait for etcd's revision %d: %w", revision, err)
		}
	}
}

// Epochs returns a copy of the history so far.
func (e *Etcd) Epochs() (epochs []*Epoch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, epoch := range e.epochs {
		epochs = append(epochs, &Epoch{Begin: epoch.Begin, Events: slices.Clone(epoch.Events), Gaps: slices.Clone(epoch.Gaps)})
	}
	return epochs
}

func sleep(ctx context.Context, wait time.Duration) error {
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
