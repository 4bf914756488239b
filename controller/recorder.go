package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

// Event says what a controller did with an object, or why it could not: what kubectl describe shows. See
// https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/.
type Event struct {
	// Type is Normal or Warning; "" means Normal.
	Type string
	// Reason is why, in a word that programs can look for: FailedMount. At most 128 bytes.
	Reason string
	// Action is what was done, in a word: Mounting. "" means the reason's word. At most 128 bytes.
	Action string
	// Note is for people. What is longer than 1,024 bytes is cut.
	Note string
	// Related is another object that has to do with it, or nil.
	Related *unstructured.Object
}

// Recorder writes Events, in the background. It is safe for concurrent use. An event that is repeated is written once
// and counted in its series, which is brought up to date ten seconds after a repetition and, while it goes on, ever more
// rarely, at least every five minutes; a series ends when it is not repeated for six minutes. Of one object, type,
// reason and action, ten different notes have a series each, and all others one together.
type Recorder struct {
	events     *dynamic.Resource
	controller string
	instance   string
	failed     func(error)
	log        *slog.Logger
	denials    retry.Denials // of the worker alone

	queue *Queue[*series]
	stop  context.CancelFunc
	ended chan struct{} // closed when the worker has ended

	mu        sync.Mutex
	series    map[seriesKey]*series
	notes     map[groupKey]int // how many series a group has
	fresh     int              // series of which nothing is written yet
	unwritten int              // occurrences of which the server does not know
	dropped   int
	closing   bool
	flushed   chan struct{} // closed when closing, and nothing is unwritten
}

// RecorderOptions are what a recorder can be told; the zero values are valid defaults.
type RecorderOptions struct {
	// Instance tells this process from others of the same controller; "" means the controller's and the host's name.
	Instance string
	// Failed is called with why an event or a series was dropped, but not for each of too many. It must be quick: the
	// goroutine that writes calls it, or Record, for an event that lacks something.
	Failed func(error)
	// Logger receives the same errors; nil means slog.Default().
	Logger *slog.Logger
}

const (
	mostFresh  = 1000   // so many new events wait to be written
	mostSeries = 10_000 // so many are remembered to be counted
	mostNotes  = 10     // so many series a group has, besides the one for all others
)

// NewRecorder starts a recorder for the controller of that name, such as "example.com/widgets". Its goroutine ends with
// Close, and not with ctx: what is recorded on the way out is written too. An event that the server refuses is logged and
// dropped. It takes the verbs create and patch on events.events.k8s.io.
func NewRecorder(ctx context.Context, client *dynamic.Client, controller string, opts *RecorderOptions) (*Recorder, error) {
	events, err := client.Resource(ctx, "events.v1.events.k8s.io")
	if err != nil {
		return nil, fmt.Errorf("record events: %w", err)
	}
	if opts == nil {
		opts = &RecorderOptions{}
	}
	r := &Recorder{
		events: events, controller: controller, instance: opts.Instance, failed: opts.Failed,
		queue: NewQueue[*series](&QueueOptions{MinBackoff: time.Second, MaxBackoff: time.Minute}),
		ended: make(chan struct{}), flushed: make(chan struct{}),
		series: map[seriesKey]*series{}, notes: map[groupKey]int{}, log: opts.Logger,
	}
	if r.log == nil {
		r.log = slog.Default()
	}
	r.log = r.log.With("controller", controller)
	if r.instance == "" {
		host, _ := os.Hostname()
		r.instance = cut(controller+"-"+host, mostWord)
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	go r.run(background)
	return r, nil
}

// Record records an event about an object, which is not kept and says its own apiVersion and kind: an event about a
// PartialObjectMetadata is dropped. It never blocks: where a thousand new events wait already,
// for a server that is slow or away, and after Close, the event is dropped and counted.
func (r *Recorder) Record(regarding *unstructured.Object, event Event) {
	s, err := newSeries(regarding, event)
	if err != nil {
		r.report(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || r.closing {
		r.dropped++
		return
	}
	if r.notes[s.key.groupKey] >= mostNotes && r.series[s.key] == nil {
		s.note = cut("(combined from similar events): "+s.note, mostNote)
		s.key.note = "" // which stands for all others: newSeries lets none be empty
	}
	if known := r.series[s.key]; known != nil {
		known.count++
		known.last = s.first
		if r.unwritten++; known.count == known.written+1 {
			r.queue.AddAfter(known, known.interval)
		}
		return
	}
	if r.fresh >= mostFresh {
		r.dropped++
		return
	}
	r.series[s.key] = s
	r.notes[s.key.groupKey]++
	r.fresh++
	r.unwritten++
	r.queue.Add(s)
}

// report logs why an event or a series is dropped, and calls the Failed hook.
func (r *Recorder) report(err error) {
	r.log.Error("event dropped", "error", err)
	if r.failed != nil {
		r.failed(err)
	}
}

// Dropped is how many events were not written and never will be: there were too many, the server refused them or could
// not be reached for long, or Close gave up.
func (r *Recorder) Dropped() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// Close writes what is recorded and ends the recorder. Where ctx ends first, what is left is dropped, and the error
// wraps ctx's.
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
	var err error
	select {
	case <-r.flushed:
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
	if err == nil {
		err = errors.New("the recorder was closed before")
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
