package inventory

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/resourceversion"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/internal/suspend"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

// The indexes of a kind.
const (
	indexOwner     = "owner"     // the UIDs of the owners, shared by all kinds
	indexReadiness = "readiness" // the status of package readiness
)

// kind is a followed resource in one of its versions.
type kind struct {
	owner *Cache
	cache *cache.Cache[unstructured.Lazy]
	ctx   context.Context //nolint:containedctx // the lifetime of the kind
	stop  context.CancelCauseFunc
	// suspension is the state of the stream in ctx.
	suspension suspend.State

	// owner.mu guards resource and rank.
	resource *discovery.Resource
	rank     int // in the server's order

	// hasStatus reports that indexReadiness was computed with the subresource status.
	hasStatus bool
	// canBeLimited reports that the namespaces of the resource depend on the permissions.
	canBeLimited bool
	// isLimited reports that the user may list the resource in some namespaces only.
	isLimited bool

	mu       sync.Mutex
	streams  []*streamState // a stream for each namespace, or one
	denied   bool           // the list in all namespaces is forbidden
	decided  bool           // a denied kind has its successor, or has none
	excluded int            // the number of namespaces in which the user may not list a limited kind
}

// streamState is the state of a stream of a kind. kind.mu guards it.
type streamState struct {
	namespace       string // "" for all
	resourceVersion string // up to which the cache has the changes
	synced          bool
	err             error // of the current interruption
	failures        int   // in a row
}

// newKind returns a kind in some namespaces, or in all namespaces for nil.
func newKind(ctx context.Context, owner *Cache, resource *discovery.Resource, namespaces []string) *kind {
	k := &kind{owner: owner, resource: resource, hasStatus: owner.hasStatus(resource), canBeLimited: owner.opts.Namespaces == nil && resource.Namespaced}
	k.isLimited = k.canBeLimited && namespaces != nil
	k.ctx, k.stop = context.WithCancelCause(suspend.With(ctx, &k.suspension))
	handle := dynamic.As[unstructured.Lazy](owner.client.ForAPIResource(resource)).AllNamespaces()
	pack := &packer{pack: owner.packSmall, len: func() int { return k.cache.Len() }}
	opts := &cache.Options[unstructured.Lazy]{
		Namespaces: namespaces, LabelSelector: owner.opts.LabelSelector, Pack: pack.Pack,
		SharedIndexes: []*cache.SharedIndex[unstructured.Lazy]{owner.owners},
	}
	if owner.opts.Metadata {
		handle = handle.Metadata()
	} else {
		opts.Indexes = map[string]func(*unstructured.Lazy) []string{
			indexReadiness: func(obj *unstructured.Lazy) []string {
				return []string{string(readinessOf(obj, handle.Readiness(obj)))}
			},
		}
	}
	k.cache = cache.New(cache.Source[unstructured.Lazy](&source{kind: k, handle: handle}), opts)
	if namespaces == nil {
		k.streams = []*streamState{{}}
	}
	for _, namespace := range namespaces {
		if k.stream(namespace) == nil {
			k.streams = append(k.streams, &streamState{namespace: namespace})
		}
	}
	return k
}

// fits reports whether the kind has the version of a resource, and its index the subresource status. A limited kind keeps its index.
func (k *kind) fits(resource *discovery.Resource) bool {
	return k.resource.GVR == resource.GVR && (k.isLimited || k.hasStatus == k.owner.hasStatus(resource))
}

// notLasting is the value of indexReadiness for a status that changes with time alone: it is computed when it is read.
const notLasting readiness.Status = ""

// readinessOf returns the value of indexReadiness. An unschedulable Pod is InProgress for its first seconds, see readiness.Compute.
func readinessOf(obj *unstructured.Lazy, result readiness.Result) readiness.Status {
	if result.Status != readiness.InProgress || obj.GetAPIVersion() != "v1" || obj.GetKind() != "Pod" {
		return result.Status
	}
	if reason, _, _ := unstructured.Get[string](obj, "status", "conditions", "[type=PodScheduled]", "reason"); reason == "Unschedulable" {
		return notLasting
	}
	return result.Status
}

// start runs the cache until ctx ends or the kind is stopped. An error of the cache is a defect, with which abort is called. Each
// goroutine ends while the stream is suspended, so that a kind without changes has a small stack.
func (k *kind) start(all *sync.WaitGroup, abort context.CancelCauseFunc) {
	all.Go(func() {
		err := k.cache.Run(k.ctx)
		if errors.Is(err, suspend.Err) {
			all.Go(func() {
				k.suspension.Wait()
				k.start(all, abort)
			})
			return
		}
		isStopped := k.ctx.Err() != nil && errors.Is(err, context.Canceled)
		k.stop(nil)
		if err != nil && !isStopped {
			abort(err)
		}
	})
}

// isSame reports whether a resource has the same objects, in this or a different version.
func (k *kind) isSame(resource *discovery.Resource) bool {
	return k.resource.GVK.Kind == resource.GVK.Kind && k.resource.Namespaced == resource.Namespaced
}

// stream returns the state of the stream of a namespace, or nil.
func (k *kind) stream(namespace string) *streamState {
	i := slices.IndexFunc(k.streams, func(s *streamState) bool { return s.namespace == namespace })
	if i < 0 {
		return nil
	}
	return k.streams[i]
}

// update changes the state of a stream, and notifies the owner if the change is visible.
func (k *kind) update(namespace string, change func(*streamState)) {
	k.mu.Lock()
	s := k.stream(namespace)
	if s == nil { // not permitted any more
		k.mu.Unlock()
		return
	}
	last := *s
	change(s)
	k.setDenied(s)
	isVisible := s.synced != last.synced || s.failures != last.failures
	isSynced := !slices.ContainsFunc(k.streams, func(s *streamState) bool {
		isLeftOut := s.failures >= maxFailures && (k.isLimited || s.namespace != "" && apierrors.IsForbidden(s.err))
		return !s.synced && !isLeftOut
	})
	k.mu.Unlock()
	switch {
	case isVisible && isSynced:
		k.owner.setSynced(k)
	case isVisible:
		k.owner.mu.Lock()
		k.owner.notify()
		k.owner.mu.Unlock()
	}
}

// maxFailures is the number of failures in a row after which WaitForSync does not wait for a stream.
const maxFailures = 3

// isSettled reports whether each stream has synced or fails, and a denied kind is decided.
func (k *kind) isSettled() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return (!k.denied || k.decided) && !slices.ContainsFunc(k.streams, func(s *streamState) bool { return !s.synced && s.failures < maxFailures })
}

// failure returns the error of the first interrupted stream, or nil.
func (k *kind) failure() *ResourceError {
	k.mu.Lock()
	defer k.mu.Unlock()
	gvr := k.resource.GVR
	failed := &ResourceError{Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource}
	for _, s := range k.streams {
		switch {
		case s.err == nil && s.namespace != "":
			failed.Namespaces = append(failed.Namespaces, s.namespace)
		case failed.Err == nil:
			failed.Err = s.err
		}
	}
	if failed.Err == nil {
		failed.Err = k.forbidden()
	}
	if failed.Err == nil {
		return nil
	}
	return failed
}

// resourceVersion returns the lowest resourceVersion of the streams, or "" if a stream has none.
func (k *kind) resourceVersion() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch len(k.streams) {
	case 0:
		return ""
	case 1:
		return k.streams[0].resourceVersion
	}
	return slices.MinFunc(k.streams, func(a, b *streamState) int {
		order, err := resourceversion.Compare(a.resourceVersion, b.resourceVersion)
		if err != nil { // "" before the initial list
			return cmp.Compare(len(a.resourceVersion), len(b.resourceVersion))
		}
		return order
	}).resourceVersion
}

// source is the source of the cache of a kind: a handle whose Follow starts again after errors, with a bound on concurrent lists.
type source struct {
	kind      *kind
	handle    *dynamic.Handle[unstructured.Lazy]
	namespace string // "" for all
}

// HonorsKnownObjects declares that the source behaves as its handle, see cache.Source.
func (*source) HonorsKnownObjects() {}

// Namespace returns the source of the objects of a namespace.
func (s *source) Namespace(name string) cache.Source[unstructured.Lazy] {
	return &source{s.kind, s.handle.Namespace(name), name}
}

// Path implements cache.Source.
func (s *source) Path(name string) (string, error) { return s.handle.Path(name) }

// followBackoff is the delay before a rejected stream starts again.
var followBackoff = retry.Backoff{Min: 2 * time.Second, Max: 2 * time.Minute}

// errStopped reports that the consumer has left the loop.
var errStopped = errors.New("stopped")

// Follow implements cache.Source.
func (s *source) Follow(ctx context.Context, opts *dynamic.FollowOptions) iter.Seq2[dynamic.Change[unstructured.Lazy], error] {
	return func(yield func(dynamic.Change[unstructured.Lazy], error) bool) {
		current := *opts
		for failures := 1; ; failures++ {
			start := time.Now()
			err := s.follow(ctx, &current, yield)
			switch {
			case errors.Is(err, errStopped):
				return
			case errors.Is(err, suspend.Err):
				yield(dynamic.Change[unstructured.Lazy]{}, err)
				return
			case ctx.Err() != nil:
				yield(dynamic.Change[unstructured.Lazy]{}, retry.WithContextError(ctx, err))
				return
			case time.Since(start) > followBackoff.Max:
				failures = 1
			}
			s.kind.update(s.namespace, func(s *streamState) {
				s.err = err
				s.failures = max(s.failures, maxFailures-1) + 1 // rejected after retries
			})
			delay := followBackoff.Delay(failures)
			if opts.OnInterruption != nil {
				opts.OnInterruption(dynamic.Interruption{Err: err, Relist: true, Delay: delay, Count: failures})
			}
			_ = retry.Sleep(ctx, retry.Jitter(ctx, delay))
			current.ResourceVersion = ""
		}
	}
}

// follow follows the handle until an error or the end of ctx.
func (s *source) follow(ctx context.Context, opts *dynamic.FollowOptions, yield func(dynamic.Change[unstructured.Lazy], error) bool) error {
	release := func() {}
	if !suspend.From(ctx).IsSuspended() {
		var err error
		if release, err = s.kind.owner.lists.Acquire(ctx); err != nil {
			return err
		}
	}
	defer func() { release() }()
	changed := *opts
	changed.OnProgress = func(resourceVersion string) {
		s.kind.update(s.namespace, func(s *streamState) {
			s.resourceVersion = resourceVersion
			s.err = nil
			s.failures = 0
		})
		if opts.OnProgress != nil {
			opts.OnProgress(resourceVersion)
		}
	}
	changed.OnInterruption = func(i dynamic.Interruption) {
		release()
		if i.Err != nil {
			s.kind.update(s.namespace, func(s *streamState) {
				s.err = i.Err
				s.failures++
			})
		}
		if opts.OnInterruption != nil {
			opts.OnInterruption(i)
		}
		if i.Relist {
			release, _ = s.kind.owner.lists.Acquire(ctx)
		}
	}
	for change, err := range s.handle.Follow(ctx, &changed) {
		if err != nil {
			return err
		}
		if !yield(change, nil) { // the cache has the change when yield returns
			return errStopped
		}
		if change.Object != nil {
			s.kind.owner.consumers.addChange(changedObject{s.kind, cache.KeyOf(change.Object)})
		} else {
			s.kind.owner.consumers.addAll()
		}
		if change.Type == dynamic.Synced {
			release()
			s.kind.update(s.namespace, func(s *streamState) { s.synced = true })
		}
	}
	return errors.New("the stream has ended")
}
