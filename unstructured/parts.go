package unstructured

import "hash/maphash"

// Parts has what decoders read next to each other, or one after the other, share what is equal: of many objects with
// the same labels, containers or managed fields, or of many states of one object, all have the same map or list in
// their Object, which is made once. They take a fraction of the memory and of the time, and none of them may be
// changed: a change of one would be a change of others, and of what is read later. A copy made by DeepCopy may.
//
// It remembers what came twice within a while, some MB of JSON at most, and of each object that it knows by its UID the
// last state, for as long as somebody else holds that: what has not changed since is not read again. Give it to
// [ListDecoder.Share] and [WatchDecoder.Share]. One goroutine at a time.
type Parts struct {
	seed maphash.Seed
	// recent has what was found or kept since a while, before what was only then, by its JSON.
	recent, before map[string]any
	size           int       // bytes of JSON in recent
	looks          int       // into recent
	once           []uint32  // hashes of what was seen once, each at one of few places
	luck           [256]luck // by the name of the member that a value is, or is in
	under          string
	states         states
}

// luck says whether it was worth looking for values of a name.
type luck struct {
	score int8 // rises with what is found, falls with what is not
	idle  uint8
}

func (l *luck) hit()  { l.score = min(max(l.score, 0)+1, bestLuck) }
func (l *luck) miss() { l.score = max(l.score-1, noLuck) }

const (
	partLongest   = 32 << 10 // bytes of JSON
	partsSize     = 4 << 20
	partsLooks    = 1 << 17
	partsOnce     = 1 << 11
	bestLuck      = 8
	noLuck        = -4
	maxLookAhead  = 8  // bytes looked at in vain for each byte read, so that deeply nested objects do not cost depth times length
	luckIdleLooks = 32 // so many values of a name that is out of luck pass before one is looked for again
)

// NewParts remembers nothing yet.
func NewParts() *Parts {
	return &Parts{seed: maphash.MakeSeed(), recent: map[string]any{}, once: make([]uint32, partsOnce), states: newStates()}
}

// wanted says whether to look, which it is worth now and then even without luck.
func (l *luck) wanted() bool {
	if l.score > noLuck {
		return true
	}
	if l.idle++; l.idle < luckIdleLooks {
		return false
	}
	l.idle = 0
	return true
}

// find is the value of this JSON, if it is remembered.
func (p *Parts) find(text []byte) (v any, found bool) {
	if p.looks++; p.looks > partsLooks || p.size > partsSize {
		p.recent, p.before, p.size, p.looks = make(map[string]any, len(p.recent)), p.recent, 0, 0
	}
	if v, found = p.recent[string(text)]; found {
		return v, true
	}
	if v, found = p.before[string(text)]; found {
		p.keep(string(text), v)
	}
	return v, found
}

func (p *Parts) keep(text string, v any) {
	p.recent[text] = v
	p.size += len(text)
}

// again says whether this JSON was seen before, and has it seen now.
func (p *Parts) again(text []byte) bool {
	h := maphash.Bytes(p.seed, text)
	at, rest := &p.once[h%partsOnce], uint32(h>>32)
	if *at == rest {
		return true
	}
	*at = rest
	return false
}

// part reads an object or a list, whose opening brace or bracket is next, by collection, or finds it among what was read
// before.
func (r *reader) part(collection func() (any, error)) (any, error) {
	l := &r.parts.luck[internHash([]byte(r.parts.under))>>56]
	if !l.wanted() || r.lookedAhead > maxLookAhead*(r.offset()-r.objectStart)+partLongest {
		return collection()
	}
	text := r.ahead()
	if v, found := r.parts.find(text); found {
		r.pos += len(text)
		l.hit()
		return v, nil
	}
	l.miss()
	r.lookedAhead += int64(r.skipper.pos)
	if text == nil || !r.parts.again(text) {
		return collection()
	}
	kept := string(text)
	v, err := collection()
	if err == nil {
		r.parts.keep(kept, v)
	}
	return v, err
}

// ahead is the JSON of the object or list that is next, and good until the next read; nil if that is long or wrong.
func (r *reader) ahead() []byte {
	s := &r.skipper
	s.reset(maxDepth - r.depth)
	for {
		switch s.skip(r.buf[r.pos:r.end]) {
		case skipped:
			return r.buf[r.pos : r.pos+s.pos]
		case needsMore:
			if r.end-r.pos > partLongest || r.need() != nil {
				return nil
			}
		case isOdd:
			return nil
		}
	}
}
