package controller

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// series is an event and its repetitions.
type series struct {
	key  seriesKey
	note string

	name     string // of the object on the server
	first    time.Time
	last     time.Time
	count    int           // occurrences
	written  int           // of them, those that the server knows
	interval time.Duration // until repetitions are written
}

// groupKey is what events have in common that look the same but for their notes.
type groupKey struct {
	regarding            reference
	related              reference
	kind, reason, action string
}

type seriesKey struct {
	groupKey
	note string
}

// reference is an ObjectReference.
type reference struct{ apiVersion, kind, namespace, name, uid string }

func referenceOf(obj *unstructured.Object) reference {
	return reference{obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName(), string(obj.GetUID())}
}

func (r reference) object() map[string]any {
	all := map[string]any{"apiVersion": r.apiVersion, "kind": r.kind, "name": r.name}
	if r.namespace != "" {
		all["namespace"] = r.namespace
	}
	if r.uid != "" {
		all["uid"] = r.uid
	}
	return all
}

// What the server takes at most, https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/core/validation/events.go.
const (
	mostWord = 128
	mostNote = 1024
)

const (
	firstInterval   = 10 * time.Second
	longestInterval = 5 * time.Minute
	lastsSilent     = 6 * time.Minute
)

func newSeries(regarding *unstructured.Object, event Event) (*series, error) {
	if regarding == nil || regarding.GetKind() == "" || regarding.GetName() == "" || event.Reason == "" {
		return nil, fmt.Errorf("record the event %q: it needs an object with kind and name, and a reason", event.Reason)
	}
	for _, obj := range []*unstructured.Object{regarding, event.Related} {
		if obj != nil && isMetaKind(obj) {
			return nil, fmt.Errorf("record the event %q about %s: the kind is that of a metadata-only answer: set the apiVersion and kind of the object itself", event.Reason, called(obj))
		}
	}
	if event.Type == "" {
		event.Type = "Normal"
	}
	if event.Action == "" {
		event.Action = event.Reason
	}
	if event.Note == "" {
		event.Note = event.Reason
	}
	s := &series{note: cut(event.Note, mostNote), first: time.Now(), count: 1, interval: firstInterval}
	s.last = s.first
	s.key.regarding = referenceOf(regarding)
	if event.Related != nil {
		s.key.related = referenceOf(event.Related)
	}
	s.key.kind, s.key.reason, s.key.action = event.Type, cut(event.Reason, mostWord), cut(event.Action, mostWord)
	s.key.note = s.note
	s.rename()
	return s, nil
}

// rename gives the event's object a name that no other has.
func (s *series) rename() {
	unique := fmt.Sprintf(".%x.%x", s.first.UnixNano(), rand.Uint32())
	s.name = s.key.regarding.name + unique
	if len(validation.IsDNS1123Subdomain(s.name)) > 0 {
		s.name = "event" + unique
	}
}

// namespace is where the event's object is: with the object that it is about.
func (s *series) namespace() string {
	if s.key.regarding.namespace == "" {
		return "default"
	}
	return s.key.regarding.namespace
}

// microTime is metav1.MicroTime's form.
const microTime = "2006-01-02T15:04:05.000000Z07:00"

// object is the Event as the server takes it, of so many occurrences until then.
func (s *series) object(r *Recorder, count int, last time.Time) *unstructured.Object {
	fields := map[string]any{
		"apiVersion": "events.k8s.io/v1", "kind": "Event",
		"metadata":  map[string]any{"name": s.name, "namespace": s.namespace()},
		"eventTime": s.first.UTC().Format(microTime),
		"type":      s.key.kind, "reason": s.key.reason, "action": s.key.action, "note": s.note,
		"regarding":           s.key.regarding.object(),
		"reportingController": r.controller, "reportingInstance": r.instance,
	}
	if s.key.related != (reference{}) {
		fields["related"] = s.key.related.object()
	}
	if count > 1 {
		fields["series"] = counted(count, last)
	}
	return &unstructured.Object{Object: fields}
}

func counted(count int, last time.Time) map[string]any {
	return map[string]any{"count": int64(count), "lastObservedTime": last.UTC().Format(microTime)}
}

// cut is text of so many bytes at most.
func cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
