package simulate

import "strings"

// pairDistance is how far apart, in the order of a run without faults, an event and a write are that are reordered.
const pairDistance = 12

// enumerate runs the scenario with a crash after each write of a run without faults, and with each of its events held back until after
// each write that follows it.
func (f *finder) enumerate(first *result) *Failure {
	for i, key := range first.order {
		switch {
		case isWriteKey(key):
			for outage := range len(outages) {
				c := &choices{seed: 0, fixed: map[string]int{key: int(crashAfter), "start of process #1": outage}}
				if res := f.run(c); res.failure != nil {
					return f.failure(res, c)
				}
			}
		case strings.HasPrefix(key, "controller event "):
			for _, write := range first.order[i+1 : min(i+1+pairDistance, len(first.order))] {
				if !isWriteKey(write) && !strings.HasPrefix(write, "step ") {
					continue
				}
				c := &choices{seed: 0, fixed: map[string]int{}, after: map[string]string{key: write}}
				if res := f.run(c); res.failure != nil {
					return f.failure(res, c)
				}
			}
		}
	}
	return nil
}

// isWriteKey reports whether a key is that of a controller's write that may be followed by a crash. Leases are renewed all the time.
func isWriteKey(key string) bool {
	verb, found := strings.CutPrefix(key, "controller ")
	verb, rest, _ := strings.Cut(verb, " ")
	return found && request{verb: verb}.isWrite() && !strings.HasPrefix(rest, "leases.")
}
