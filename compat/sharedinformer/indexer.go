package sharedinformer

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind/cache"
)

// errReadOnly is the error of writes to the store of an informer.
var errReadOnly = errors.New("write to the store of an informer: only changes of the server are stored (create the object in the server)")

// indexer is the toolscache.Indexer of an informer. It is empty until the informer runs.
type indexer[T any, P cache.Object[T]] struct{ *Informer[T, P] }

// Add implements toolscache.Store and returns an error.
func (indexer[T, P]) Add(any) error { return errReadOnly }

// Update implements toolscache.Store and returns an error.
func (indexer[T, P]) Update(any) error { return errReadOnly }

// Delete implements toolscache.Store and returns an error.
func (indexer[T, P]) Delete(any) error { return errReadOnly }

// Replace implements toolscache.Store and returns an error.
func (indexer[T, P]) Replace([]any, string) error { return errReadOnly }

// Bookmark implements toolscache.Store and does nothing.
func (indexer[T, P]) Bookmark(string) {}

// Resync implements toolscache.Store and does nothing.
func (indexer[T, P]) Resync() error { return nil }

// LastStoreSyncResourceVersion implements toolscache.Store.
func (x indexer[T, P]) LastStoreSyncResourceVersion() string { return x.LastSyncResourceVersion() }

func (x indexer[T, P]) objects() []*T {
	if c := x.Cache(); c != nil {
		return c.List("", nil)
	}
	return nil
}

func (x indexer[T, P]) export(objects []*T) []any {
	result := make([]any, len(objects))
	for i, obj := range objects {
		result[i] = x.config.Export(obj)
	}
	return result
}

func (x indexer[T, P]) keys(objects []*T) []string {
	result := make([]string, len(objects))
	for i, obj := range objects {
		result[i] = toolscache.ObjectName(cache.KeyOf(P(obj))).String()
	}
	return result
}

// List implements toolscache.Store.
func (x indexer[T, P]) List() []any { return x.export(x.objects()) }

// ListKeys implements toolscache.Store.
func (x indexer[T, P]) ListKeys() []string { return x.keys(x.objects()) }

// Get implements toolscache.Store.
func (x indexer[T, P]) Get(obj any) (item any, exists bool, err error) {
	key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return nil, false, toolscache.KeyError{Obj: obj, Err: err}
	}
	return x.GetByKey(key)
}

// GetByKey implements toolscache.Store.
func (x indexer[T, P]) GetByKey(key string) (item any, exists bool, err error) {
	namespace, name, err := toolscache.SplitMetaNamespaceKey(key)
	c := x.Cache()
	if err != nil || c == nil {
		return nil, false, nil //nolint:nilerr // As in client-go, an invalid key finds no object.
	}
	obj, found := c.Get(namespace, name)
	if !found {
		return nil, false, nil
	}
	return x.config.Export(obj), true, nil
}

// GetIndexers implements toolscache.Indexer.
func (x indexer[T, P]) GetIndexers() toolscache.Indexers {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.indexers
}

// lookUp returns an index function. computed: the cache lacks the index, so each read computes it.
func (x indexer[T, P]) lookUp(name string) (valuesOf toolscache.IndexFunc, computed bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	valuesOf, found := x.indexers[name]
	if !found {
		return nil, false, fmt.Errorf("Index with name %s does not exist", name)
	}
	return valuesOf, x.computed.Has(name), nil
}

// byIndex returns the objects of an index with a value.
func (x indexer[T, P]) byIndex(name, value string) ([]*T, error) {
	valuesOf, computed, err := x.lookUp(name)
	c := x.Cache()
	switch {
	case err != nil || c == nil:
		return nil, err
	case name == toolscache.NamespaceIndex && value != "":
		return c.List(value, nil), nil
	case !computed:
		return c.ByIndex(name, value)
	}
	var found []*T
	for _, obj := range c.List("", nil) {
		values, err := valuesOf(x.config.Export(obj))
		if err != nil {
			return nil, err
		}
		if slices.Contains(values, value) {
			found = append(found, obj)
		}
	}
	return found, nil
}

// ByIndex implements toolscache.Indexer.
func (x indexer[T, P]) ByIndex(name, value string) ([]any, error) {
	found, err := x.byIndex(name, value)
	if err != nil {
		return nil, err
	}
	return x.export(found), nil
}

// IndexKeys implements toolscache.Indexer.
func (x indexer[T, P]) IndexKeys(name, value string) ([]string, error) {
	found, err := x.byIndex(name, value)
	if err != nil {
		return nil, err
	}
	return x.keys(found), nil
}

// Index implements toolscache.Indexer.
func (x indexer[T, P]) Index(name string, obj any) ([]any, error) {
	valuesOf, _, err := x.lookUp(name)
	if err != nil {
		return nil, err
	}
	values, err := valuesOf(obj)
	if err != nil {
		return nil, err
	}
	seen := sets.New[types.NamespacedName]()
	var all []*T
	for _, value := range values {
		found, err := x.byIndex(name, value)
		if err != nil {
			return nil, err
		}
		for _, obj := range found {
			if key := cache.KeyOf(P(obj)); !seen.Has(key) {
				seen.Insert(key)
				all = append(all, obj)
			}
		}
	}
	return x.export(all), nil
}

// ListIndexFuncValues implements toolscache.Indexer.
func (x indexer[T, P]) ListIndexFuncValues(name string) []string {
	valuesOf, _, err := x.lookUp(name)
	if err != nil {
		return []string{}
	}
	values := sets.New[string]()
	for _, obj := range x.objects() {
		if of, err := valuesOf(x.config.Export(obj)); err == nil {
			values.Insert(of...)
		}
	}
	return sets.List(values)
}
