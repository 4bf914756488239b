package controllerruntime

import (
	"errors"
	"fmt"
	"slices"

	"github.com/anykind/anykind/cache"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
)

// indexer is the read-only toolscache.Indexer of an informer; it is empty until the informer is run.
type indexer struct{ *informer }

var errReadOnly = errors.New("the store of an informer is read-only")

func (x *indexer) Add(any) error               { return errReadOnly }
func (x *indexer) Update(any) error            { return errReadOnly }
func (x *indexer) Delete(any) error            { return errReadOnly }
func (x *indexer) Replace([]any, string) error { return errReadOnly }
func (x *indexer) Bookmark(string)             {}
func (x *indexer) Resync() error               { return nil }

func (x *indexer) LastStoreSyncResourceVersion() string { return x.LastSyncResourceVersion() }

// List returns all objects.
func (x *indexer) List() []any {
	c := x.cache.Load()
	if c == nil {
		return nil
	}
	return objects(c.List("", nil))
}

func objects(all []*cached) []any {
	objs := make([]any, len(all))
	for i, obj := range all {
		objs[i] = obj.Object
	}
	return objs
}

func keys(objs []any) []string {
	all := make([]string, 0, len(objs))
	for _, obj := range objs {
		if key, err := toolscache.MetaNamespaceKeyFunc(obj); err == nil {
			all = append(all, key)
		}
	}
	return all
}

// ListKeys returns the keys of all objects.
func (x *indexer) ListKeys() []string { return keys(x.List()) }

// Get returns the object with the key of another.
func (x *indexer) Get(obj any) (any, bool, error) {
	key, err := toolscache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		return nil, false, toolscache.KeyError{Obj: obj, Err: err}
	}
	return x.GetByKey(key)
}

// GetByKey returns the object of a key.
func (x *indexer) GetByKey(key string) (any, bool, error) {
	namespace, name, err := toolscache.SplitMetaNamespaceKey(key)
	c := x.cache.Load()
	if err != nil || c == nil {
		return nil, false, err
	}
	obj, found := c.Get(namespace, name)
	if !found {
		return nil, false, nil
	}
	return obj.Object, true, nil
}

// GetIndexers returns the index functions.
func (x *indexer) GetIndexers() toolscache.Indexers {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.indexers
}

// lookup returns an index function, and whether it was added after the start.
func (x *indexer) lookup(name string) (valuesOf toolscache.IndexFunc, scanned bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	valuesOf, found := x.indexers[name]
	if !found {
		return nil, false, fmt.Errorf("Index with name %s does not exist", name)
	}
	return valuesOf, x.scanned[name], nil
}

// ByIndex returns the objects that an index has under a value.
func (x *indexer) ByIndex(name, value string) ([]any, error) {
	valuesOf, scanned, err := x.lookup(name)
	c := x.cache.Load()
	switch {
	case err != nil || c == nil:
		return nil, err
	case name == toolscache.NamespaceIndex && value != "":
		return objects(c.List(value, nil)), nil
	case scanned:
		return x.scan(valuesOf, value)
	}
	found, err := c.ByIndex(name, value)
	return objects(found), err
}

// scan computes an index.
func (x *indexer) scan(valuesOf toolscache.IndexFunc, value string) (found []any, err error) {
	for _, obj := range x.List() {
		values, err := valuesOf(obj)
		if err != nil {
			return nil, err
		}
		if slices.Contains(values, value) {
			found = append(found, obj)
		}
	}
	return found, nil
}

// IndexKeys returns the keys of the objects that an index has under a value.
func (x *indexer) IndexKeys(name, value string) ([]string, error) {
	found, err := x.ByIndex(name, value)
	return keys(found), err
}

// Index returns the objects that share a value of an index with obj.
func (x *indexer) Index(name string, obj any) ([]any, error) {
	valuesOf, _, err := x.lookup(name)
	if err != nil {
		return nil, err
	}
	values, err := valuesOf(obj)
	if err != nil {
		return nil, err
	}
	seen := sets.New[cache.Key]()
	var all []any
	for _, value := range values {
		found, err := x.ByIndex(name, value)
		if err != nil {
			return nil, err
		}
		for _, obj := range found {
			if key := cache.KeyOf(obj.(interface {
				GetNamespace() string
				GetName() string
			})); !seen.Has(key) {
				seen.Insert(key)
				all = append(all, obj)
			}
		}
	}
	return all, nil
}

// ListIndexFuncValues returns the values that an index has.
func (x *indexer) ListIndexFuncValues(name string) []string {
	valuesOf, _, err := x.lookup(name)
	if err != nil {
		return nil
	}
	values := sets.New[string]()
	for _, obj := range x.List() {
		if of, err := valuesOf(obj); err == nil {
			values.Insert(of...)
		}
	}
	return sets.List(values)
}
