package restmapper

import (
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// missDelay is for how long a name that was not found is not looked for again, after the n-th time.
var missDelay = retry.Backoff{Min: 50 * time.Millisecond, Max: time.Second}

const (
	// missLife is after how long without a question a miss is forgotten.
	missLife = 5 * time.Second
	// maxMisses bounds the memory that names from outside can take.
	maxMisses = 1024
)

// misses remembers for a short while which names the server lacked when it was asked, so that a mistyped name in a loop
// does not ask it at every turn. It holds no snapshot. It is safe for concurrent use; the zero value is ready.
type misses struct {
	mu     sync.Mutex
	byName map[missed]miss
	sweep  time.Time // when the map is searched for misses to forget
}

// missed is what was asked for.
type missed struct {
	asked    [2]reading
	versions string
}

type miss struct {
	until time.Time
	count int // of questions in a row
	// catalog is the number of the one that lacks the name, and err what was said about it.
	catalog uint64
	err     error
}

// recall reports whether the server is not to be asked for the name yet, and returns what was said then; nil where
// another snapshot has come since, which may tell more.
func (m *misses) recall(q *query, catalog uint64, now time.Time) (known bool, said error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(now)
	last, known := m.byName[q.key()]
	if !known || !now.Before(last.until) {
		return false, nil
	}
	if last.catalog != catalog {
		return true, nil
	}
	return true, last.err
}

// note remembers that the server was asked and lacks the name.
func (m *misses) note(q *query, catalog uint64, err error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(now)
	if m.byName == nil {
		m.byName = map[missed]miss{}
	}
	key := q.key()
	count := 1
	if last, known := m.byName[key]; !known && len(m.byName) >= maxMisses {
		clear(m.byName)
	} else if known {
		count = last.count
		if !now.Before(last.until) { // and not one of several who asked at once
			count++
		}
	}
	m.byName[key] = miss{until: now.Add(missDelay.Delay(count)), count: count, catalog: catalog, err: err}
}

// update replaces what is said about a name that is still remembered.
func (m *misses) update(q *query, catalog uint64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, known := m.byName[q.key()]; known {
		last.catalog, last.err = catalog, err
		m.byName[q.key()] = last
	}
}

// forget removes, now and then, what nobody has asked for lately. The caller has mu.
func (m *misses) forget(now time.Time) {
	if now.Before(m.sweep) {
		return
	}
	m.sweep = now.Add(missLife)
	maps.DeleteFunc(m.byName, func(_ missed, old miss) bool { return now.Sub(old.until) >= missLife })
}

func (q *query) key() missed {
	return missed{asked: q.asked, versions: strings.Join(q.versions, ",")}
}
