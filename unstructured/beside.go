package unstructured

import "slices"

// So many levels of an object are read beside its last state.
const (
	ofObject   = 3 // spec, a list in it, and an element of that
	ofMetadata = 4 // managedFields, an entry, which changes with each write by its time alone, its fieldsV1 and what is in that
)

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
		return r.memberBeside(last, 0, name, ofObject)
	})
}

// metadata reads an object's metadata, whose opening brace is next, and finds the object's last state by the UID in it.
// Servers send the metadata first, and in them name and UID before what is large.
func (r *reader) metadata(last *map[string]any) (map[string]any, error) {
	s := &r.parts.states
	at := s.member(0, "metadata")
	var was map[string]any
	return r.objectOf(func(name string) (any, error) {
		v, err := r.memberBeside(was, at, name, ofMetadata)
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

// memberBeside reads the value of the member of that name of the object at a path, beside that of what stood there.
func (r *reader) memberBeside(was map[string]any, at path, name string, levels int) (any, error) {
	if !r.hasDigest() {
		return r.value()
	}
	return r.beside(r.parts.states.member(at, name), levels, was[name])
}

// elementBeside is memberBeside for a list.
func (r *reader) elementBeside(was []any, at path, i, levels int) (any, error) {
	if !r.hasDigest() {
		return r.value()
	}
	return r.beside(r.parts.states.element(at, i), levels, elementOf(was, i))
}

// hasDigest says whether what is next is an object or a list that may be remembered by a digest.
func (r *reader) hasDigest() bool {
	c, err := r.next()
	s := &r.parts.states
	return err == nil && (c == '{' || c == '[') && s.uid != "" && len(s.now) < digests
}

// beside reads an object or a list, which has a digest, beside was, which is what stood at its path in the object's last
// state.
func (r *reader) beside(at path, levels int, was any) (any, error) {
	s := &r.parts.states
	if isCollection(was) && s.luck[at>>56].wanted() {
		if text := r.ahead(); s.find(at, text) {
			r.pos += len(text)
			return was, nil
		}
	}
	start, mine := r.offset(), len(s.now)
	s.now = append(s.now, digest{})
	v, err := r.part(func() (any, error) { return r.inside(at, levels, was) })
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
func (r *reader) inside(at path, levels int, was any) (any, error) {
	switch {
	case levels == 1:
		return r.collection()
	case r.buf[r.pos] == '{':
		of, _ := was.(map[string]any)
		return r.objectOf(func(name string) (any, error) { return r.memberBeside(of, at, name, levels-1) })
	default:
		of, _ := was.([]any)
		return r.arrayOf(func(i int) (any, error) { return r.elementBeside(of, at, i, levels-1) })
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
