package restmapper

import "time"

// SetClock replaces the clock by which misses are forgotten, before the first lookup.
func (m *Mapper) SetClock(now func() time.Time) { m.now = now }

// Misses is how many misses are remembered.
func (m *Mapper) Misses() int {
	m.misses.mu.Lock()
	defer m.misses.mu.Unlock()
	return len(m.misses.byName)
}
