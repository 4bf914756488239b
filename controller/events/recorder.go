// Package events records Events in the background, as shown by kubectl describe:
//
//	recorder, err := events.NewRecorder(ctx, client, "example.com/widgets", nil)
//	if err != nil {
//		return err
//	}
//	defer recorder.Close(ctx)
//	recorder.Record(pod, events.Event{Type: "Warning", Reason: "DiskFull", Note: "no space is left on the disk"})
//
// See https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/.
package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

// Event reports a controller's action on an object, or a failure.
type Event struct {
	// Type is Normal or Warning; "" means Normal.
	Type string
	// Reason is the machine-readable cause in one word, such as FailedMount; at most 128 bytes.
	Reason string
	// Action is the controller's action in one word, such as Mounting; at most 128 bytes. "" means Reason.
	Action string
	// Note is the text for people. It is cut after 1,024 bytes. "" means Reason.
	Note string
	// Related is a second object involved in the event, or nil.
	Related *unstructured.Object
}

// Recorder writes Events. It is safe for concurrent use. A repeated event is written once and counted in its series. The series
// is updated ten seconds after a repetition and, while it continues, ever more rarely, at least every five minutes. It ends after
// six minutes without repetition. For each object, type, reason and action, the first ten notes have a series each, and all
// further notes share a series.
type Recorder struct {
	events     *dynamic.Resource
	controller string
	opts       Options
	denials    retry.Denials // used by the worker only

	queue *workqueue.Queue[*series]
	stop  context.CancelFunc
	ended chan struct{} // closed when the worker has ended

	mu        sync.Mutex
	series    map[seriesKey]*series
	groups    map[groupKey]int // the number of series of each group
	unsent    int              // series not on the server yet
	unwritten int              // occurrences not on the server yet
	dropped   int
	closing   bool
	flushed   chan struct{} // closed when closing, and nothing is unwritten
}

// Options configure a recorder. nil and zero values mean the defaults.
type Options struct {
	// Instance distinguishes the processes of a controller; "" means the controller's and the host's name.
	Instance string
	// OnError is called with the reason for dropping an event or a series, except for events beyond the limits. It must be quick:
	// it is called by the writing goroutine, or by Record for an incomplete event.
	OnError func(error)
	// Logger receives the same errors; nil means slog.Default().
	Logger *slog.Logger
}

const (
	maxUnsent      = 1000   // new series waiting to be written
	maxSeries      = 10_000 // series kept for counting repetitions
	maxGroupSeries = 10     // series of a group with separate notes
)

// NewRecorder starts a recorder for a controller with the given name, such as "example.com/widgets". Its goroutine ends with
// Close, not with ctx: events recorded during a shutdown are written, too. A rejected event is logged and dropped. The user needs
// the verbs create and patch on events.events.k8s.io.
func NewRecorder(ctx context.Context, client *dynamic.Client, controller string, opts *Options) (*Recorder, error) {
	events, err := client.Resource(ctx, "events.v1.events.k8s.io")
	if err != nil {
		return nil, fmt.Errorf("record events: %w", err)
	}
	r := &Recorder{
		events: events, controller: controller, opts: *cmp.Or(opts, &Options{}),
		queue: workqueue.New[*series](&workqueue.Options{RateLimiter: workqueue.ExponentialBackoff(time.Second, time.Minute)}),
		ended: make(chan struct{}), flushed: make(chan struct{}),
		series: map[seriesKey]*series{}, groups: map[groupKey]int{},
	}
	r.opts.Logger = cmp.Or(r.opts.Logger, slog.Default()).With("controller", controller)
	if r.opts.Instance == "" {
		host, _ := os.Hostname()
		r.opts.Instance = truncate(controller+"-"+host, maxWordBytes)
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	go r.run(background)
	return r, nil
}

// Record records an event about an object. The object must have its apiVersion and kind: an event about a PartialObjectMetadata
// is dropped. Record does not retain the object. It never blocks: if a thousand new events already wait for a slow server, and
// after Close, the event is dropped and counted.
func (r *Recorder) Record(regarding *unstructured.Object, event Event) {
	s, err := newSeries(regarding, event)
	if err != nil {
		r.reportError(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || r.closing {
		r.dropped++
		return
	}
	if r.groups[s.key.groupKey] >= maxGroupSeries && r.series[s.key] == nil {
		s.note = truncate("(combined from similar events): "+s.note, maxNoteBytes)
		s.key.note = "" // the key of all further notes; newSeries makes no empty note
	}
	if existing := r.series[s.key]; existing != nil {
		existing.count++
		existing.last = s.first
		if r.unwritten++; existing.count == existing.written+1 {
			r.queue.AddAfter(existing, existing.interval)
		}
		return
	}
	if r.unsent >= maxUnsent {
		r.dropped++
		return
	}
	r.series[s.key] = s
	r.groups[s.key.groupKey]++
	r.unsent++
	r.unwritten++
	r.queue.Add(s)
}

func (r *Recorder) reportError(err error) {
	r.opts.Logger.Error("event dropped", "error", err)
	if r.opts.OnError != nil {
		r.opts.OnError(err)
	}
}

// Dropped returns the number of events that will never be written: they were too many or incomplete, the server rejected them or
// was unreachable for long, or Close gave up.
func (r *Recorder) Dropped() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// Close writes the recorded events and stops the recorder. If ctx ends before that, the remaining events are dropped and the
// error wraps ctx's error.
func (r *Recorder) Close(ctx context.Context) error {
	r.mu.Lock()
	if !r.closing {
		r.closing = true
		for _, s := range r.series {
			if s.count > s.written && r.queue.NumRequeues(s) == 0 {
				r.queue.Add(s)
			}
		}
		r.checkFlushed()
	}
	r.mu.Unlock()
	err := errors.New("the recorder is closed already")
	select {
	case <-r.flushed:
	case <-r.ended: // an earlier Close has given up
	case <-ctx.Done():
		err = retry.ContextError(ctx)
	}
	r.queue.ShutDown()
	r.stop()
	<-r.ended
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unwritten == 0 {
		return nil
	}
	err = fmt.Errorf("close the recorder: %d events are not written: %w", r.unwritten, err)
	r.dropped += r.unwritten
	r.unwritten = 0
	return err
}

func (r *Recorder) checkFlushed() {
	if !r.closing || r.unwritten > 0 {
		return
	}
	select {
	case <-r.flushed:
	default:
		close(r.flushed)
	}
}
