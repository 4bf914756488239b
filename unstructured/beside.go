package unstructured

import "slices"

// deepest is how many levels of an object are read beside its last state: spec, a list in it, and an element of that.
const deepest = 3

// state reads an object of Kubernetes, whose opening brace is next, beside its last state: what has not changed is taken
// from there. The object itself and its metadata are always new, so that they can be given another kind.
func (r *reader) state() (map[string]any, error) {
	s := &r.parts.states
	s.begin()
	r.hold()
	defer r.letGo()
	var last map[string]any
	return r.objectOf(func(name string) (v any, err error) {
		if c, err := r.next(); err == nil && c == '{' && name == "metadata" {
			return r.metadata(&last)
		}
		return r.beside(s.member(0, name), 1, last[name])
	})
}

// metadata reads an object's metadata, whose opening brace is next, and finds the object's last state by the UID in it.
// Servers send the metadata first, and in them name and UID before what is large.
func (r *reader) metadata(last *map[string]any) (map[string]any, error) {
	s := &r.parts.states
	at := s.member(0, "metadata")
	var was map[string]any
	return r.objectOf(func(name string) (any, error) {
		v, err := r.beside(s.member(at, name), 2, was[name])
		if uid, isString := v.(string); isString && name == "uid" {
			*last = s.meet(uid)
			was, _ = (*last)["metadata"].(map[string]any)
		}
		return v, err
	})
}

// objectOf reads an object, whose opening brace is next, and its members' values by value.
func (r *reader) objectOf(value func(name string) (any, error)) (map[string]any, error) {
	base := len(r.members)
	name, more, err := r.openObject()
	for more {
		r.parts.under = name
		var v any
		if v, err = value(name); err != nil {
			return nil, err
		}
		r.members = append(r.members, member{name, v})
		name, more, err = r.nextMember()
	}
	if err != nil {
		return nil, err
	}
	read := len(r.members) - base
	m := r.makeObject(base)
	if len(m) < read {
		r.parts.states.twice = true
	}
	return m, nil
}

// beside reads any value beside was, which is what stood at its path in the object's last state.
func (r *reader) beside(at path, depth int, was any) (any, error) {
	s := &r.parts.states
	c, err := r.next()
	if err != nil || c != '{' && c != '[' || s.uid == "" || len(s.now) >= digests {
		return r.value()
	}
	if isCollection(was) && s.luck[at>>56].wanted() {
		if text := r.ahead(); s.find(at, text) {
			r.pos += len(text)
			return was, nil
		}
	}
	start, mine := r.offset(), len(s.now)
	s.now = append(s.now, digest{})
	v, err := r.part(func() (any, error) { return r.inside(at, depth, was) })
	if err == nil && r.held && r.offset()-start >= int64(s.least) {
		d := s.digest(at, r.buf[start-r.before:r.pos])
		d.within = uint32(len(s.now) - mine - 1) //nolint:gosec // less than a few times digests
		s.now[mine] = d
	} else { // it is short, or too much has come since it began
		s.now = slices.Delete(s.now, mine, mine+1)
	}
	return v, err
}

// inside reads an object or a list, whose opening brace or bracket is next, and what is in it beside what was in was.
func (r *reader) inside(at path, depth int, was any) (any, error) {
	s := &r.parts.states
	switch {
	case depth == deepest:
		return r.collection()
	case r.buf[r.pos] == '{':
		of, _ := was.(map[string]any)
		return r.objectOf(func(name string) (any, error) { return r.beside(s.member(at, name), depth+1, of[name]) })
	default:
		of, _ := was.([]any)
		return r.arrayOf(func(i int) (any, error) { return r.beside(s.element(at, i), depth+1, elementOf(of, i)) })
	}
}

func isCollection(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	default:
		return false
	}
}

func elementOf(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}
