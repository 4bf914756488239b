package discovery

import "github.com/anykind/anykind/internal/jsonread"

// valueReader reads the values of a discovery document. null is the zero value of every type.
type valueReader struct {
	reader   *jsonread.Reader
	interner *interner
}

// object reads an object or null. It calls member for each field, to read the value.
func (r *valueReader) object(member func(field string) error) error {
	if isNull, err := r.null(); isNull || err != nil {
		return err
	}
	if err := r.reader.ObjectStart(); err != nil {
		return err
	}
	return r.reader.EachMember(member)
}

// list reads a list or null. It calls element for each element, to read the element.
func (r *valueReader) list(element func() error) error {
	if isNull, err := r.null(); isNull || err != nil {
		return err
	}
	if err := r.reader.Expect('[', "where a list should begin"); err != nil {
		return err
	}
	return r.reader.EachElement(element)
}

// texts reads a list of strings. makeList makes the result from the interner's key. null is nil.
func (r *valueReader) texts(makeList func(*interner, int) []string) ([]string, error) {
	if isNull, err := r.null(); isNull || err != nil {
		return nil, err
	}
	n := 0
	r.interner.key = r.interner.key[:0]
	err := r.list(func() error {
		b, err := r.textBytes()
		r.interner.key = append(append(r.interner.key, b...), separator)
		n++
		return err
	})
	if err != nil {
		return nil, err
	}
	return makeList(r.interner, n), nil
}

// text reads a string. null is "".
func (r *valueReader) text() (string, error) {
	b, err := r.textBytes()
	if err != nil {
		return "", err
	}
	return r.interner.bytes(b), nil
}

func (r *valueReader) textBytes() ([]byte, error) {
	if isNull, err := r.null(); isNull || err != nil {
		return nil, err
	}
	return r.reader.StringBytes()
}

// boolean reads a boolean. null is false.
func (r *valueReader) boolean() (bool, error) {
	switch c, err := r.reader.Peek(); {
	case err != nil:
		return false, err
	case c == 't':
		return true, r.reader.Literal("true")
	case c == 'n':
		return false, r.reader.Literal("null")
	}
	return false, r.reader.Literal("false")
}

// null reads a null if it is next.
func (r *valueReader) null() (bool, error) {
	if c, err := r.reader.Peek(); err != nil || c != 'n' {
		return false, err
	}
	return true, r.reader.Literal("null")
}

// skip reads the value of an unused field.
func (r *valueReader) skip() error {
	_, _, err := r.reader.Skip()
	return err
}
