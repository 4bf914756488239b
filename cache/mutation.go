package cache

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"hash/maphash"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/objectkey"
)

// A full detector keeps the JSON of every object. A sampling detector keeps hashes of the JSON of a sample. An object is compared
// when it is replaced or deleted, and when Run ends. A full detector also compares all objects from time to time: with many
// objects this takes seconds, and delays events.
const (
	// sampleInterval: a sampling detector takes the first sampleInterval stored objects and then every sampleInterval-th object.
	sampleInterval = 64
	// minCheckPause is the minimum time between two comparisons of all objects.
	minCheckPause = time.Second
	// checkPauseFactor: pause between comparisons >= checkPauseFactor * duration of the last comparison.
	checkPauseFactor = 20
)

// MutationError reports that a reader has modified an object of a cache. The objects are shared by all readers.
type MutationError struct {
	// Cache is the path of the cache's resource.
	Cache string
	Key   types.NamespacedName
	// Field is the path of a modified field, without its value, since the value may be secret. Without Options.DetectMutations
	// Field is unknown and "".
	Field string
}

func (e *MutationError) Error() string {
	if e.Field == "" {
		const format = "cache %s: object %s was changed by a reader (change a copy; %s=true finds the field)"
		return fmt.Sprintf(format, e.Cache, objectkey.Text(e.Key), detectorVariable)
	}
	return fmt.Sprintf("cache %s: object %s was changed by a reader at %s (change a copy)", e.Cache, objectkey.Text(e.Key), e.Field)
}

const detectorVariable = "ANYKIND_CACHE_MUTATION_DETECTOR"

// isTest reports whether this process is a test binary: only test binaries have the flag test.v. testing.Testing would link
// package testing into every program.
var isTest = sync.OnceValue(func() bool { return flag.Lookup("test.v") != nil })

// mutationDetector compares stored objects with their state at the time of storing. A nil detector does nothing. Only Run's
// goroutine uses it.
type mutationDetector[T any] struct {
	isSampling bool
	seed       maphash.Seed
	stored     int // objects, while sampling
	objects    map[types.NamespacedName]snapshot[T]
	found      *MutationError
	nextCheck  time.Time // when a full detector compares all objects again
}

// snapshot is the stored state of an object: its JSON or, while sampling, the hash of its JSON.
type snapshot[T any] struct {
	object *T
	json   []byte
	hash   uint64
}

// newMutationDetector returns the detector required by the options and the environment, or nil. A sample of packed objects is
// useless, since readers get copies. As in client-go, objects are not sampled with DisableInterning.
func newMutationDetector[T any](opts *Options[T]) *mutationDetector[T] {
	isEnabled, err := strconv.ParseBool(os.Getenv(detectorVariable))
	isDisabled := err == nil && !isEnabled
	d := &mutationDetector[T]{objects: map[types.NamespacedName]snapshot[T]{}}
	switch {
	case isEnabled || opts.DetectMutations:
		return d
	case isDisabled || opts.DisableInterning || opts.Pack != nil || !isTest():
		return nil
	default:
		d.isSampling = true
		d.seed = maphash.MakeSeed()
		return d
	}
}

// put records an object, and compares the replaced object.
func (d *mutationDetector[T]) put(key types.NamespacedName, obj *T) {
	if d == nil {
		return
	}
	d.remove(key)
	if d.isSampling {
		if d.stored++; d.stored > sampleInterval && d.stored%sampleInterval != 0 {
			return
		}
	}
	data, err := json.Marshal(obj)
	switch {
	case err != nil: // objects without JSON cannot be compared
	case d.isSampling:
		d.objects[key] = snapshot[T]{object: obj, hash: maphash.Bytes(d.seed, data)}
	default:
		d.objects[key] = snapshot[T]{object: obj, json: data}
	}
}

// remove compares an object before it leaves the cache.
func (d *mutationDetector[T]) remove(key types.NamespacedName) {
	if d != nil {
		d.compare(key)
		delete(d.objects, key)
	}
}

// compare compares an object, unless a mutation has been found.
func (d *mutationDetector[T]) compare(key types.NamespacedName) {
	s, found := d.objects[key]
	if !found || d.found != nil {
		return
	}
	current, err := json.Marshal(s.object)
	switch {
	case err != nil:
		d.found = &MutationError{Key: key, Field: fmt.Sprintf("a field that has no JSON now (%v)", err)}
	case d.isSampling:
		if s.hash != maphash.Bytes(d.seed, current) {
			d.found = &MutationError{Key: key}
		}
	case !bytes.Equal(s.json, current):
		d.found = &MutationError{Key: key, Field: changedField(s.json, current)}
	}
}

func (d *mutationDetector[T]) compareAll() {
	for key := range d.objects {
		d.compare(key)
	}
}

// check reports whether a mutation has been found. A full detector first compares all objects if nextCheck has passed.
func (d *mutationDetector[T]) check() bool {
	if d == nil {
		return false
	}
	if start := time.Now(); !d.isSampling && !start.Before(d.nextCheck) {
		d.compareAll()
		end := time.Now()
		d.nextCheck = end.Add(max(minCheckPause, checkPauseFactor*end.Sub(start)))
	}
	return d.found != nil
}

// result compares all objects. It returns a *MutationError if a mutation has been found, and otherwise err.
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
