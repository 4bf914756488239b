package restmapper

// Misses is how many misses are remembered.
func (m *Mapper) Misses() int {
	m.misses.mu.Lock()
	defer m.misses.mu.Unlock()
	return len(m.misses.byName)
}
