package dynamic

import (
	"io"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/shard"
)

// withShard returns a copy of e that requests the objects of a shard.
func (e *endpoint) withShard(selector shard.Selector) *endpoint {
	changed := *e
	changed.shard = selector.String()
	return &changed
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
