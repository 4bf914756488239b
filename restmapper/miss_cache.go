package restmapper

import (
	"maps"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/anykind/anykind/internal/retry"
)

// missBackoff is the delay before the next search for a missing name. It grows with the number of searches in a row.
var missBackoff = retry.Backoff{Min: 50 * time.Millisecond, Max: time.Second}

const (
	missLife  = 5 * time.Second // how long a miss is kept after its delay
	maxMisses = 1024            // bounds the memory for arbitrary names
)

// missCache holds recently missing and ambiguous names: a mistyped name in a loop must not cause a search each time. It holds no
// snapshot. It is safe for concurrent use; the zero value is ready.
type missCache struct {
	mu      sync.Mutex
	misses  map[missKey]miss
	sweepAt time.Time // when expired misses are deleted next
}

type missKey struct {
	interpretations [2]interpretation
	versions        string
}

type miss struct {
	retryAt  time.Time
	searches int                 // in a row
	index    weak.Pointer[index] // the index without the name
	err      error               // for this index
}

// get returns the error, for the given index, of a missing query before its retryAt, otherwise nil.
func (c *missCache) get(q *query, x *index, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweep(now)
	key := q.key()
	last, known := c.misses[key]
	if !known || !now.Before(last.retryAt) {
		return nil
	}
	if current := weak.Make(x); last.index != current {
		last.index = current
		last.err = x.noMatch(q)
		c.misses[key] = last
	}
	return last.err
}

// add records a search without a match, or with several.
func (c *missCache) add(q *query, x *index, err error, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweep(now)
	if c.misses == nil {
		c.misses = map[missKey]miss{}
	}
	key := q.key()
	last, known := c.misses[key]
	if !known && len(c.misses) >= maxMisses {
		clear(c.misses)
	}
	searches := last.searches
	if !known || !now.Before(last.retryAt) { // concurrent searches count as one
		searches++
	}
	c.misses[key] = miss{retryAt: now.Add(missBackoff.Delay(searches)), searches: searches, index: weak.Make(x), err: err}
}

// sweep deletes expired misses from time to time. The caller holds mu.
func (c *missCache) sweep(now time.Time) {
	if now.Before(c.sweepAt) {
		return
	}
	c.sweepAt = now.Add(missLife)
	maps.DeleteFunc(c.misses, func(_ missKey, old miss) bool { return now.Sub(old.retryAt) >= missLife })
}

func (q *query) key() missKey {
	return missKey{interpretations: q.interpretations, versions: strings.Join(q.versions, ",")}
}
