package history

// versionsForward checks that no observer gets an older version of an object after a newer one, also across relists and servers,
// and no version twice as a change.
func versionsForward(h *History) (found []Violation) {
	for _, run := range h.runs(Follower, Consumer, Operator, Reader, Snapshot) {
		newest := int64(0)
		for _, i := range run.indexes {
			o := &h.Observations[i]
			isChange := (o.Kind == Added || o.Kind == Modified) && run.observer.Role != Operator // an Operator may repeat a failed call
			switch {
			case o.Revision != 0 && o.Revision < newest:
				found = append(found, h.violation(i, "revision %d after %d", o.Revision, newest))
			case isChange && o.Revision == newest:
				found = append(found, h.violation(i, "revision %d again", o.Revision))
			}
			newest = max(newest, o.Revision)
		}
	}
	return found
}

// noReturn checks that no object returns after its deletion was observed. An object that is created again has a new UID.
func noReturn(h *History) (found []Violation) {
	for _, run := range h.runs(Follower, Consumer, Operator, Reader, Snapshot) {
		gone := map[ID]bool{}
		last := ID(0)
		for _, i := range run.indexes {
			o := &h.Observations[i]
			switch {
			case !o.exists():
				gone[last] = last != 0
			case gone[o.UID]:
				found = append(found, h.violation(i, "the object returned after its deletion"))
				delete(gone, o.UID)
				last = o.UID
			default:
				last = o.UID
			}
		}
	}
	return found
}

// changesPaired checks that Added comes first for each UID, and Deleted before the next UID.
func changesPaired(h *History) (found []Violation) {
	for _, run := range h.runs(Follower, Consumer, Operator) {
		current := ID(0)
		for n, i := range run.indexes {
			o := &h.Observations[i]
			isFirst := n == 0 && run.isContinued
			switch {
			case isFirst:
			case o.Kind == Added && current == o.UID && run.observer.Role == Operator: // repeated
			case o.Kind == Added && current != 0:
				found = append(found, h.violation(i, "Added before the Deleted of uid %s", h.texts[current]))
			case o.Kind != Added && current != o.UID:
				found = append(found, h.violation(i, "%s after uid %q was Added", o.Kind, h.texts[current]))
			}
			current = 0
			if o.exists() {
				current = o.UID
			}
		}
	}
	return found
}
