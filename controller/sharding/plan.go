package sharding

import (
	"cmp"
	"maps"
	"slices"

	"github.com/anykind/anykind/shard"
)

// The plan is computed from the segments, the live members and the weights alone, so every member computes the same. A member's
// quota is 1/N of the weight. Segments without a live member go to members below their quota. If a member's load differs from its
// quota by more than an eighth, members above it give parts to members below it: a member that comes or goes moves its own load. A
// part is taken next to a range of its new member if possible, so that ranges stay few. A member with more than maxRanges gives its
// smallest ranges to its neighbors.

const (
	maxRanges = 64 // of a member
	// maxImbalance is the difference of a load from the quota, relative to the quota, to be left as it is.
	maxImbalance = 0.125
	// minPart is the smallest part to be cut, relative to the quota.
	minPart = 1.0 / 32
	// maxTransfers limits the parts that move, for each member.
	maxTransfers = 128
)

// planner is the state of a plan. segment.next is the member to have the segment, "" if it is not known yet.
type planner struct {
	weights  weights
	segments []segment
	loads    map[string]float64 // by live member, and "" for segments without one
	quota    float64
}

// plan returns the segments with their next owners. A segment without an owner gets one at once.
func plan(segments []segment, live []string, w weights) []segment {
	if len(live) == 0 {
		return segments
	}
	p := &planner{weights: w, segments: slices.Clone(segments), loads: map[string]float64{}, quota: 1 / float64(len(live))}
	for _, member := range live {
		p.loads[member] = 0
	}
	for i := range p.segments {
		s := &p.segments[i]
		s.next = p.target(*s)
		p.loads[s.next] += w.of(s.Range)
	}
	if p.loads[""] > 0 || p.isImbalanced() {
		for range maxTransfers * len(live) {
			if !p.transfer() {
				break
			}
		}
	}
	p.assignRest()
	p.limitRanges()
	for i := range p.segments {
		s := &p.segments[i]
		s.owner = cmp.Or(s.owner, s.next)
		if s.next == s.owner {
			s.next = ""
		}
	}
	return merge(p.segments)
}

// target returns the live member that has the segment, or is to get it.
func (p *planner) target(s segment) string {
	for _, member := range []string{s.next, s.owner} {
		if _, isLive := p.loads[member]; isLive && member != "" {
			return member
		}
	}
	return ""
}

func (p *planner) isImbalanced() bool {
	limit := max(p.quota*maxImbalance, p.weights.unit())
	for member, load := range p.loads {
		if member != "" && (load-p.quota > limit || p.quota-load > limit) {
			return true
		}
	}
	return false
}

// members returns the live members, the least loaded first.
func (p *planner) members() []string {
	members := slices.Sorted(maps.Keys(p.loads))
	members = slices.DeleteFunc(members, func(member string) bool { return member == "" })
	slices.SortStableFunc(members, func(a, b string) int { return cmp.Compare(p.loads[a], p.loads[b]) })
	return members
}

// transfer moves a part to the member with the least load. It reports whether it has found one.
func (p *planner) transfer() bool {
	members := p.members()
	to := members[0]
	missing := p.quota - p.loads[to]
	least := p.quota * minPart
	if p.loads[""] > 0 && p.move("", to, max(missing, least)) {
		return true
	}
	from := members[len(members)-1]
	surplus := p.loads[from] - p.quota
	if missing <= least && surplus <= p.quota*maxImbalance/2 || surplus <= 0 {
		return false
	}
	amount := min(max(missing, least), max(surplus, least))
	if p.move(from, to, amount) {
		return true
	}
	// A unit larger than the amount is moved if the loads of both come closer.
	unit := p.weights.unit()
	return unit < p.loads[from]-p.loads[to]-unit/2 && p.move(from, to, unit)
}

// move moves a part of about the weight, at most.
func (p *planner) move(from, to string, weight float64) bool {
	if from == "" {
		weight = max(weight, p.weights.unit())
	}
	chosen, isHead, isWhole := p.choose(from, to, weight)
	if chosen < 0 {
		return false
	}
	s := p.segments[chosen]
	part := s.Range
	if !isWhole {
		cut := p.weights.tail
		if isHead {
			cut = p.weights.head
		}
		var ok bool
		if part, ok = cut(s.Range, weight); !ok {
			return false
		}
	}
	moved := p.weights.of(part)
	if moved == 0 {
		return false
	}
	p.loads[from] -= moved
	p.loads[to] += moved
	pieces := []segment{{part, s.owner, to}}
	if part.First > s.First {
		pieces = append([]segment{{shard.Range{First: s.First, Last: part.First - 1}, s.owner, from}}, pieces...)
	}
	if part.Last < s.Last {
		pieces = append(pieces, segment{shard.Range{First: part.Last + 1, Last: s.Last}, s.owner, from})
	}
	p.segments = slices.Replace(p.segments, chosen, chosen+1, pieces...)
	return true
}

// choose returns the index of the segment to take a part from: a neighbor of the new member's ranges, a segment of the weight, or the
// largest segment. It is -1 for none.
func (p *planner) choose(from, to string, weight float64) (chosen int, isHead, isWhole bool) {
	const (
		largest = iota
		whole
		neighbor
	)
	chosen = -1
	rank := largest
	size := 0.0
	for i, s := range p.segments {
		load := p.weights.of(s.Range)
		if s.next != from || load == 0 {
			continue
		}
		of := largest
		follows := i > 0 && p.segments[i-1].next == to
		precedes := i+1 < len(p.segments) && p.segments[i+1].next == to
		fits := load <= weight*1.02
		switch {
		case follows || precedes:
			of = neighbor
		case fits && load > weight/2:
			of = whole
		}
		if of > rank || of == rank && load > size {
			chosen, rank, size = i, of, load
			isHead = follows && !precedes
			isWhole = fits
		}
	}
	return chosen, isHead, isWhole
}

// assignRest assigns the segments that are still without a member to their neighbors, or to the member with the least load.
func (p *planner) assignRest() {
	for i := range p.segments {
		s := &p.segments[i]
		if s.next != "" {
			continue
		}
		load := p.weights.of(s.Range)
		switch {
		case i > 0 && load < p.quota*minPart:
			s.next = p.segments[i-1].next
		default:
			s.next = p.members()[0]
		}
		p.loads[""] -= load
		p.loads[s.next] += load
	}
}

// limitRanges gives ranges of members with more than maxRanges to their neighbors: of the member with the largest load, the smallest
// range. The neighbors' numbers of ranges do not grow.
func (p *planner) limitRanges() {
	for {
		counts := map[string]int{}
		runs := p.runs()
		for _, run := range runs {
			counts[run.next]++
		}
		smallest := -1
		for i, run := range runs {
			if counts[run.next] > maxRanges && (smallest < 0 || p.compareToGive(run, runs[smallest]) < 0) {
				smallest = i
			}
		}
		if smallest < 0 {
			return
		}
		neighbors := []string{}
		if smallest > 0 {
			neighbors = append(neighbors, runs[smallest-1].next)
		}
		if smallest+1 < len(runs) {
			neighbors = append(neighbors, runs[smallest+1].next)
		}
		to := slices.MinFunc(neighbors, func(a, b string) int { return cmp.Compare(p.loads[a], p.loads[b]) })
		run := runs[smallest]
		for i := range p.segments {
			if s := &p.segments[i]; s.First >= run.First && s.Last <= run.Last {
				load := p.weights.of(s.Range)
				p.loads[s.next] -= load
				p.loads[to] += load
				s.next = to
			}
		}
	}
}

// compareToGive orders ranges by their members' loads, largest first, and by their own weights.
func (p *planner) compareToGive(a, b segment) int {
	return cmp.Or(cmp.Compare(p.loads[b.next], p.loads[a.next]), cmp.Compare(p.weights.of(a.Range), p.weights.of(b.Range)))
}

// runs returns the ranges of the members to be.
func (p *planner) runs() []segment {
	runs := make([]segment, len(p.segments))
	for i, s := range p.segments {
		runs[i] = segment{Range: s.Range, next: s.next}
	}
	return merge(runs)
}
