package cache

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
)

// An object is compared when it is replaced or deleted, all are when Run ends, and in between after pauses: with many objects
// a comparison takes seconds, in which no event is applied.
const (
	// minCheckPause is the minimum time between two comparisons of all objects.
	minCheckPause = time.Second
	// checkPauseFactor is how many times longer than the last comparison the pause is at least.
	checkPauseFactor = 20
)

// MutationError reports that a reader has changed an object of a cache, which all readers share.
type MutationError struct {
	// Cache is the path of the cache's resource.
	Cache string
	Key   Key
	// Field is the path of a field that was changed. Its value, which may be secret, is not included.
	Field string
}

func (e *MutationError) Error() string {
	return fmt.Sprintf("cache %s: object %s was changed by a reader at %s (change a copy)", e.Cache, e.Key, e.Field)
}

// mutationDetector keeps the JSON of every object as it was stored. A nil one does nothing. It is used by Run's goroutine
// alone.
type mutationDetector[T any] struct {
	objects   map[Key]snapshot[T]
	found     *MutationError
	nextCheck time.Time // when all objects are compared again
}

type snapshot[T any] struct {
	object *T
	json   []byte
}

// put records an object, and compares the one that it replaces.
func (d *mutationDetector[T]) put(key Key, obj *T) {
	if d == nil {
		return
	}
	data, err := json.Marshal(obj)
	d.remove(key)
	if err == nil { // types without JSON cannot be compared
		d.objects[key] = snapshot[T]{obj, data}
	}
}

// remove compares an object that leaves the cache.
func (d *mutationDetector[T]) remove(key Key) {
	if d != nil {
		d.compare(key)
		delete(d.objects, key)
	}
}

// compare compares one object, unless a mutation was found before.
func (d *mutationDetector[T]) compare(key Key) {
	s, found := d.objects[key]
	if !found || d.found != nil {
		return
	}
	current, err := json.Marshal(s.object)
	if err != nil {
		d.found = &MutationError{Key: key, Field: fmt.Sprintf("a field that has no JSON now (%v)", err)}
	} else if !bytes.Equal(s.json, current) {
		d.found = &MutationError{Key: key, Field: changedField(s.json, current)}
	}
}

func (d *mutationDetector[T]) compareAll() {
	for key := range d.objects {
		d.compare(key)
	}
}

// check compares all objects unless it is too early for that, and reports whether a mutation was found.
func (d *mutationDetector[T]) check() bool {
	if d == nil {
		return false
	}
	if start := time.Now(); !start.Before(d.nextCheck) {
		d.compareAll()
		end := time.Now()
		d.nextCheck = end.Add(max(minCheckPause, checkPauseFactor*end.Sub(start)))
	}
	return d.found != nil
}

// result compares all objects and returns the mutation that was found, or err.
func (d *mutationDetector[T]) result(cache string, err error) error {
	if d == nil {
		return err
	}
	if d.compareAll(); d.found == nil {
		return err
	}
	d.found.Cache = cache
	return d.found
}

func changedField(before, after []byte) string {
	var a, b any
	if json.Unmarshal(before, &a) != nil || json.Unmarshal(after, &b) != nil {
		return "a field"
	}
	return difference("", a, b)
}

func difference(path string, a, b any) string {
	switch a := a.(type) {
	case map[string]any:
		b, isMap := b.(map[string]any)
		if !isMap {
			break
		}
		all := maps.Clone(a)
		maps.Copy(all, b)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			old, inA := a[name]
			current, inB := b[name]
			if inA != inB || !reflect.DeepEqual(old, current) {
				return difference(path+"."+name, old, current)
			}
		}
	case []any:
		b, isSlice := b.([]any)
		if !isSlice || len(a) != len(b) {
			break
		}
		for i := range a {
			if !reflect.DeepEqual(a[i], b[i]) {
				return difference(fmt.Sprintf("%s[%d]", path, i), a[i], b[i])
			}
		}
	}
	return path
}
