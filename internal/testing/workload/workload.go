// Package workload writes objects of a resource while a test injects faults. Some of them exist all the time, some come and go.
package workload

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// PermanentPart is in the names of permanent objects.
const PermanentPart = "stays-"

// Workload is the number and pace of writes in a storm.
type Workload struct {
	Prefix   string        // of every name
	Stay     int           // permanent objects
	Come     int           // temporary objects
	Writers  int           // at the same time
	Writes   int           // of each
	MaxDelay time.Duration // at most, between two of them
	Reach    int           // within how many bytes responses are cut
}

// name returns the name of the n-th object.
func (s *Workload) name(n int) string {
	if n < s.Stay {
		return fmt.Sprintf("%s%s%04d", s.Prefix, PermanentPart, n)
	}
	return fmt.Sprintf("%scomes-%04d", s.Prefix, n-s.Stay)
}

// Names returns the names of all objects.
func (s *Workload) Names() (names []string) {
	for n := range s.Stay + s.Come {
		names = append(names, s.name(n))
	}
	return names
}

// Missing returns the names of unseen permanent objects.
func (s *Workload) Missing(seen map[string]bool) (names []string) {
	for n := range s.Stay {
		if !seen[s.name(n)] {
			names = append(names, s.name(n))
		}
	}
	return names
}

// Populate creates the permanent objects and half of the temporary objects.
func (s *Workload) Populate(t testing.TB, to *dynamic.Resource) {
	t.Helper()
	s.forEachWriter(func(writer int) {
		for n := writer; n < s.Stay+s.Come; n += s.Writers {
			if n < s.Stay || n%2 == 0 {
				_, err := to.Create(t.Context(), newObject(to, s.name(n)), nil)
				assert.NoError(t, err)
			}
		}
	})
}

// Write has all writers do half of their writes.
func (s *Workload) Write(t testing.TB, to *dynamic.Resource, seed uint64, half uint64) {
	t.Helper()
	s.forEachWriter(func(writer int) {
		rng := rand.New(rand.NewPCG(seed, 2*uint64(writer)+half)) //nolint:gosec // a repeatable script
		for range s.Writes / 2 {
			s.WriteOne(t, to, rng)
			time.Sleep(time.Duration(rng.Int64N(int64(s.MaxDelay))))
		}
	})
}

// WriteOne creates, applies or deletes an object.
func (s *Workload) WriteOne(t testing.TB, to *dynamic.Resource, rng *rand.Rand) {
	t.Helper()
	// Few values, so that objects have equal maps: caches share them.
	n := rng.IntN(s.Stay + s.Come)
	what := rng.IntN(4)
	value := strconv.Itoa(rng.IntN(50))
	name := s.name(n)
	var err error
	switch {
	case what == 0 && n >= s.Stay:
		_, err = to.Delete(t.Context(), name, nil)
	case what == 1 && n >= s.Stay:
		_, err = to.Create(t.Context(), newObject(to, name), nil)
	default:
		_, err = to.Apply(t.Context(), newObject(to, name, value), &metav1.ApplyOptions{FieldManager: "storm", Force: true})
	}
	if !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
		assert.NoError(t, err)
	}
}

// Remove deletes all objects.
func (s *Workload) Remove(t testing.TB, from *dynamic.Resource) {
	t.Helper()
	s.forEachWriter(func(writer int) {
		for n := writer; n < s.Stay+s.Come; n += s.Writers {
			if _, err := from.Delete(t.Context(), s.name(n), nil); !apierrors.IsNotFound(err) {
				assert.NoError(t, err)
			}
		}
	})
}

// forEachWriter calls do for all writers at the same time.
func (s *Workload) forEachWriter(do func(writer int)) {
	var writing sync.WaitGroup
	for writer := range s.Writers {
		writing.Go(func() { do(writer) })
	}
	writing.Wait()
}

// newObject returns an object of the resource.
func newObject(to *dynamic.Resource, name string, values ...string) *unstructured.Object {
	annotations := map[string]any{}
	for i, value := range values {
		annotations[fmt.Sprint("v", i)] = value
	}
	obj := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name, "annotations": annotations}}}
	obj.SetGroupVersionKind(to.APIResource().GVK)
	return obj
}

// EnvNumber returns a number from the environment.
func EnvNumber(t *testing.T, name string, defaultValue uint64) uint64 {
	t.Helper()
	text, isSet := os.LookupEnv(name)
	if !isSet {
		return defaultValue
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n
}
