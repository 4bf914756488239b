package cache_test

import (
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// witness is a consumer that checks that its story makes sense.
type witness struct {
	t        *testing.T
	mu       sync.Mutex
	versions map[string]string
	uids     map[string]types.UID
	newest   map[string]string // of each name, deleted or not
	ending   bool              // even what stays all the time is deleted now
}

func newWitness(t *testing.T) *witness {
	return &witness{t: t, versions: map[string]string{}, uids: map[string]types.UID{}, newest: map[string]string{}}
}

func (w *witness) hear(kind watch.EventType, name string, uid types.UID, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.uids[name]
	if kind == watch.Added {
		assert.Empty(w.t, known, "%s is added twice", name)
	} else {
		assert.Equal(w.t, known, uid, "%s is %s, but another object", name, kind)
	}
	if kind == watch.Modified {
		assert.NotEqual(w.t, w.versions[name], version, "%s is told twice", name)
	}
	assert.False(w.t, older(version, w.newest[name]), "time ran backwards for %s", name)
	w.newest[name] = version
	if kind == watch.Deleted {
		assert.False(w.t, strings.Contains(name, staying) && !w.ending, "%s is there all the time, but was told Deleted", name)
		delete(w.versions, name)
		delete(w.uids, name)
	} else {
		w.versions[name], w.uids[name] = version, uid
	}
}

func (w *witness) states() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.versions)
}

// end says that from now on everything is deleted; begin, that it is, and that another story begins.
func (w *witness) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ending = true
}

func (w *witness) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ending, w.newest = false, map[string]string{}
}

func older(a, b string) bool {
	first, _ := strconv.ParseUint(a, 10, 64)
	second, _ := strconv.ParseUint(b, 10, 64)
	return first < second
}
