package unstructured

import (
	"hash/maphash"
	"maps"
	"slices"
	"weak"
)

// states finds what of an object has not changed since it was read last, for as long as somebody holds what was read
// then. It knows the parts of an object by digests of their JSON, which would be as large as they are.
type states struct {
	seeds [2]maphash.Seed // which nobody knows, so that nobody can make another text of the same digest
	last  map[string]weak.Pointer[state]
	limit int       // of them, where those that nobody holds any more are dropped
	least int       // bytes, of what has a digest
	luck  [256]luck // by path

	// Of the object that is being read:
	uid   string
	was   *state // nil for nothing
	now   []digest
	twice bool // members of one name: what is read at a path is then not what is found there
}

// state is an object that was read; the object is what keeps it.
type state struct {
	object  Object
	digests []digest
}

// digest stands for an object or list: where it is in the Kubernetes object, and its JSON. Behind it stand those of what is
// within it.
type digest struct {
	hash   uint64
	check  uint32
	within uint32 // how many
}

const (
	fewStates = 1 << 10 // are kept whether anybody holds them or not
	digested  = 256     // bytes, of what has a digest at least: what is shorter is soon read
	digests   = 64      // of one object, about
)

func newStates() states {
	return states{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, last: map[string]weak.Pointer[state]{}, limit: fewStates, least: digested}
}

// begin begins with an object of which nothing is known yet.
func (s *states) begin() {
	s.uid, s.was, s.now, s.twice = "", nil, s.now[:0], false
}

// meet has found out which object it is, and gives its last state, if there is one.
func (s *states) meet(uid string) map[string]any {
	s.uid, s.was = uid, s.last[uid].Value()
	if s.was == nil {
		return nil
	}
	return s.was.object.Object
}

// keep gives the object that has been read, and remembers it.
func (s *states) keep(m map[string]any) *Object {
	read := &state{object: Object{Object: m}}
	if s.uid != "" && !s.twice {
		if len(s.last) >= s.limit {
			maps.DeleteFunc(s.last, func(_ string, last weak.Pointer[state]) bool { return last.Value() == nil })
			s.limit = max(fewStates, 2*len(s.last))
		}
		read.digests = slices.Clone(s.now)
		s.last[s.uid] = weak.Make(read)
	}
	s.begin()
	return &read.object
}

// path says where in an object something is; 0 is the object itself.
type path uint64

// member is the path of a member of the object at p.
func (s *states) member(p path, name string) path {
	return p*pathStep + path(maphash.String(s.seeds[0], name))
}

// element is the path of an element of the list at p.
func (s *states) element(p path, i int) path { return p*pathStep + path(i) + 1 }

const pathStep = 0x9E3779B97F4A7C15

func (s *states) digest(p path, text []byte) digest {
	return digest{
		hash:  maphash.Bytes(s.seeds[0], text) + uint64(p*pathStep),
		check: uint32(maphash.Bytes(s.seeds[1], text)), //nolint:gosec // its lower half
	}
}

// find says whether at p stood what this text is, and takes over its digests.
func (s *states) find(p path, text []byte) bool {
	l := &s.luck[p>>56]
	if s.was != nil && len(text) >= s.least {
		d := s.digest(p, text)
		for i, was := range s.was.digests {
			if was.hash == d.hash && was.check == d.check {
				s.now = append(s.now, s.was.digests[i:][:was.within+1]...)
				l.hit()
				return true
			}
		}
	}
	l.miss()
	return false
}

// object is the object that has been read, of which there will be no other state if it is gone; with p nil it shares
// nothing.
func (p *Parts) object(m map[string]any, gone bool) *Object {
	switch {
	case p == nil:
		return &Object{Object: m}
	case gone:
		delete(p.states.last, p.states.uid)
		p.states.begin()
		return &Object{Object: m}
	default:
		return p.states.keep(m)
	}
}
