package reflector

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestReflector_SharesStringsOfEmittedObjects has an object that a relist returns unchanged, which is dropped, and then changed.
func TestReflector_SharesStringsOfEmittedObjects(t *testing.T) {
	var emitted []Event[int]
	r := New(Options[int]{Emit: func(event *Event[int]) error {
		emitted = append(emitted, *event)
		return nil
	}})
	r.state = synced
	r.events = &events[int]{}
	received := func(version string) Event[int] {
		event := Event[int]{
			Key: NewKey("shop", strings.Clone("web")), Version: Version{types.UID(strings.Clone("9fa2138a")), strings.Clone(version)}, Type: watch.Added,
		}
		handled := event
		require.NoError(t, r.handleEvent(&handled))
		return event
	}
	assertShares := func(event Event[int]) {
		t.Helper()
		require.Len(t, r.emitted, 1)
		for key, version := range r.emitted {
			for _, texts := range [][2]string{
				{event.Name, key.Name}, {string(event.UID), string(version.UID)}, {event.ResourceVersion, version.ResourceVersion},
			} {
				assert.Equal(t, texts[0], texts[1])
				assert.Same(t, unsafe.StringData(texts[0]), unsafe.StringData(texts[1]), texts[0])
			}
		}
	}
	first := received("1")
	assertShares(first)
	r.beginRelist()
	received("1")
	assert.Empty(t, r.missing)
	assertShares(first)
	third := received("2")
	assertShares(third)
	third.Type = watch.Modified
	assert.Equal(t, []Event[int]{first, third}, emitted)
}
