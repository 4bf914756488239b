package jsonread

import "fmt"

// Value reads any JSON value: nil, bool, int64, float64, string, []any or map[string]any.
func (r *Reader) Value() (any, error) {
	c, err := r.Peek()
	if err != nil {
		return nil, err
	}
	switch c {
	case '{', '[':
		if r.interner != nil {
			return r.internedValue(node{})
		}
		return r.decodeNode(node{})
	case '"':
		b, err := r.stringBytes(ValueCost)
		if err != nil {
			return nil, err
		}
		if r.left < 0 {
			return nil, r.exceeded
		}
		return r.values.Value(b), nil
	}
	if r.left -= ValueCost; r.left < 0 {
		return nil, r.exceeded
	}
	switch {
	case c == '-' || '0' <= c && c <= '9':
		return r.number()
	case c == 't':
		return true, r.Literal("true")
	case c == 'f':
		return false, r.Literal("false")
	case c == 'n':
		return nil, r.Literal("null")
	default:
		return nil, r.SyntaxError(c, "where a value should begin")
	}
}

// TopValue is Value for a list item or an event's object. An Interner compares the object with its previous version.
func (r *Reader) TopValue() (any, error) {
	c, err := r.Peek()
	r.objectStart = r.Offset()
	r.lookahead = 0
	switch {
	case err != nil || c != '{':
		return r.Value()
	case r.interner == nil:
		return r.object(node{})
	}
	r.interner.versions.begin()
	r.pinHere()
	defer r.unpin()
	return r.object(node{levels: objectLevels})
}

// decodeNode reads the object or list at n. Its opening brace or bracket is next.
func (r *Reader) decodeNode(n node) (any, error) {
	if r.buf[r.pos] == '{' {
		return r.object(n)
	}
	return r.list(n)
}

// Literal reads a word, such as null. Its first byte is next.
func (r *Reader) Literal(word string) error {
	for r.end-r.pos < len(word) {
		if err := r.fillInside(); err != nil {
			return err
		}
	}
	if got := r.buf[r.pos : r.pos+len(word)]; string(got) != word {
		return fmt.Errorf("invalid JSON at byte %d: %q is not %s", r.Offset(), got, word)
	}
	r.pos += len(word)
	return nil
}

// object reads an object. Its opening brace is next. n is its node, or zero. If a name occurs twice, the last member wins.
func (r *Reader) object(n node) (map[string]any, error) {
	base := len(r.members)
	name, more, err := r.OpenObject()
	for more {
		if r.interner != nil {
			r.interner.fieldName = name
		}
		var v any
		if n.levels > 0 {
			v, err = r.nodeMember(n, name)
		} else {
			v, err = r.Value()
		}
		if err != nil {
			return nil, err
		}
		r.members = append(r.members, member{name, v})
		name, more, err = r.NextMember()
	}
	if err != nil {
		return nil, err
	}
	read := r.members[base:]
	m := make(map[string]any, len(read))
	for i := range read {
		m[read[i].name] = read[i].value
	}
	if n.levels > 0 && len(m) < len(read) {
		r.interner.versions.hasDuplicate = true
	}
	clear(read)
	r.members = r.members[:base]
	return m, nil
}

// list reads a list. Its opening bracket is next. n is its node, or zero.
func (r *Reader) list(n node) ([]any, error) {
	base := len(r.elements)
	more, err := r.OpenList()
	for more {
		var v any
		if n.levels > 0 {
			v, err = r.nodeElement(n, len(r.elements)-base)
		} else {
			v, err = r.Value()
		}
		if err != nil {
			return nil, err
		}
		r.elements = append(r.elements, v)
		more, err = r.NextElement()
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

// OpenObject reads an object's opening brace and the first member's name and colon. The opening brace must be next. In an empty
// object it reads the closing brace instead, and more is false.
func (r *Reader) OpenObject() (name string, more bool, err error) {
	r.left -= ValueCost + ObjectCost
	c, err := r.open()
	if err != nil {
		return "", false, err
	}
	if c == '}' {
		r.close()
		return "", false, nil
	}
	r.left -= FirstMemberCost
	return r.memberName(c)
}

// NextMember reads the comma behind a member's value, and the next member's name and colon. At the end of the object it reads the
// closing brace instead, and more is false.
func (r *Reader) NextMember() (name string, more bool, err error) {
	c, err := r.Peek()
	if err != nil {
		return "", false, err
	}
	switch c {
	case '}':
		r.close()
		return "", false, nil
	case ',':
		r.pos++
		if c, err = r.Peek(); err != nil {
			return "", false, err
		}
		return r.memberName(c)
	default:
		return "", false, r.SyntaxError(c, "behind an object's member")
	}
}

func (r *Reader) memberName(c byte) (name string, more bool, err error) {
	if c != '"' {
		return "", false, r.SyntaxError(c, "where a member's name should begin")
	}
	b, err := r.stringBytes(MemberCost)
	if err != nil {
		return "", false, err
	}
	name = r.names.Name(b)
	if c, err = r.Peek(); err != nil {
		return "", false, err
	}
	if c != ':' {
		return "", false, r.SyntaxError(c, "behind a member's name")
	}
	r.pos++
	return name, true, nil
}

// OpenList reads a list's opening bracket and reports whether an element is next. The opening bracket must be next. In an empty
// list it reads the closing bracket, too.
func (r *Reader) OpenList() (more bool, err error) {
	r.left -= ValueCost + ListCost
	c, err := r.open()
	if err == nil && c == ']' {
		r.close()
		return false, nil
	}
	return err == nil, err
}

// NextElement reads the comma behind an element and reports whether an element is next. At the end of the list it reads the
// closing bracket instead.
func (r *Reader) NextElement() (more bool, err error) {
	c, err := r.Peek()
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
		return false, r.SyntaxError(c, "behind a list's element")
	}
}

// EachMember reads an object, whose opening brace must be next. It calls member for each member, to read the value. An error of member
// ends it.
func (r *Reader) EachMember(member func(name string) error) error {
	name, more, err := r.OpenObject()
	for more && err == nil {
		if err = member(name); err == nil {
			name, more, err = r.NextMember()
		}
	}
	return err
}

// EachElement reads a list, whose opening bracket must be next. It calls element for each element, to read it. An error of element
// ends it.
func (r *Reader) EachElement(element func() error) error {
	more, err := r.OpenList()
	for more && err == nil {
		if err = element(); err == nil {
			more, err = r.NextElement()
		}
	}
	return err
}

// open reads an opening brace or bracket and returns the following byte without consuming it.
func (r *Reader) open() (byte, error) {
	r.depth++
	if r.depth > MaxDepth {
		return 0, fmt.Errorf("invalid JSON at byte %d: nested deeper than %d", r.Offset(), MaxDepth)
	}
	if r.left < 0 {
		return 0, r.exceeded
	}
	r.pos++
	return r.Peek()
}

// close reads a closing brace or bracket.
func (r *Reader) close() {
	r.depth--
	r.pos++
}
