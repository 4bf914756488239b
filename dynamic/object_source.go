package dynamic

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/reflector"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/transport"
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

// Suspend implements reflector.Suspender.
func (s reflectorStream) Suspend() bool {
	decoder, isJSON := s.events.(interface{ hasBuffered() bool })
	if !isJSON || s.err != nil || decoder.hasBuffered() {
		return false
	}
	s.events = nil
	return true
}

// Wait implements reflector.Suspender.
func (s reflectorStream) Wait() { s.body.wait() }

func (s *objectSource) setEvent(event *reflector.Event[item], eventType watch.EventType, obj item) {
	meta := obj.meta()
	event.Key = reflector.NewKey(meta.GetNamespace(), meta.GetName())
	event.Version = reflector.Version{UID: meta.GetUID(), ResourceVersion: meta.GetResourceVersion()}
	event.Type = eventType
	event.Object = obj
	isEmpty := obj.row != nil && obj.row.Object == nil
	event.IsUnselected = eventType != watch.Bookmark && (isEmpty || !s.filter.matches(meta))
	event.InitialEventsDone = eventType == watch.Bookmark && meta.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

// shardFilter selects the objects of a shard: a server may lack the feature, or be behind a load balancer with others that have it.
// Its nil value selects all objects.
type shardFilter struct {
	selector    shard.Selector
	onUnsharded func()
	isUnsharded bool // the server has sent an object of another shard
}

// matches reports whether the shard has the object.
func (f *shardFilter) matches(obj objectMeta) bool {
	if f == nil || f.selector.Matches(obj.GetNamespace(), obj.GetUID()) {
		return true
	}
	if !f.isUnsharded && f.onUnsharded != nil {
		f.onUnsharded()
	}
	f.isUnsharded = true
	return false
}

// shardProbe remembers the result of ProbeSharding for the handles of a client.
type shardProbe struct {
	turn      chan struct{} // held by the caller
	expires   time.Time
	isSharded bool
	err       error
}

func newShardProbe() *shardProbe { return &shardProbe{turn: make(chan struct{}, 1)} }

const (
	maxShardProbe = 10 * time.Second
	// shardProbeValidity is how long a result is remembered: a server may be replaced.
	shardProbeValidity = 10 * time.Minute
)

// ProbeSharding reports whether the server selects the objects of a FollowOptions.Shard itself, with the feature gate
// ShardedListAndWatch. An error means unknown, such as apierrors.IsForbidden. It lists at most one object: of the handle's resource in
// a group of Kubernetes itself, and otherwise of the namespaces, because lists of custom resources do not tell. The client remembers a
// result and a 403 for ten minutes. Behind a load balancer, the result is that of a single server.
func (e *endpoint) ProbeSharding(ctx context.Context) (isSharded bool, err error) {
	p := e.shardProbe
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return false, fmt.Errorf("probe the shards of %s: %w", e.conn.Server(), retry.ContextError(ctx))
	}
	defer func() { <-p.turn }()
	if time.Now().Before(p.expires) {
		return p.isSharded, p.err
	}
	isSharded, err = e.probeSharding(ctx)
	if err == nil || apierrors.IsForbidden(err) {
		p.expires = time.Now().Add(shardProbeValidity)
		p.isSharded = isSharded
		p.err = err
	}
	return isSharded, err
}

func (e *endpoint) probeSharding(ctx context.Context) (isSharded bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxShardProbe)
	defer cancel()
	path, err := e.Path("")
	if err != nil || strings.Contains(e.apiResource.GVR.Group, ".") { // groups of custom resources contain a dot
		path = "/api/v1/namespaces"
	}
	response, err := e.conn.Do(ctx, &transport.Request{
		Path:   path,
		Query:  url.Values{"limit": {"1"}, "shardSelector": {"shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000000')"}},
		Header: http.Header{"Accept": {jsonType}}, // typed objects
	})
	if err != nil {
		return false, fmt.Errorf("probe the shards of %s: %w", e.conn.Server(), err)
	}
	defer response.Body.Close()
	var list struct{ Metadata struct{ ShardInfo any } }
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return false, fmt.Errorf("probe the shards of %s: GET %s: %w", e.conn.Server(), path, err)
	}
	return list.Metadata.ShardInfo != nil, nil
}

// isUseful reports whether objects are to be read lazily first, because the server sends objects of other shards.
func (f *shardFilter) isUseful() bool { return f != nil && f.isUnsharded }

// shardForm is a form whose full objects are read lazily first while the filter is useful, so that objects of other shards are not
// decoded.
type shardForm struct {
	form

	filter *shardFilter
}

func (f shardForm) protobuf() form {
	filtered, _ := f.form.protobuf().(protobufForm)
	filtered.filter = f.filter
	return filtered
}

func (f shardForm) readItems(e *endpoint, body io.Reader, interner *jsonread.Interner, keepsAll bool) itemReader {
	if f.form != (wholeObjects{}) || !f.filter.isUseful() {
		return f.form.readItems(e, body, interner, keepsAll)
	}
	return &filteredItems{lazyObjects{}.readItems(e, body, nil, keepsAll), newObjectDecoder(f.filter, interner)}
}

func (f shardForm) readEvents(e *endpoint, body io.Reader, interner *jsonread.Interner) eventReader {
	if f.form != (wholeObjects{}) {
		return f.form.readEvents(e, body, interner)
	}
	events := e.limits().NewWatchDecoder(interner.Source(body)) // whose Next and NextLazy may alternate
	return &filteredEvents{objectEvents{events}, lazyEvents{events}, newObjectDecoder(f.filter, interner)}
}

// filteredItems reads items lazily and decodes those of a shard.
type filteredItems struct {
	itemReader

	decoder *objectDecoder
}

func (r *filteredItems) next() (item, error) {
	next, err := r.itemReader.next()
	if err != nil {
		return next, err
	}
	return r.decoder.decode(next, false)
}

// filteredEvents reads events fully until the filter becomes useful. Then it decodes the objects of a shard alone.
type filteredEvents struct {
	objectEvents

	lazy    lazyEvents
	decoder *objectDecoder
}

func (r *filteredEvents) next() (itemEvent, error) {
	if !r.decoder.filter.isUseful() {
		return r.objectEvents.next()
	}
	event, err := r.lazy.next()
	if err == nil {
		event.item, err = r.decoder.decode(event.item, event.eventType == watch.Deleted)
	}
	return event, err
}

// objectDecoder decodes lazy objects of a shard, with the parts of an Interner.
type objectDecoder struct {
	filter *shardFilter
	reader *jsonread.Reader
	json   *jsonSource
}

func newObjectDecoder(filter *shardFilter, interner *jsonread.Interner) *objectDecoder {
	source := &jsonSource{}
	return &objectDecoder{filter, jsonread.NewReader(interner.Source(source), objectChunk), source}
}

const objectChunk = 4 << 10 // bytes

// decode returns a lazy item of another shard as it is.
func (d *objectDecoder) decode(lazy item, isDeleted bool) (item, error) {
	if !d.filter.matches(lazy.lazy) {
		return lazy, nil
	}
	d.json.rest = lazy.lazy.JSON()
	d.reader.Shrink(objectChunk)
	value, err := d.reader.TopValue()
	if err != nil {
		return item{}, err
	}
	fields, _ := value.(map[string]any)
	return item{object: d.reader.NewObject(fields, isDeleted)}, nil
}

// jsonSource is an endless reader of one object after another. The caller sets rest to the next object.
type jsonSource struct{ rest []byte }

func (s *jsonSource) Read(p []byte) (int, error) {
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}
