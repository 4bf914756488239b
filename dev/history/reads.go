package history

// ownWritesRead checks that a read after WaitForWrites returns the written state or a newer one.
func ownWritesRead(h *History) (found []Violation) {
	for _, run := range h.runs(Writer) {
		var written, awaited *Observation
		for _, i := range run.indexes {
			o := &h.Observations[i]
			switch o.Kind {
			case Wrote:
				written = o
			case Awaited:
				awaited = written
			case Read:
				if awaited != nil && !h.spansRestore(awaited.Begin, o.End) && !h.includes(awaited, o) {
					found = append(found, h.violation(i, "the read is older than the write at %d (deletion: %t)", max(awaited.Revision, awaited.Expected), awaited.Revision == 0))
				}
			default:
			}
		}
	}
	return found
}

// includes reports whether a read may have followed a write.
func (h *History) includes(write, read *Observation) bool {
	epoch := h.epochAt(read.End)
	switch {
	case write.Revision == 0 && read.Revision == 0: // a deletion, and a missing object
		return true
	case write.Revision == 0:
		return read.UID != write.UID && read.Revision > write.Expected
	case read.Revision == 0:
		return epoch.deletedAfter(read.Key, write.Revision)
	default:
		return read.Revision >= write.Revision
	}
}

// waitsForward checks that Wait evaluates and returns no older state of an object than before, in one call and in later calls: each
// call begins with a consistent list.
func waitsForward(h *History) (found []Violation) {
	for _, run := range h.runs(Waiter) {
		newest := int64(0)
		for _, i := range run.indexes {
			o := &h.Observations[i]
			switch {
			case o.Revision != 0 && o.Revision < newest:
				found = append(found, h.violation(i, "revision %d after %d", o.Revision, newest))
			case o.Revision == 0 && newest != 0 && !h.spansRestore(0, o.End) && !h.epochAt(o.End).deletedAfter(o.Key, newest):
				found = append(found, h.violation(i, "the result is a deletion, and the object at %d was not deleted", newest))
			}
			newest = max(newest, o.Revision)
		}
	}
	return found
}
