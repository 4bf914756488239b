package cache_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// staying is in the names of objects that are there in all of a storm.
const staying = "stays-"

// strength is how much is written in a storm, and how.
type strength struct {
	prefix  string        // of every name
	stay    int           // objects that are there all the time
	come    int           // others, which come and go
	writers int           // at the same time
	writes  int           // of each
	pause   time.Duration // at most, between two of them
	reach   int           // within how many bytes answers are cut
}

// name is that of the n-th object.
func (s *strength) name(n int) string {
	if n < s.stay {
		return fmt.Sprintf("%s%s%04d", s.prefix, staying, n)
	}
	return fmt.Sprintf("%scomes-%04d", s.prefix, n-s.stay)
}

// missing are the names of what stays that are not among these.
func (s *strength) missing(seen map[string]bool) (names []string) {
	for n := range s.stay {
		if !seen[s.name(n)] {
			names = append(names, s.name(n))
		}
	}
	return names
}

// populate makes what stays and every other one of what comes.
func (s *strength) populate(t *testing.T, to *dynamic.Resource) {
	t.Helper()
	s.together(func(writer int) {
		for n := writer; n < s.stay+s.come; n += s.writers {
			if n < s.stay || n%2 == 0 {
				_, err := to.Create(t.Context(), stormy(to, s.name(n)), nil)
				assert.NoError(t, err)
			}
		}
	})
}

// write lets all writers write their half of what they write.
func (s *strength) write(t *testing.T, to *dynamic.Resource, seed uint64, half uint64) {
	t.Helper()
	s.together(func(writer int) {
		rng := rand.New(rand.NewPCG(seed, 2*uint64(writer)+half)) //nolint:gosec // a script that can be repeated
		for range s.writes / 2 {
			s.writeOne(t, to, rng)
			time.Sleep(time.Duration(rng.Int64N(int64(s.pause))))
		}
	})
}

// writeOne does one thing to one object.
func (s *strength) writeOne(t *testing.T, to *dynamic.Resource, rng *rand.Rand) {
	t.Helper()
	// Few values, so that objects have equal parts, which caches share.
	n, what, value := rng.IntN(s.stay+s.come), rng.IntN(4), strconv.Itoa(rng.IntN(50))
	name := s.name(n)
	var err error
	switch {
	case what == 0 && n >= s.stay:
		_, err = to.Delete(t.Context(), name, nil)
	case what == 1 && n >= s.stay:
		_, err = to.Create(t.Context(), stormy(to, name), nil)
	default:
		_, err = to.Apply(t.Context(), stormy(to, name, value), &metav1.ApplyOptions{FieldManager: "storm", Force: true})
	}
	if !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
		assert.NoError(t, err)
	}
}

// remove deletes all that is there.
func (s *strength) remove(t *testing.T, from *dynamic.Resource) {
	t.Helper()
	s.together(func(writer int) {
		for n := writer; n < s.stay+s.come; n += s.writers {
			if _, err := from.Delete(t.Context(), s.name(n), nil); !apierrors.IsNotFound(err) {
				assert.NoError(t, err)
			}
		}
	})
}

// together does something as all writers at the same time.
func (s *strength) together(do func(writer int)) {
	var writing sync.WaitGroup
	for writer := range s.writers {
		writing.Go(func() { do(writer) })
	}
	writing.Wait()
}

// stormy is an object of whatever resource is written to.
func stormy(to *dynamic.Resource, name string, values ...string) *object {
	annotations := map[string]any{}
	for i, value := range values {
		annotations[fmt.Sprint("v", i)] = value
	}
	obj := &object{Object: map[string]any{"metadata": map[string]any{"name": name, "annotations": annotations}}}
	obj.SetGroupVersionKind(to.Mapping().GVK)
	return obj
}
