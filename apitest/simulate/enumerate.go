package simulate

import "strings"

// pairDistance is the maximum distance of a reordered event and write in the order of a run without faults.
const pairDistance = 12

// enumerate runs the scenario once per write and outage, with a crash after the write, and once per event and later write (at
// most pairDistance apart), with the event held back until after the write.
func (f *finder) enumerate(first *result) *Failure {
	for i, key := range first.order {
		switch {
		case isWriteKey(key):
			for outage := range len(outages) {
				c := &choices{seed: 0, fixed: map[string]int{key: int(crashAfter), "start of process #1": outage}}
				if res := f.run(c); res.failure != nil {
					return f.shrunk(res, c)
				}
			}
		case strings.HasPrefix(key, "controller event "):
			for _, write := range first.order[i+1 : min(i+1+pairDistance, len(first.order))] {
				if !isWriteKey(write) && !strings.HasPrefix(write, "step ") {
					continue
				}
				c := &choices{seed: 0, fixed: map[string]int{}, after: map[string]string{key: write}}
				if res := f.run(c); res.failure != nil {
					return f.shrunk(res, c)
				}
			}
		}
	}
	return nil
}

// isWriteKey reports whether key is a controller's write to be followed by a crash. Lease writes are excluded: they are too many.
func isWriteKey(key string) bool {
	verb, found := strings.CutPrefix(key, "controller ")
	verb, rest, _ := strings.Cut(verb, " ")
	return found && request{verb: verb}.isWrite() && !strings.HasPrefix(rest, "leases.")
}
