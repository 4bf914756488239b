package unstructured

import "fmt"

// value reads any JSON value: nil, bool, int64, float64, string, []any or map[string]any.
func (r *reader) value() (any, error) {
	c, err := r.next()
	if err != nil {
		return nil, err
	}
	switch {
	case c == '"':
		b, err := r.text()
		if err != nil {
			return nil, err
		}
		return r.values.value(b), nil
	case c == '{' || c == '[':
		if r.parts != nil {
			return r.part(r.collection)
		}
		return r.collection()
	case c == '-' || '0' <= c && c <= '9':
		return r.number()
	case c == 't':
		return true, r.literal("true")
	case c == 'f':
		return false, r.literal("false")
	case c == 'n':
		return nil, r.literal("null")
	default:
		return nil, r.syntax(c, "where a value should begin")
	}
}

// whole is value for what is nobody's part.
func (r *reader) whole() (any, error) {
	c, err := r.next()
	r.objectStart, r.lookedAhead = r.offset(), 0
	switch {
	case err != nil || c != '{':
		return r.value()
	case r.parts != nil:
		return r.state()
	default:
		return r.object()
	}
}

// collection reads an object or a list, whose opening brace or bracket is next.
func (r *reader) collection() (any, error) {
	if r.buf[r.pos] == '{' {
		return r.object()
	}
	return r.array()
}

func (r *reader) literal(word string) error {
	for r.end-r.pos < len(word) {
		if err := r.need(); err != nil {
			return err
		}
	}
	if got := r.buf[r.pos : r.pos+len(word)]; string(got) != word {
		return fmt.Errorf("invalid JSON at byte %d: %q is not %s", r.offset(), got, word)
	}
	r.pos += len(word)
	return nil
}

// object reads an object, whose opening brace is next. Of members with one name the last stays.
func (r *reader) object() (map[string]any, error) {
	base := len(r.members)
	name, more, err := r.openObject()
	for more {
		if r.parts != nil {
			r.parts.under = name
		}
		var v any
		if v, err = r.value(); err != nil {
			return nil, err
		}
		r.members = append(r.members, member{name, v})
		name, more, err = r.nextMember()
	}
	if err != nil {
		return nil, err
	}
	return r.makeObject(base), nil
}

// makeObject is an object of the members that have been read since base.
func (r *reader) makeObject(base int) map[string]any {
	read := r.members[base:]
	m := make(map[string]any, len(read))
	for i := range read {
		m[read[i].name] = read[i].value
	}
	clear(read)
	r.members = r.members[:base]
	return m
}

// array reads a list, whose opening bracket is next.
func (r *reader) array() ([]any, error) {
	return r.arrayOf(func(int) (any, error) { return r.value() })
}

// arrayOf reads a list, whose opening bracket is next, and its elements by value.
func (r *reader) arrayOf(value func(i int) (any, error)) ([]any, error) {
	base := len(r.elements)
	more, err := r.openArray()
	for more {
		var v any
		if v, err = value(len(r.elements) - base); err != nil {
			return nil, err
		}
		r.elements = append(r.elements, v)
		more, err = r.nextElement()
	}
	if err != nil {
		return nil, err
	}
	read := r.elements[base:]
	list := make([]any, len(read))
	copy(list, read)
	clear(read)
	r.elements = r.elements[:base]
	return list, nil
}

// openObject reads an opening brace, which is next, and the first member's name, so that its value is next. Without
// members it reads the closing brace and more is false.
func (r *reader) openObject() (name string, more bool, err error) {
	c, err := r.open()
	if err != nil {
		return "", false, err
	}
	if c == '}' {
		r.close()
		return "", false, nil
	}
	return r.memberName(c)
}

// nextMember does behind a member's value what openObject does for the first.
func (r *reader) nextMember() (name string, more bool, err error) {
	c, err := r.next()
	if err != nil {
		return "", false, err
	}
	switch c {
	case '}':
		r.close()
		return "", false, nil
	case ',':
		r.pos++
		if c, err = r.next(); err != nil {
			return "", false, err
		}
		return r.memberName(c)
	default:
		return "", false, r.syntax(c, "behind an object's member")
	}
}

func (r *reader) memberName(c byte) (name string, more bool, err error) {
	if c != '"' {
		return "", false, r.syntax(c, "where a member's name should begin")
	}
	b, err := r.text()
	if err != nil {
		return "", false, err
	}
	name = r.names.name(b)
	if c, err = r.next(); err != nil {
		return "", false, err
	}
	if c != ':' {
		return "", false, r.syntax(c, "behind a member's name")
	}
	r.pos++
	return name, true, nil
}

// openArray reads an opening bracket, which is next, and tells whether an element is next. Without elements it reads
// the closing bracket.
func (r *reader) openArray() (more bool, err error) {
	c, err := r.open()
	if err != nil {
		return false, err
	}
	if c == ']' {
		r.close()
		return false, nil
	}
	return true, nil
}

// nextElement does behind an element what openArray does for the first.
func (r *reader) nextElement() (more bool, err error) {
	c, err := r.next()
	if err != nil {
		return false, err
	}
	switch c {
	case ']':
		r.close()
		return false, nil
	case ',':
		r.pos++
		return true, nil
	default:
		return false, r.syntax(c, "behind a list's element")
	}
}

// open reads an opening brace or bracket and tells what follows.
func (r *reader) open() (byte, error) {
	r.depth++
	if r.depth > maxDepth {
		return 0, fmt.Errorf("invalid JSON at byte %d: nested deeper than %d", r.offset(), maxDepth)
	}
	r.pos++
	return r.next()
}

// close reads a closing brace or bracket.
func (r *reader) close() {
	r.depth--
	r.pos++
}
