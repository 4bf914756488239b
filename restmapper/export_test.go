package restmapper

// Misses returns the number of cached misses.
func (m *Mapper) Misses() int {
	m.misses.mu.Lock()
	defer m.misses.mu.Unlock()
	return len(m.misses.misses)
}
