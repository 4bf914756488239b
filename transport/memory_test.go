package transport_test

import "runtime"

// runtimeMemory is what the program has allocated so far.
type runtimeMemory struct{ allocated uint64 }

func (m *runtimeMemory) read() {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	m.allocated = stats.TotalAlloc
}
