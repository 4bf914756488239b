package controller

import (
	"context"
	"log/slog"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/unstructured"
)

// ChangeTracker is the changeTracker of an Operator's watch.
type ChangeTracker struct{ changeTracker }

func NewChangeTracker(objects *cache.Cache[unstructured.Object], handler Handler, predicates ...Predicate) *ChangeTracker {
	return &ChangeTracker{changeTracker{
		handler: handler, predicates: predicates, objects: objects,
		handled: handledObjects{}, deleted: map[types.NamespacedName]cache.Change[unstructured.Object]{},
	}}
}

func (t *ChangeTracker) Enqueue(ctx context.Context, queue *workqueue.Queue[types.NamespacedName], log *slog.Logger) error {
	return t.enqueue(ctx, queue, log)
}

func (t *ChangeTracker) Reconcile(ctx context.Context, key types.NamespacedName) error {
	return t.reconcile(ctx, key)
}

// SetDeleted records a deletion before the cache has received it.
func (t *ChangeTracker) SetDeleted(key types.NamespacedName, change cache.Change[unstructured.Object]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deleted[key] = change
}

// Deletions returns the number of deletions that are kept.
func (t *ChangeTracker) Deletions() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.deleted)
}
