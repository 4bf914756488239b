package dynamic

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/reflector"
)

// objectSource is the source of a reflector: the objects of an endpoint.
type objectSource struct {
	endpoint                     *endpoint
	form                         form
	labelSelector, fieldSelector string
	interner                     *jsonread.Interner // for all streams: a change reuses the previous version; nil for none
	filter                       *shardFilter       // nil for all objects
}

func newObjectSource(e *endpoint, form form, opts *FollowOptions) objectSource {
	s := objectSource{endpoint: e, form: form, labelSelector: opts.LabelSelector, fieldSelector: opts.FieldSelector}
	if opts.Intern && form == (wholeObjects{}) {
		s.interner = jsonread.NewInterner()
	}
	if !opts.Shard.IsEverything() {
		s.filter = &shardFilter{selector: opts.Shard, onUnsharded: opts.OnUnsharded}
		s.form = shardForm{form, s.filter}
		s.endpoint = e.withShard(opts.Shard)
	}
	return s
}

// List implements reflector.Source.
func (s *objectSource) List(ctx context.Context, handle func(*reflector.Event[item]) error) (resourceVersion string, err error) {
	e := *s.endpoint
	e.pageOptions = PageOptions{OnPage: func(meta metav1.ListMeta) { resourceVersion = meta.ResourceVersion }}
	var event reflector.Event[item]
	opts := &metav1.ListOptions{LabelSelector: s.labelSelector, FieldSelector: s.fieldSelector}
	err = e.list(ctx, s.form, s.interner, opts, func(obj item) error {
		s.setEvent(&event, watch.Added, obj)
		return handle(&event)
	})
	return resourceVersion, err
}

// Watch implements reflector.Source.
func (s *objectSource) Watch(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[item], error) {
	opts.LabelSelector = s.labelSelector
	opts.FieldSelector = s.fieldSelector
	stream, err := s.endpoint.openWatch(ctx, s.form, s.interner, &opts)
	if err != nil {
		return nil, err
	}
	return reflectorStream{stream, s}, nil
}

// IdleError implements reflector.Source.
func (s *objectSource) IdleError(cause error) error {
	return fmt.Errorf("follow %s: GET %s: %w", s.endpoint, s.endpoint.conn.Server(), cause)
}

// reflectorStream implements reflector.Stream.
type reflectorStream struct {
	*watchStream

	source *objectSource
}

func (s reflectorStream) Next(event *reflector.Event[item]) error {
	received, err := s.next()
	if err == nil {
		s.source.setEvent(event, received.eventType, received.item)
	}
	return err
}

func (s reflectorStream) Close() { s.close() }

func (s *objectSource) setEvent(event *reflector.Event[item], eventType watch.EventType, obj item) {
	meta := obj.meta()
	event.Key = reflector.NewKey(meta.GetNamespace(), meta.GetName())
	event.Version = reflector.Version{UID: meta.GetUID(), ResourceVersion: meta.GetResourceVersion()}
	event.Type = eventType
	event.Object = obj
	event.IsUnselected = eventType != watch.Bookmark && !s.filter.matches(meta)
	event.InitialEventsDone = eventType == watch.Bookmark && meta.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}
