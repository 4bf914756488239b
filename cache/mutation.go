package cache

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// mutationVariable turns the detector on in every cache of a process.
const mutationVariable = "ANYKIND_CACHE_MUTATION_DETECTOR"

func detectsMutations() bool {
	on, err := strconv.ParseBool(os.Getenv(mutationVariable))
	return err == nil && on
}

// mutationInterval is the minimum time between two comparisons of all objects. One object is compared when it is replaced
// or deleted, and all are when Run ends.
const mutationInterval = time.Second

// MutationError reports that a reader has changed an object of a cache, which all readers share.
type MutationError struct {
	// Cache is the path of the cache's resource.
	Cache string
	Key   Key
	// Field is the path of a field that was changed. Its value, which may be secret, is not given.
	Field string
}

func (e *MutationError) Error() string {
	return fmt.Sprintf("cache %s: object %s was changed by a reader at %s (change a copy)", e.Cache, e.Key, e.Field)
}

// mutationDetector keeps the JSON of every object as it was when it was stored. A nil one detects nothing. It is used by
// Run's goroutine alone.
type mutationDetector[T any] struct {
	objects  map[Key]recorded[T]
	found    *MutationError
	compared time.Time // when all of them were
}

type recorded[T any] struct {
	object *T
	json   []byte
}

func newMutationDetector[T any]() *mutationDetector[T] {
	return &mutationDetector[T]{objects: map[Key]recorded[T]{}}
}

// record stores how an object is, and compares the one that it replaces.
func (d *mutationDetector[T]) record(key Key, obj *T) {
	if d == nil {
		return
	}
	data, err := json.Marshal(obj)
	d.compare(key)
	delete(d.objects, key)
	if err == nil { // types that have no JSON cannot be compared
		d.objects[key] = recorded[T]{obj, data}
	}
}

// forget compares an object that leaves the cache.
func (d *mutationDetector[T]) forget(key Key) {
	if d != nil {
		d.compare(key)
		delete(d.objects, key)
	}
}

// compare looks for a mutation of one object.
func (d *mutationDetector[T]) compare(key Key) {
	was, known := d.objects[key]
	if !known || d.found != nil {
		return
	}
	now, err := json.Marshal(was.object)
	if err != nil {
		d.found = &MutationError{Key: key, Field: fmt.Sprintf("a field that is no JSON now (%v)", err)}
	} else if !bytes.Equal(was.json, now) {
		d.found = &MutationError{Key: key, Field: changedField(was.json, now)}
	}
}

// compareAll looks for a mutation of any object.
func (d *mutationDetector[T]) compareAll() *MutationError {
	for key := range d.objects {
		d.compare(key)
	}
	return d.found
}

// hasFound compares all objects if it is time, and reports whether one was changed.
func (d *mutationDetector[T]) hasFound() bool {
	if d == nil {
		return false
	}
	if time.Since(d.compared) >= mutationInterval {
		d.compared = time.Now()
		return d.compareAll() != nil
	}
	return d.found != nil
}

// explain returns the mutation that was found, and err if there is none.
func (d *mutationDetector[T]) explain(cache string, err error) error {
	if d == nil {
		return err
	}
	found := d.compareAll()
	if found == nil {
		return err
	}
	found.Cache = cache
	return found
}

// changedField returns the path of a field that differs.
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
		b, same := b.(map[string]any)
		if !same {
			break
		}
		for _, name := range fieldNames(a, b) {
			was, had := a[name]
			is, has := b[name]
			if had != has || !reflect.DeepEqual(was, is) {
				return difference(path+"."+name, was, is)
			}
		}
	case []any:
		b, same := b.([]any)
		if !same || len(a) != len(b) {
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

func fieldNames(objects ...map[string]any) (names []string) {
	for _, each := range objects {
		for name := range each {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
