package clientgo

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	anykind "github.com/anykind/anykind/cache"
	"k8s.io/client-go/tools/cache"
)

// errReadOnly reports a write to the store of an informer.
var errReadOnly = errors.New("the store of an informer is read-only: only the server's changes are stored")

// indexer implements cache.Indexer over the cache of an informer.
type indexer struct {
	informer *informer

	mu       sync.Mutex
	indexers cache.Indexers
	// indexed are the names of the indexes that the cache has; those that were added later are computed at each read.
	indexed map[string]bool
}

func newIndexer(i *informer) *indexer {
	return &indexer{informer: i, indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}}
}

// begin returns the index functions of a new cache.
func (x *indexer) begin() map[string]func(*object) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.indexed = map[string]bool{}
	functions := map[string]func(*object) []string{}
	for name, function := range x.indexers {
		if name == cache.NamespaceIndex {
			continue // the cache has it
		}
		x.indexed[name] = true
		functions[name] = func(obj *object) []string {
			values, err := function(obj)
			if err != nil {
				//nolint:forbidigo // client-go's indexer does.
				panic(fmt.Errorf("unable to calculate an index entry for key %q on index %q: %w", anykind.KeyOf(obj), name, err))
			}
			return values
		}
	}
	return functions
}

func (x *indexer) cache() *objectCache {
	current, _ := x.informer.cache()
	return current
}

func (x *indexer) objects(namespace string) []*object {
	if current := x.cache(); current != nil {
		return current.List(namespace, nil)
	}
	return nil
}

func asAny(objects []*object) []any {
	result := make([]any, len(objects))
	for i, obj := range objects {
		result[i] = obj
	}
	return result
}

func keys(objects []*object) []string {
	result := make([]string, len(objects))
	for i, obj := range objects {
		result[i] = anykind.KeyOf(obj).String()
	}
	return result
}

// List implements cache.Store.
func (x *indexer) List() []any { return asAny(x.objects("")) }

// ListKeys implements cache.Store.
func (x *indexer) ListKeys() []string { return keys(x.objects("")) }

// Get implements cache.Store.
func (x *indexer) Get(obj any) (item any, exists bool, err error) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return nil, false, cache.KeyError{Obj: obj, Err: err}
	}
	return x.GetByKey(key)
}

// GetByKey implements cache.Store.
func (x *indexer) GetByKey(key string) (item any, exists bool, err error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, false, err
	}
	current := x.cache()
	if current == nil {
		return nil, false, nil
	}
	if obj, found := current.Get(namespace, name); found {
		return obj, true, nil
	}
	return nil, false, nil
}

// Index implements cache.Indexer.
func (x *indexer) Index(name string, obj any) ([]any, error) {
	function, _, err := x.lookUp(name)
	if err != nil {
		return nil, err
	}
	values, err := function(obj)
	if err != nil {
		return nil, err
	}
	found := map[*object]struct{}{}
	for _, value := range values {
		objects, err := x.byIndex(name, value)
		if err != nil {
			return nil, err
		}
		for _, obj := range objects {
			found[obj] = struct{}{}
		}
	}
	return asAny(slices.Collect(maps.Keys(found))), nil
}

// ByIndex implements cache.Indexer.
func (x *indexer) ByIndex(name, value string) ([]any, error) {
	objects, err := x.byIndex(name, value)
	return asAny(objects), err
}

// IndexKeys implements cache.Indexer.
func (x *indexer) IndexKeys(name, value string) ([]string, error) {
	objects, err := x.byIndex(name, value)
	return keys(objects), err
}

func (x *indexer) byIndex(name, value string) ([]*object, error) {
	function, isIndexed, err := x.lookUp(name)
	current := x.cache()
	switch {
	case err != nil || current == nil:
		return nil, err
	case isIndexed:
		return current.ByIndex(name, value)
	case name == cache.NamespaceIndex && value != "":
		return current.List(value, nil), nil
	}
	var found []*object
	for _, obj := range current.List("", nil) {
		values, err := function(obj)
		if err != nil {
			return nil, err
		}
		if slices.Contains(values, value) {
			found = append(found, obj)
		}
	}
	return found, nil
}

func (x *indexer) lookUp(name string) (function cache.IndexFunc, isIndexed bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	function, known := x.indexers[name]
	if !known {
		return nil, false, fmt.Errorf("Index with name %s does not exist", name)
	}
	return function, x.indexed[name], nil
}

// ListIndexFuncValues implements cache.Indexer.
func (x *indexer) ListIndexFuncValues(name string) []string {
	function, _, err := x.lookUp(name)
	if err != nil {
		return []string{}
	}
	found := map[string]struct{}{}
	for _, obj := range x.objects("") {
		values, err := function(obj)
		if err != nil {
			continue
		}
		for _, value := range values {
			found[value] = struct{}{}
		}
	}
	return slices.Collect(maps.Keys(found))
}

// GetIndexers implements cache.Indexer.
func (x *indexer) GetIndexers() cache.Indexers {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.indexers)
}

// AddIndexers implements cache.Indexer.
func (x *indexer) AddIndexers(added cache.Indexers) error {
	if x.informer.IsStopped() {
		return errors.New("indexer was not added because it has stopped already")
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for name := range added {
		if _, known := x.indexers[name]; known {
			return fmt.Errorf("indexer conflict: %v", []string{name})
		}
	}
	maps.Copy(x.indexers, added)
	return nil
}

// LastStoreSyncResourceVersion implements cache.Store.
func (x *indexer) LastStoreSyncResourceVersion() string { return x.informer.LastSyncResourceVersion() }

// Bookmark implements cache.Store and does nothing.
func (x *indexer) Bookmark(string) {}

// Resync implements cache.Store and does nothing.
func (x *indexer) Resync() error { return nil }

// Add implements cache.Store and returns an error.
func (x *indexer) Add(any) error { return errReadOnly }

// Update implements cache.Store and returns an error.
func (x *indexer) Update(any) error { return errReadOnly }

// Delete implements cache.Store and returns an error.
func (x *indexer) Delete(any) error { return errReadOnly }

// Replace implements cache.Store and returns an error.
func (x *indexer) Replace([]any, string) error { return errReadOnly }
