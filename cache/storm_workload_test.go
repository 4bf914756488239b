package cache_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
)

// permanentPart is in the names of objects that exist during the whole storm.
const permanentPart = "stays-"

// workload is the number and pace of writes in a storm.
type workload struct {
	prefix   string        // of every name
	stay     int           // objects that are there all the time
	come     int           // others, which come and go
	writers  int           // at the same time
	writes   int           // of each
	maxDelay time.Duration // at most, between two of them
	reach    int           // within how many bytes answers are cut
}

// name returns the name of the n-th object.
func (s *workload) name(n int) string {
	if n < s.stay {
		return fmt.Sprintf("%s%s%04d", s.prefix, permanentPart, n)
	}
	return fmt.Sprintf("%scomes-%04d", s.prefix, n-s.stay)
}

// missing returns the names of permanent objects that were not seen.
func (s *workload) missing(seen map[string]bool) (names []string) {
	for n := range s.stay {
		if !seen[s.name(n)] {
			names = append(names, s.name(n))
		}
	}
	return names
}

// populate creates the permanent objects and every second one of the others.
func (s *workload) populate(t *testing.T, to *dynamic.Resource) {
	t.Helper()
	s.forEachWriter(func(writer int) {
		for n := writer; n < s.stay+s.come; n += s.writers {
			if n < s.stay || n%2 == 0 {
				_, err := to.Create(t.Context(), newObject(to, s.name(n)), nil)
				assert.NoError(t, err)
			}
		}
	})
}

// write has all writers do one half of their writes.
func (s *workload) write(t *testing.T, to *dynamic.Resource, seed uint64, half uint64) {
	t.Helper()
	s.forEachWriter(func(writer int) {
		rng := rand.New(rand.NewPCG(seed, 2*uint64(writer)+half)) //nolint:gosec // a script that can be repeated
		for range s.writes / 2 {
			s.writeOne(t, to, rng)
			time.Sleep(time.Duration(rng.Int64N(int64(s.maxDelay))))
		}
	})
}

// writeOne creates, applies or deletes one object.
func (s *workload) writeOne(t *testing.T, to *dynamic.Resource, rng *rand.Rand) {
	t.Helper()
	// Few values, so that objects have equal maps, which caches share.
	n := rng.IntN(s.stay + s.come)
	what := rng.IntN(4)
	value := strconv.Itoa(rng.IntN(50))
	name := s.name(n)
	var err error
	switch {
	case what == 0 && n >= s.stay:
		_, err = to.Delete(t.Context(), name, nil)
	case what == 1 && n >= s.stay:
		_, err = to.Create(t.Context(), newObject(to, name), nil)
	default:
		_, err = to.Apply(t.Context(), newObject(to, name, value), &metav1.ApplyOptions{FieldManager: "storm", Force: true})
	}
	if !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
		assert.NoError(t, err)
	}
}

// remove deletes all objects.
func (s *workload) remove(t *testing.T, from *dynamic.Resource) {
	t.Helper()
	s.forEachWriter(func(writer int) {
		for n := writer; n < s.stay+s.come; n += s.writers {
			if _, err := from.Delete(t.Context(), s.name(n), nil); !apierrors.IsNotFound(err) {
				assert.NoError(t, err)
			}
		}
	})
}

// forEachWriter calls do for all writers at the same time.
func (s *workload) forEachWriter(do func(writer int)) {
	var writing sync.WaitGroup
	for writer := range s.writers {
		writing.Go(func() { do(writer) })
	}
	writing.Wait()
}

// newObject returns an object of the resource.
func newObject(to *dynamic.Resource, name string, values ...string) *object {
	annotations := map[string]any{}
	for i, value := range values {
		annotations[fmt.Sprint("v", i)] = value
	}
	obj := &object{Object: map[string]any{"metadata": map[string]any{"name": name, "annotations": annotations}}}
	obj.SetGroupVersionKind(to.APIResource().GVK)
	return obj
}
