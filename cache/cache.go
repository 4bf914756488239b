package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/suspend"
	"github.com/anykind/anykind/shard"
)

// Source is the origin of a cache's objects: a handle of package dynamic, or an own implementation. A source with a method
// HonorsKnownObjects() obeys KnownObjects and ResourceVersion of the options as a handle does, and keeps the names of objects. A
// restarted Follow then emits differences only.
type Source[T any] interface {
	Follow(ctx context.Context, opts *dynamic.FollowOptions) iter.Seq2[dynamic.Change[T], error]
	Path(name string) (string, error)
}

// Object is the constraint of a cache's objects. *unstructured.Object, *unstructured.Lazy and structs that embed
// metav1.ObjectMeta satisfy it.
type Object[T any] interface {
	*T
	metaObject
}

// metaObject is the metadata used by a cache.
type metaObject interface {
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
	GetLabels() map[string]string
}

// Options configure a cache. nil and zero values mean all objects of the source, unchanged.
type Options[T any] struct {
	// Namespaces are the namespaces to cache, each with its own stream, for users without rights on all namespaces. nil means the
	// source as it is. An empty list means no namespace, until [Cache.SetNamespaces] adds one. The source must be a handle of package dynamic or have a method Namespace(string) Source[T]. The
	// handle's own namespace is ignored. Reads, indexes, consumers and WaitForSync cover all namespaces.
	//
	// A namespace is rejected while the server rejects its requests or after its stream has ended. OnInterruption receives the
	// error, and the stream is restarted after 2 seconds to a minute. The remaining namespaces continue. Health and WaitForSync
	// return a *[RejectedError]; a program that accepts missing namespaces checks for it with errors.As. Run ends if all
	// namespaces are rejected.
	Namespaces []string
	// Shard selects the objects of a shard, see dynamic.FollowOptions. [Cache.SetShard] changes it while the cache runs, if it has a
	// field here: shard.New(shard.UID, shard.All()...) for all objects, shard.New(shard.UID) for none.
	Shard shard.Selector
	// LabelSelector and FieldSelector choose objects, as in metav1.ListOptions.
	LabelSelector, FieldSelector string
	// Indexes are the index functions for [Cache.ByIndex]. A function returns the values of an object.
	Indexes map[string]func(*T) []string
	// SharedIndexes are indexes that other caches also fill. Their names differ from those of Indexes.
	SharedIndexes []*SharedIndex[T]
	// Transform changes each object before it is stored, for instance to drop unused fields. It may modify the object and return
	// it, return another object with the same UID, or return nil to leave the object out. Keep the UID and the resourceVersion:
	// without them, the object is delivered again after a relist. The result may contain parts of other objects. After its
	// return, the result belongs to the cache and is read-only: Transform must not retain and modify it. Equal maps and slices of
	// full objects are shared, see package cache. Transform is also called with the final state of a deleted object. If the final
	// state is unknown, the stored object is delivered without a call. Lazy.Without drops a field of a lazy object.
	Transform func(*T) *T
	// Pack returns the packed form of an object, to save memory, or nil to store the object as it is. With package cache/packed
	// an object takes a fraction of its JSON and a read takes some microseconds. Reads may return equal objects instead of the
	// same object. Run's goroutine calls Pack.
	Pack func(obj *T) Packed[T]
	// ResyncPeriod is the interval for delivering every object to each consumer again; 0 means never.
	ResyncPeriod time.Duration
	// OnInterruption is called for every interruption of the stream; see dynamic.FollowOptions.
	OnInterruption func(dynamic.Interruption)
	// DisableInterning stores full objects without sharing maps and slices between objects or versions. It takes more memory and
	// time. Use it for code that modifies cached objects: a mutation then stays in its object.
	DisableInterning bool
	// DetectMutations compares stored objects with copies. It costs memory and time and is meant for tests. If a reader has
	// modified an object, Run ends with a *[MutationError], at the latest when ctx ends. ANYKIND_CACHE_MUTATION_DETECTOR=true in
	// the environment enables it in every cache of the process.
	//
	// Under go test every cache compares hashes of a sample by default: the first 64 stored objects, and then every 64th. The
	// variable's value false, DisableInterning and Pack turn the sampling off.
	DetectMutations bool
	// MaxStaleness is the longest healthy time since the last progress of the cache's stream; see [Cache.Staleness]. Health returns an
	// error after it. API servers send a bookmark about once a minute while nothing changes, so a value below two minutes is exceeded by
	// resources at rest. 0 means no limit.
	MaxStaleness time.Duration
	// Audit compares the cache with the server from time to time, and lists the objects again after a difference. nil means never.
	// Names, UIDs and resourceVersions are compared, for each namespace and shard of the cache on its own, by lists of metadata at
	// the cache's resourceVersion. A difference is a lost event, a wrong watch cache of the server, or a defect. Health returns a
	// difference until an audit finds none. Transform must keep UID and resourceVersion. The source must be a handle of package
	// dynamic; otherwise every audit fails.
	Audit *Audit
}

// interns reports whether full objects share equal parts. Packed objects share nothing.
func (o *Options[T]) interns() bool { return o.Pack == nil && !o.DisableInterning }

// Cache is a local copy of a source's objects. It is safe for concurrent use.
type Cache[T any] struct {
	source    Source[T]
	opts      Options[T]
	metaOf    func(*T) metaObject
	callback  callback             // used by Run's goroutine only
	interner  *interner            // used by Run's goroutine only; nil unless full objects have a Transform
	mutations *mutationDetector[T] // nil if disabled

	// mu is held for copies and changes only, never during a callback of the caller. Readers do not starve the writer: a waiting
	// writer blocks new readers, and no goroutine locks mu twice.
	mu        sync.RWMutex
	objects   objects[T]
	indexes   []*index[T] // of Options.Indexes and SharedIndexes; does not change
	consumers map[*consumer[T]]struct{}
	streams   map[string]*streamState // by namespace of the scope, or "" only; see streamOf
	scope     scope
	waiters   waiters
	writes    trackedWrites
	audits    audits[T]
	synced    bool // since the first Synced
	notServed bool
	lastErr   error // of the last interruption

	unsharded atomic.Bool          // the server has sent objects of other shards
	probed    atomic.Pointer[bool] // the result of ProbeSharding; nil for none
	started   atomic.Bool
	abort     context.CancelCauseFunc // ends Run with an error; set before the first object is stored
	suspended *run                    // of Run; nil unless its stream is suspended
	stopped   chan struct{}           // closed when Run returns
	err       error                   // of Run, once stopped is closed
}

// KeyOf returns the key of an object. Namespace is "" for a cluster-scoped object.
func KeyOf(obj interface {
	GetNamespace() string
	GetName() string
}) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// New returns an empty cache. It sends no request before Run.
func New[T any, P Object[T]](source Source[T], opts *Options[T]) *Cache[T] {
	c := &Cache[T]{
		source: source, opts: *cmp.Or(opts, &Options[T]{}), metaOf: func(obj *T) metaObject { return P(obj) },
		objects: objects[T]{}, streams: map[string]*streamState{}, stopped: make(chan struct{}),
	}
	if _, isFull := any((*T)(nil)).(*unstructuredv1.Unstructured); isFull && c.opts.Transform != nil && c.opts.interns() {
		c.interner = newInterner()
	}
	c.scope = newScope(&c.opts)
	for _, namespace := range c.scope.namespaces {
		c.streams[namespace] = &streamState{}
	}
	c.mutations = newMutationDetector(&c.opts)
	if c.opts.Audit != nil { // programs have hundreds of caches without objects: maps are made when they are needed
		c.audits.differences = map[*auditor[T]][]Difference{}
		c.audits.leftOut = map[types.NamespacedName]ObjectVersion{}
	}
	for name, valuesOf := range c.opts.Indexes {
		c.indexes = append(c.indexes, newIndex(name, valuesOf))
	}
	c.opts.Indexes = nil
	for _, shared := range c.opts.SharedIndexes {
		c.indexes = append(c.indexes, &shared.index)
	}
	return c
}

// Source returns the source of the cache's objects.
func (c *Cache[T]) Source() Source[T] { return c.source }

// String returns the path of the cache's resource. With Options.Namespaces it is the path for all namespaces.
func (c *Cache[T]) String() string {
	source := c.source
	if c.opts.Namespaces != nil {
		source = allNamespaces(source)
	}
	path, err := source.Path("")
	if err != nil {
		return err.Error()
	}
	return path
}

// Run fills the cache and keeps it current until ctx ends. It can be called once. It returns the errors of
// [dynamic.Handle.Follow]: ctx's error, or the error of a rejected request at the start. While the server does not serve the
// resource, the cache keeps its objects. After the end of ctx it keeps them, too, unless the cause is [ErrRemoved]. If a function in Options panics, Run ends with a *[PanicError]: the cache would
// otherwise lack the object of the call.
func (c *Cache[T]) Run(ctx context.Context) (err error) {
	if !suspend.From(ctx).IsSuspended() && c.started.Swap(true) {
		return errors.New("run a cache: it runs already, or has run (make another with New)")
	}
	err = fmt.Errorf("run cache %s: its goroutine was ended by runtime.Goexit", c)
	defer func() { // also after a panic or Goexit
		if !errors.Is(err, suspend.Err) {
			c.err = err
			close(c.stopped)
		}
	}()
	defer c.recoverPanic(&err)
	err = c.follow(ctx)
	if errors.Is(context.Cause(ctx), ErrRemoved) {
		c.removeAll()
	}
	return err
}

// run is the state of Run. It outlasts a suspension of the stream, see package internal/suspend.
type run struct {
	ctx        context.Context //nolint:containedctx // of the stream
	abort      context.CancelCauseFunc
	background sync.WaitGroup
	opts       *dynamic.FollowOptions // nil for partitions
}

// follow starts or continues a run until it ends or is suspended.
func (c *Cache[T]) follow(parent context.Context) (err error) {
	r := c.suspended
	if r == nil {
		r = c.newRun(parent)
	}
	c.suspended = nil
	defer func() {
		if errors.Is(err, suspend.Err) {
			c.suspended = r
			return
		}
		err = c.mutations.result(c.String(), err)
		if failure := context.Cause(r.ctx); failure != nil && parent.Err() == nil { //nolint:contextcheck // by abort
			err = failure
		}
		r.abort(nil)
		r.background.Wait()
	}()
	if r.opts == nil {
		return c.followPartitions(suspend.With(r.ctx, nil)) //nolint:contextcheck // derived from parent
	}
	for change, err := range c.source.Follow(r.ctx, r.opts) { //nolint:contextcheck // derived from parent
		if err != nil {
			return err
		}
		if c.apply(change); c.mutations.check() {
			break
		}
	}
	return fmt.Errorf("run cache %s: its source ended without an error", c)
}

// newRun returns a run whose goroutines for resyncs and audits have started.
func (c *Cache[T]) newRun(parent context.Context) *run {
	r := &run{}
	r.ctx, r.abort = context.WithCancelCause(parent)
	c.abort = r.abort
	if c.opts.ResyncPeriod > 0 {
		r.background.Go(func() { c.resync(r.ctx) })
	}
	if c.isPartitioned() {
		return r
	}
	r.opts = c.followOptions()
	r.opts.KnownObjects = c.knownObjects()
	audit := c.newAuditor(nil, c.source)
	if audit != nil {
		r.background.Go(func() { audit.run(r.ctx) })
	}
	r.opts.Relist = audit.requests()
	r.opts.OnProgress = func(resourceVersion string) {
		c.setResourceVersion("", resourceVersion)
		audit.progress(resourceVersion)
	}
	r.opts.OnInterruption = func(i dynamic.Interruption) { c.handleInterruption("", i) }
	return r
}

func (c *Cache[T]) followOptions() *dynamic.FollowOptions {
	return &dynamic.FollowOptions{
		LabelSelector: c.opts.LabelSelector, FieldSelector: c.opts.FieldSelector,
		Intern: c.opts.Transform == nil && c.opts.interns(), // Transform writes to objects
	}
}

// handleInterruption handles an interruption of a stream. The interruption lasts until the stream's next progress.
func (c *Cache[T]) handleInterruption(stream string, i dynamic.Interruption) {
	c.setInterrupted(stream, i.Err)
	if c.opts.OnInterruption != nil {
		c.callback = callback{function: "OnInterruption"}
		c.opts.OnInterruption(i)
		c.callback = callback{}
	}
}

// apply stores a change and delivers it to the consumers.
func (c *Cache[T]) apply(change dynamic.Change[T]) {
	switch change.Type {
	case watch.Added, watch.Modified:
		key := KeyOf(c.metaOf(change.Object)) // before Transform, which may change the key
		received := c.objectVersion(stored[T]{object: change.Object})
		if obj := c.transform(key, change.Object); obj != nil {
			c.put(key, c.intern(key, obj))
			received = ObjectVersion{}
		} else {
			c.remove(key, update[T]{deleted: true})
		}
		c.setLeftOut(key, received)
	case watch.Deleted:
		key := KeyOf(c.metaOf(change.Object))
		c.setLeftOut(key, ObjectVersion{})
		last := update[T]{deleted: true, finalStateUnknown: change.FinalStateUnknown}
		if !change.FinalStateUnknown {
			last.object.object = c.transform(key, change.Object)
		}
		c.remove(key, last)
	case dynamic.Synced, dynamic.NotServed:
		c.setServed(change.Type)
	default: // the start of a list
	}
}

func (c *Cache[T]) transform(key types.NamespacedName, obj *T) *T {
	if c.opts.Transform == nil {
		return obj
	}
	c.callback = callback{function: "Transform", key: key}
	obj = c.opts.Transform(obj)
	c.callback = callback{}
	return obj
}

// intern shares equal parts of a full object from Transform.
func (c *Cache[T]) intern(key types.NamespacedName, obj *T) *T {
	if c.interner == nil {
		return obj
	}
	full, _ := any(obj).(*unstructuredv1.Unstructured)
	previous, _ := any(c.lookUp(key).object).(*unstructuredv1.Unstructured)
	shared, _ := any(c.interner.object(full, previous)).(*T)
	return shared
}

// resync delivers every object to every consumer once per ResyncPeriod.
func (c *Cache[T]) resync(ctx context.Context) {
	ticker := time.NewTicker(c.opts.ResyncPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.mu.RLock() // a consumer has its own lock
			for consumer := range c.consumers {
				for key, e := range c.objects.all() {
					consumer.queue(key, e.stored, update[T]{object: e.stored})
				}
			}
			c.mu.RUnlock()
		}
	}
}

// PanicError reports a panic in a function of the caller.
type PanicError struct {
	// Where names the function and its argument: the index "app" of the cache of /api/v1/pods, for shop/web.
	Where string
	// Value is the value of the panic. It is not unwrapped: a panic is never mistaken for the end of a ctx.
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("panic in %s: %v\n%s", e.Where, e.Value, e.Stack)
}

// callback identifies the running function of Options and its object. The zero value means no function.
type callback struct {
	function, index string
	key             types.NamespacedName
}

// recoverPanic sets err if Run panics. Run defers it.
func (c *Cache[T]) recoverPanic(err *error) {
	value := recover()
	if value == nil {
		return
	}
	where := cmp.Or(c.callback.function, "Run")
	if c.callback.index != "" {
		where += fmt.Sprintf(" %q", c.callback.index)
	}
	where += " of the cache of " + c.String()
	if c.callback.key != (types.NamespacedName{}) {
		where += ", for " + c.callback.key.String()
	}
	*err = &PanicError{Where: where, Value: value, Stack: debug.Stack()}
}
