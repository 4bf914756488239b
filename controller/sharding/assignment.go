package sharding

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/anykind/anykind/shard"
)

// segment is a range of hashes with an owner.
type segment struct {
	shard.Range
	owner string // the member that works on it; "" for none
	next  string // the member to get it from the owner; "" if the owner keeps it
}

// assignment is the content of the group's Lease: adjacent segments that cover all hashes.
type assignment struct {
	// isSettled is false until the first member gets a segment: an earlier assignment, deleted by somebody, may have had
	// owners that still work.
	isSettled bool
	segments  []segment
}

// assignmentJSON is the form of an assignment in an annotation.
type assignmentJSON struct {
	Settled  bool          `json:"settled,omitempty"`
	Segments []segmentJSON `json:"segments"`
}

// segmentJSON is the form of a segment. It ends before the first hash of its successor.
type segmentJSON struct {
	First string `json:"first"` // 16 hexadecimal digits
	Owner string `json:"owner,omitempty"`
	Next  string `json:"next,omitempty"`
}

// newAssignment returns an assignment without owners.
func newAssignment() assignment { return assignment{segments: []segment{{Range: shard.All()[0]}}} }

func (a assignment) encode() string {
	encoded := assignmentJSON{Settled: a.isSettled}
	for _, s := range a.segments {
		encoded.Segments = append(encoded.Segments, segmentJSON{First: fmt.Sprintf("%016x", s.First), Owner: s.owner, Next: s.next})
	}
	text, _ := json.Marshal(encoded)
	return string(text)
}

func decodeAssignment(text string) (assignment, error) {
	var decoded assignmentJSON
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		return assignment{}, fmt.Errorf("read the assignment: %w", err)
	}
	a := assignment{isSettled: decoded.Settled}
	for i, s := range decoded.Segments {
		first, err := strconv.ParseUint(s.First, 16, 64)
		switch {
		case err != nil:
			return assignment{}, fmt.Errorf("read the assignment: %w", err)
		case i == 0 && first != 0, i > 0 && first <= a.segments[i-1].First:
			return assignment{}, fmt.Errorf("read the assignment: segment %d begins at %q", i, s.First)
		case i > 0:
			a.segments[i-1].Last = first - 1
		}
		a.segments = append(a.segments, segment{Range: shard.Range{First: first, Last: math.MaxUint64}, owner: s.Owner, next: s.Next})
	}
	if len(a.segments) == 0 {
		return assignment{}, fmt.Errorf("read the assignment: no segments")
	}
	return a, nil
}

// ownedBy returns the hashes of a member.
func (a assignment) ownedBy(member string) shard.Ranges {
	return a.rangesOf(func(s segment) bool { return s.owner == member })
}

// keptBy returns the hashes that a member owns without a next owner.
func (a assignment) keptBy(member string) shard.Ranges {
	return a.rangesOf(func(s segment) bool { return s.owner == member && (s.next == "" || s.next == member) })
}

func (a assignment) rangesOf(selected func(segment) bool) shard.Ranges {
	var ranges []shard.Range
	for _, s := range a.segments {
		if selected(s) {
			ranges = append(ranges, s.Range)
		}
	}
	return shard.Union(ranges...)
}

// change returns the assignment with segments changed by f, and whether it differs.
func (a assignment) change(f func(*segment)) (changed assignment, differs bool) {
	changed = assignment{isSettled: a.isSettled, segments: slices.Clone(a.segments)}
	for i := range changed.segments {
		f(&changed.segments[i])
	}
	differs = !slices.Equal(a.segments, changed.segments)
	changed.segments = merge(changed.segments)
	return changed, differs
}

// merge joins adjacent segments of the same owners. It reuses the slice.
func merge(segments []segment) []segment {
	merged := segments[:0]
	for _, s := range segments {
		if last := len(merged) - 1; last >= 0 && merged[last].owner == s.owner && merged[last].next == s.next {
			merged[last].Last = s.Last
			continue
		}
		merged = append(merged, s)
	}
	return merged
}
