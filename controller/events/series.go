package events

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

// series is an event and its repetitions.
type series struct {
	key  seriesKey
	note string

	name     string // of the Event on the server
	first    time.Time
	last     time.Time
	count    int           // occurrences
	written  int           // occurrences on the server
	interval time.Duration // delay before repetitions are written
}

// groupKey identifies events with equal fields except their notes.
type groupKey struct {
	regarding, related        reference
	eventType, reason, action string
}

type seriesKey struct {
	groupKey
	note string
}

// reference is an ObjectReference.
type reference struct{ apiVersion, kind, namespace, name, uid string }

func referenceTo(obj *unstructured.Object) reference {
	return reference{obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName(), string(obj.GetUID())}
}

func (r reference) object() map[string]any {
	fields := map[string]any{"apiVersion": r.apiVersion, "kind": r.kind, "name": r.name}
	if r.namespace != "" {
		fields["namespace"] = r.namespace
	}
	if r.uid != "" {
		fields["uid"] = r.uid
	}
	return fields
}

// The server's limits, https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/core/validation/events.go.
const (
	maxWordBytes = 128
	maxNoteBytes = 1024
)

const (
	minInterval  = 10 * time.Second
	maxInterval  = 5 * time.Minute
	maxSeriesGap = 6 * time.Minute
)

func newSeries(regarding *unstructured.Object, event Event) (*series, error) {
	if regarding == nil || regarding.GetKind() == "" || regarding.GetName() == "" || event.Reason == "" {
		return nil, fmt.Errorf("record event %q: incomplete (it needs an object with kind and name, and a reason)", event.Reason)
	}
	for _, obj := range []*unstructured.Object{regarding, event.Related} {
		if obj != nil && obj.GroupVersionKind().Group == metav1.GroupName {
			return nil, fmt.Errorf("record event %q: kind %s of %q is that of a metadata-only response (set the apiVersion and kind of the object itself)", event.Reason, obj.GetKind(), obj.GetName())
		}
	}
	now := time.Now()
	s := &series{first: now, last: now, count: 1, interval: minInterval}
	s.note = truncate(cmp.Or(event.Note, event.Reason), maxNoteBytes)
	s.key = seriesKey{groupKey{
		regarding: referenceTo(regarding), eventType: cmp.Or(event.Type, "Normal"),
		reason: truncate(event.Reason, maxWordBytes), action: truncate(cmp.Or(event.Action, event.Reason), maxWordBytes),
	}, s.note}
	if event.Related != nil {
		s.key.related = referenceTo(event.Related)
	}
	s.setName()
	return s, nil
}

func (s *series) setName() {
	unique := fmt.Sprintf(".%x.%x", s.first.UnixNano(), rand.Uint32())
	s.name = s.key.regarding.name + unique
	if len(validation.IsDNS1123Subdomain(s.name)) > 0 {
		s.name = "event" + unique
	}
}

// namespace returns the namespace of the Event: the regarding object's, or default for a cluster-scoped object.
func (s *series) namespace() string {
	return cmp.Or(s.key.regarding.namespace, metav1.NamespaceDefault)
}

// object returns the Event with the number of occurrences and the time of the last occurrence.
func (s *series) object(r *Recorder, count int, last time.Time) *unstructured.Object {
	fields := map[string]any{
		"apiVersion": "events.k8s.io/v1", "kind": "Event",
		"metadata":  map[string]any{"name": s.name, "namespace": s.namespace()},
		"eventTime": timestamp(s.first),
		"type":      s.key.eventType, "reason": s.key.reason, "action": s.key.action, "note": s.note,
		"regarding":           s.key.regarding.object(),
		"reportingController": r.controller, "reportingInstance": r.opts.Instance,
	}
	if s.key.related != (reference{}) {
		fields["related"] = s.key.related.object()
	}
	if count > 1 {
		fields["series"] = seriesField(count, last)
	}
	return &unstructured.Object{Object: fields}
}

func seriesField(count int, last time.Time) map[string]any {
	return map[string]any{"count": int64(count), "lastObservedTime": timestamp(last)}
}

func timestamp(t time.Time) string { return t.UTC().Format(metav1.RFC3339Micro) }

// truncate returns text as valid UTF-8 of at most maxBytes bytes.
func truncate(text string, maxBytes int) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= maxBytes {
		return text
	}
	for !utf8.RuneStart(text[maxBytes]) {
		maxBytes--
	}
	return text[:maxBytes]
}

const (
	requestTimeout = 30 * time.Second
	maxRetries     = 12 // with backoff: some six minutes
)

// run writes series in sequence until the queue is shut down.
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

// write writes the new occurrences of a series, or removes an ended series.
func (r *Recorder) write(ctx context.Context, s *series) {
	r.mu.Lock()
	count := s.count
	last := s.last
	if count == s.written {
		if rest := maxSeriesGap - time.Since(last); rest > 0 {
			r.queue.AddAfter(s, rest) // it was repeated when it was about to end
		} else {
			r.remove(s)
		}
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	err := r.send(ctx, s, count, last)
	if ctx.Err() != nil {
		return // Close has given up, and counts the unwritten occurrences
	}
	denied := r.denials.Record(err) && !apierrors.HasStatusCause(err, namespaceTerminating)
	if err != nil && (denied || isRetryable(err)) && r.queue.NumRequeues(s) < maxRetries {
		r.queue.AddRateLimited(s)
		return
	}
	r.queue.Forget(s)
	r.finish(s, count, err)
	if err != nil {
		r.reportError(err)
	}
}

// send creates the Event, or updates the count of an existing Event.
func (r *Recorder) send(ctx context.Context, s *series, count int, last time.Time) (err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	defer func() {
		if err != nil {
			err = fmt.Errorf("write event %s about %s %q: %w", s.key.reason, s.key.regarding.kind, s.key.regarding.name, err)
		}
	}()
	if s.written > 0 {
		if err := r.sendCount(ctx, s, count, last); !retry.IsObjectNotFound(err) {
			return err
		} // otherwise the server has deleted it: its events expire after an hour
	}
	_, err = r.events.Namespace(s.namespace()).Create(ctx, s.object(r, count, last), nil)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if count > 1 { // the response to an earlier attempt was lost
		return r.sendCount(ctx, s, count, last)
	}
	return nil
}

func (r *Recorder) sendCount(ctx context.Context, s *series, count int, last time.Time) error {
	patch, err := json.Marshal(map[string]any{"series": seriesField(count, last)})
	if err != nil {
		return err
	}
	_, err = r.events.Namespace(s.namespace()).Patch(ctx, s.name, types.MergePatchType, patch, nil)
	return err
}

// namespaceTerminating is the cause of a permanent 403: a terminating namespace accepts no new objects.
const namespaceTerminating metav1.CauseType = "NamespaceTerminating"

// isRetryable reports whether a new attempt may succeed. A starting server may not serve the path yet.
func isRetryable(err error) bool {
	return retry.IsPathNotFound(err) || retry.IsConflict(err) || !retry.IsRejected(err)
}

// finish records the result of writing count occurrences.
func (r *Recorder) finish(s *series, count int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.checkFlushed()
	if s.written == 0 {
		r.unsent--
	} else {
		s.interval = min(2*s.interval, maxInterval)
	}
	if err != nil { // also drops occurrences recorded during the request
		r.dropped += s.count - s.written
		r.unwritten -= s.count - s.written
		s.written = s.count
		r.remove(s)
		return
	}
	r.unwritten -= count - s.written
	s.written = count
	switch {
	case s.count > count && r.closing:
		r.queue.Add(s)
	case s.count > count:
		r.queue.AddAfter(s, s.interval)
	case len(r.series) > maxSeries:
		r.remove(s)
	default:
		r.queue.AddAfter(s, maxSeriesGap)
	}
}

func (r *Recorder) remove(s *series) {
	if r.series[s.key] != s {
		return
	}
	delete(r.series, s.key)
	if r.groups[s.key.groupKey]--; r.groups[s.key.groupKey] <= 0 {
		delete(r.groups, s.key.groupKey)
	}
}
