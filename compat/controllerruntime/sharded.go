package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	anykindcache "github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller/sharding"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/unstructured"
)

// ShardedReconciler divides the keys of a controller among processes that run the same manager, the members of a group. It is both the
// reconciler of the controller and a source of the controller:
//
//	widgets, err := controllerruntime.NewShardedReconciler(mgr.GetCache(), group, &Widget{}, reconciler)
//	…
//	err = ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&corev1.Pod{}).WatchesRawSource(widgets).Complete(widgets)
//	…
//	err = group.Run(ctx, mgr.Start)
//
// No object is reconciled by two members at the same time, see package sharding. By UID, an object and its successor of the same name may
// have different members at the same time. Keys of other members are dropped. A key is reconciled when the member gains it. The ctx of a
// reconcile ends with the cause leaderelection.ErrLeaseLost when a different member may reconcile the key, and no request with this ctx
// is sent after that. A reconcile starts when the manager's cache is as new as the metadata that the member has read after it gained the
// key.
//
// The manager runs without leader election. Its cache has the objects of all members. In addition each member watches the metadata of
// its own share, and keeps names, UIDs and resourceVersions.
type ShardedReconciler struct {
	next   reconcile.Reconciler
	group  *sharding.Group
	cache  *informerCache
	object client.Object

	queue   workqueue.TypedRateLimitingInterface[reconcile.Request] // nil before Start
	fence   *sharding.Fence
	shares  []*share
	deleted sync.Map // keys of deleted objects to their UIDs, until they are reconciled or dropped

	mu     sync.Mutex
	parked map[reconcile.Request]struct{} // keys that the member owns, but may not reconcile yet
	err    error                          // ends all reconciles
}

// share has the metadata of this member's objects, from an informer.
type share struct {
	informer *informer
	metadata *anykindcache.Cache[unstructured.Object]
}

// NewShardedReconciler returns a reconciler that calls next with the keys of this member. The keys are those of objects of obj's kind and
// form in the manager's cache, which must be a cache of [Constructors.NewCache].
func NewShardedReconciler(objects cache.Cache, group *sharding.Group, obj client.Object, next reconcile.Reconciler) (*ShardedReconciler, error) {
	informers, ok := objects.(*informerCache)
	if !ok {
		return nil, fmt.Errorf("a sharded reconciler needs a cache of Constructors.NewCache, not a %T", objects)
	}
	return &ShardedReconciler{next: next, group: group, cache: informers, object: obj, parked: map[reconcile.Request]struct{}{}}, nil
}

// Start implements source.Source. It must be called within the work of the group's Run.
func (s *ShardedReconciler) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	if s.fence != nil {
		return errors.New("start a sharded reconciler: it has been started (make another for each controller)")
	}
	s.queue = queue
	gvk, err := apiutil.GVKForObject(s.object, s.cache.scheme)
	if err != nil {
		return err
	}
	if _, err := s.cache.GetInformer(ctx, s.object, cache.BlockUntilSynced(false)); err != nil {
		return err
	}
	s.shares = nil
	var fenced []sharding.Cache
	for _, i := range s.cache.find(kindForm{gvk, formOf(s.object)}) {
		if i.source.failure != nil {
			return i.source.failure
		}
		metadata := anykindcache.New(i.source.resource.Metadata(), &anykindcache.Options[unstructured.Object]{
			Shard: shard.New(s.group.Field()), LabelSelector: i.labelSelector, FieldSelector: i.fieldSelector, Transform: identityOf,
		})
		s.shares = append(s.shares, &share{i, metadata})
		fenced = append(fenced, metadata)
	}
	if s.fence, err = s.group.NewFence(s.unpark, fenced...); err != nil {
		return fmt.Errorf("start a sharded reconciler of %s: %w", gvk.Kind, err)
	}
	context.AfterFunc(ctx, s.fence.Close)
	for _, share := range s.shares {
		go func() {
			if err := share.metadata.Run(ctx); ctx.Err() == nil {
				s.fail(fmt.Errorf("the shard of %s is not known: %w", gvk.Kind, err))
			}
		}()
		go s.enqueue(ctx, share)
	}
	return nil
}

// WaitForSync implements source.SyncingSource: it waits for the informers of the manager's cache.
func (s *ShardedReconciler) WaitForSync(ctx context.Context) error {
	_, err := s.cache.GetInformer(ctx, s.object)
	return err
}

// identityOf returns the fields of an object that a share keeps.
func identityOf(obj *unstructured.Object) *unstructured.Object {
	kept := &unstructured.Object{Object: map[string]any{}}
	kept.SetNamespace(obj.GetNamespace())
	kept.SetName(obj.GetName())
	kept.SetUID(obj.GetUID())
	kept.SetResourceVersion(obj.GetResourceVersion())
	return kept
}

// enqueue adds the keys of created, gained and deleted objects to the queue. The controller's watches add the keys of updated objects.
func (s *ShardedReconciler) enqueue(ctx context.Context, of *share) {
	for change := range of.metadata.Changes(ctx) {
		if change.Type != watch.Added && change.Type != watch.Deleted {
			continue
		}
		request := reconcile.Request{NamespacedName: anykindcache.KeyOf(change.Object)}
		if change.Type == watch.Deleted {
			s.deleted.Store(request.NamespacedName, change.Object.GetUID())
		}
		s.queue.Add(request)
	}
}

// Reconcile implements reconcile.Reconciler.
func (s *ShardedReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if s.fence == nil {
		return reconcile.Result{}, fmt.Errorf("reconcile %s: the sharded reconciler has no source (pass it to WatchesRawSource, too)", request)
	}
	if err := s.failure(); err != nil {
		return reconcile.Result{}, fmt.Errorf("reconcile %s: %w", request, err)
	}
	deleted, isDeleted := s.deleted.Load(request.NamespacedName)
	hash, isKnown := s.hashOf(request.NamespacedName)
	if !isKnown || !s.fence.Owns(hash) {
		s.deleted.Delete(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	ctx, end, ok := s.fence.Begin(ctx, hash)
	if !ok {
		s.park(request, hash)
		return reconcile.Result{}, nil
	}
	defer end()
	if err := s.waitForCache(ctx, request.NamespacedName); err != nil {
		return reconcile.Result{}, fmt.Errorf("reconcile %s: %w", request, err)
	}
	result, err := s.next.Reconcile(ctx, request)
	if err == nil && isDeleted {
		s.deleted.CompareAndDelete(request.NamespacedName, deleted)
	}
	return result, err
}

// hashOf returns the hash of a key. isKnown is false for an object of a different member, and for a missing object.
func (s *ShardedReconciler) hashOf(key types.NamespacedName) (hash uint64, isKnown bool) {
	if s.group.Field() == shard.Namespace {
		return shard.Hash(key.Namespace), true
	}
	for _, share := range s.shares {
		if obj, found := share.metadata.Get(key.Namespace, key.Name); found {
			return shard.Hash(string(obj.GetUID())), true
		}
	}
	uid, isKnown := s.deleted.Load(key)
	if !isKnown {
		return 0, false
	}
	return shard.Hash(string(uid.(types.UID))), true
}

// waitForCache waits until the manager's cache is as new as the metadata of an object, or has its deletion.
func (s *ShardedReconciler) waitForCache(ctx context.Context, key types.NamespacedName) error {
	for _, share := range s.shares {
		known := dynamic.Write{Namespace: key.Namespace, Name: key.Name}
		if obj, found := share.metadata.Get(key.Namespace, key.Name); found {
			known.UID = obj.GetUID()
			known.ResourceVersion = obj.GetResourceVersion()
		} else if uid, isDeleted := s.deleted.Load(key); isDeleted {
			known.UID, _ = uid.(types.UID)
		}
		share.informer.recordWrite(known)
		if err := share.informer.waitForWrites(ctx, key); err != nil {
			return fmt.Errorf("wait until the cache has the object: %w", err)
		}
	}
	return nil
}

// park keeps a key until the fence admits it.
func (s *ShardedReconciler) park(request reconcile.Request, hash uint64) {
	s.mu.Lock()
	s.parked[request] = struct{}{}
	s.mu.Unlock()
	if s.fence.Admits(hash) { // meanwhile
		s.unpark()
	}
}

// unpark adds the parked keys to the queue again.
func (s *ShardedReconciler) unpark() {
	s.mu.Lock()
	parked := s.parked
	s.parked = map[reconcile.Request]struct{}{}
	s.mu.Unlock()
	for request := range parked {
		s.queue.Add(request)
	}
}

func (s *ShardedReconciler) fail(err error) {
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	s.unpark()
}

func (s *ShardedReconciler) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
