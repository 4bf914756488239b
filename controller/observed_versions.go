package controller

import (
	"context"
	"sync"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// A cache lags behind its own process: Finalize, SetStatus and PatchStatus get the state of an object with each response, and
// read it again after a conflict. A reconcile that found an older state afterwards could take an object for live whose
// finalizer an earlier one has removed. So each runner remembers, by key, the resourceVersion of the latest state that these
// functions have received, and postpones reconciles of the key until the cache has it. The event that brings it triggers the
// reconcile. The version is recorded when a state is read, before it is acted upon: a write whose response is lost needs none
// of its own. A later object of the name has a higher version.
//
// After a restore of etcd from a backup a version may never be reached; so it is ignored after maxPostponement. A version
// that the cache has is removed by the next reconcile of its key: there are as many as events that have not arrived.

const maxPostponement = 5 * time.Minute

// observedVersions are the resourceVersions of the objects that a runner reconciles which its reconciles have received.
type observedVersions struct {
	resource schema.GroupResource
	cached   func(cache.Key) string // the resourceVersion of an object in the cache, "" for none

	mu    sync.Mutex
	byKey map[cache.Key]observedVersion
}

type observedVersion struct {
	resourceVersion string
	expires         time.Time
}

// observedVersionsKey is the key under which the ctx of reconciles carries where they record what they receive.
type observedVersionsKey struct{}

// recordObserved records a state that a reconcile has received from the server, if ctx is that of a reconcile of r's objects.
func recordObserved(ctx context.Context, r *dynamic.Resource, obj *unstructured.Object) {
	s, _ := ctx.Value(observedVersionsKey{}).(*observedVersions)
	if s == nil || obj == nil || r.Mapping().GVR.GroupResource() != s.resource {
		return
	}
	key, version := cache.KeyOf(obj), obj.GetResourceVersion()
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, found := s.byKey[key]; found && !isNewer(version, last.resourceVersion) {
		return
	}
	s.byKey[key] = observedVersion{version, time.Now().Add(maxPostponement)}
}

// postponement returns how long a reconcile is postponed at most because the cache has an older state of the object; 0 if it
// has none.
func (s *observedVersions) postponement(key cache.Key) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	observed, found := s.byKey[key]
	if !found {
		return 0
	}
	if remaining := time.Until(observed.expires); remaining > 0 && isNewer(observed.resourceVersion, s.cached(key)) {
		return remaining
	}
	delete(s.byKey, key)
	return 0
}

// cachedVersion returns observedVersions.cached for a cache.
func cachedVersion[T any, P cache.Object[T]](c *cache.Cache[T]) func(cache.Key) string {
	return func(key cache.Key) string {
		if obj, found := c.Get(key.Namespace, key.Name); found {
			return P(obj).GetResourceVersion()
		}
		return ""
	}
}

// isNewer reports whether a resourceVersion is higher than another; false if they cannot be compared, as "" cannot.
func isNewer(resourceVersion, other string) bool {
	order, err := resourceversion.CompareResourceVersion(resourceVersion, other)
	return err == nil && order > 0
}
