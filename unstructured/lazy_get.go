package unstructured

import (
	"slices"
	"strconv"

	"github.com/anykind/anykind/internal/jsonread"
)

// walk returns the same results as walk of the decoded object. It decodes only the value at the end of the path or, for an error,
// the value before the invalid step.
func (l *Lazy) walk(fields []string) (any, bool, error) {
	if l.isProtobuf() {
		return l.walkProtobuf(fields)
	}
	at := 0
	for i, field := range fields {
		switch c := l.data[at]; {
		case c == '{':
			at = l.member(at, field)
		case c == '[' && isIndex(field):
			at = l.element(at, field)
		case c == '[' && isSelector(field):
			at = l.selectElement(at, field)
		default:
			v, err := l.value(at)
			if err != nil {
				return nil, false, err
			}
			return walk(v, fields, i)
		}
		if at == 0 || l.data[at] == 'n' {
			return nil, false, nil
		}
	}
	v, err := l.value(at)
	return v, err == nil, err
}

// member returns the index of a member's value in the object at index i, or 0 if the member is missing.
func (l *Lazy) member(i int, name string) int {
	f := jsonread.NoField
	switch i {
	case 0:
		f = jsonread.ObjectField(name)
	case l.offsets.Index(jsonread.FieldMetadata):
		f = jsonread.MetadataField(name)
	}
	if f != jsonread.NoField {
		return l.offsets.Index(f)
	}
	return jsonread.Member(l.data, i, name)
}

func (l *Lazy) value(at int) (any, error) {
	r := jsonread.Borrow(l.data[at:])
	defer r.Release()
	return r.Value()
}

// element returns the index of an element of the list at index i, or 0 past the end.
func (l *Lazy) element(i int, index string) int {
	n, err := strconv.Atoi(index)
	if err != nil {
		return 0
	}
	for at := range jsonread.Elements(l.data, i) {
		if n--; n < 0 {
			return at
		}
	}
	return 0
}

// selectElement returns the index of the first element selected by a by-key step in the list at index i, or 0 if no element
// matches. It decodes only the keys' values.
func (l *Lazy) selectElement(i int, step string) int {
	keys, _ := parseSelector(step) // isSelector has parsed it
	for at := range jsonread.Elements(l.data, i) {
		if l.data[at] == '{' && !slices.ContainsFunc(keys, func(k key) bool { return !l.hasKey(at, k) }) {
			return at
		}
	}
	return 0
}

func (l *Lazy) hasKey(i int, k key) bool {
	at := jsonread.Member(l.data, i, k.name)
	if at == 0 || l.data[at] == '{' || l.data[at] == '[' {
		return false
	}
	v, err := l.value(at)
	return err == nil && k.matches(v)
}
