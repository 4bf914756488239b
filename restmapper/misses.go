package restmapper

import (
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/anykind/anykind/discovery"
)

const (
	// missLife is for how long a name that was not found is not looked for again. It is short: who creates a
	// CustomResourceDefinition waits about as long until it is established.
	missLife = time.Second
	// mostMisses bounds the memory that names from outside can take.
	mostMisses = 1024
)

// misses remembers for a short while which names the server lacked when it was asked, so that a mistyped name in a
// loop does not ask it at every turn. It is safe for concurrent use; the zero value is ready.
type misses struct {
	mu     sync.Mutex
	byName map[missed]miss
}

// missed is what was asked for.
type missed struct {
	asked    [2]reading
	versions string
}

type miss struct {
	until time.Time
	// snapshot is where the name was not found and err what was said about it.
	snapshot *discovery.Snapshot
	err      error
}

// recall says whether the name was missed not long ago, and gives what was said then; nil where another snapshot has
// come since, which may tell more.
func (m *misses) recall(q *query, snapshot *discovery.Snapshot, now time.Time) (known bool, said error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.byName[q.key()]
	if !known || !now.Before(last.until) {
		return false, nil
	}
	if last.snapshot != snapshot {
		return true, nil
	}
	return true, last.err
}

// note remembers a miss. One that is still remembered keeps its end.
func (m *misses) note(q *query, snapshot *discovery.Snapshot, err error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byName == nil {
		m.byName = map[missed]miss{}
	}
	if len(m.byName) >= mostMisses {
		maps.DeleteFunc(m.byName, func(_ missed, old miss) bool { return !now.Before(old.until) })
	}
	if len(m.byName) >= mostMisses {
		clear(m.byName)
	}
	until := now.Add(missLife)
	if last, known := m.byName[q.key()]; known && now.Before(last.until) {
		until = last.until
	}
	m.byName[q.key()] = miss{until: until, snapshot: snapshot, err: err}
}

func (q *query) key() missed {
	return missed{asked: q.asked, versions: strings.Join(q.versions, ",")}
}
