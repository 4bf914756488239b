package unstructured

import (
	"slices"
	"strconv"
)

// walk is what walk of the decoded object would be. It decodes only what it comes to in the end, or on the way what
// is no plain field or index: for these there is one walk.
func (l *Lazy) walk(fields []string) (any, bool, error) {
	at := 0
	for i, field := range fields {
		switch c := l.data[at]; {
		case c == '{' && i == 0:
			at = l.field(field)
		case c == '{' && at == l.at[metadataAt] && placeInMetadata(field) != nowhere:
			at = l.at[placeInMetadata(field)]
		case c == '{':
			at = memberAt(l.data, at, field)
		case c == '[' && isIndex(field):
			at = elementAt(l.data, at, field)
		case c == '[' && isSelector(field):
			at = l.elementWith(at, field)
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

// field is where the value of a field of the object begins; 0 if there is none.
func (l *Lazy) field(name string) int {
	if p := placeInObject(name); p != nowhere {
		return l.at[p]
	}
	return memberAt(l.data, 0, name)
}

// checkUnsplit is checkUnsplitIn.
func (l *Lazy) checkUnsplit(name string) error {
	if l.field(name) != 0 {
		return nil
	}
	return checkUnsplit(name, func(name string) bool {
		at := l.field(name)
		return at != 0 && (l.data[at] == '{' || l.data[at] == '[')
	})
}

// value decodes the value at an index.
func (l *Lazy) value(at int) (any, error) {
	r := borrowReader(l.data[at:])
	defer r.release()
	return r.value()
}

// elementWith is where the element that a by-key step selects begins, in the list at an index; 0 if there is none. No
// more of an element is decoded than the values of its keys.
func (l *Lazy) elementWith(i int, step string) int {
	keys, err := parseSelector(step)
	if err != nil {
		return 0
	}
	i = skipSpace(l.data, i+1)
	for l.data[i] != ']' {
		if l.data[i] == '{' && !slices.ContainsFunc(keys, func(k key) bool { return !l.hasKey(i, k) }) {
			return i
		}
		i = skipSpace(l.data, valueEnd(l.data, i))
		if l.data[i] == ',' {
			i = skipSpace(l.data, i+1)
		}
	}
	return 0
}

func (l *Lazy) hasKey(i int, k key) bool {
	at := memberAt(l.data, i, k.name)
	if at == 0 || l.data[at] == '{' || l.data[at] == '[' {
		return false
	}
	v, err := l.value(at)
	return err == nil && k.is(v)
}

// The functions below read JSON that has been checked.

// memberAt is where the value of the last member called name begins, in the object at index i; 0 if there is none.
func memberAt(b []byte, i int, name string) int {
	found := 0
	i = skipSpace(b, i+1)
	for b[i] != '}' {
		start := i + 1
		i, _ = textEnd(b, start)
		isIt := isName(b[start:i-1], name)
		i = skipSpace(b, skipSpace(b, i)+1) // the colon
		if isIt {
			found = i
		}
		i = skipSpace(b, valueEnd(b, i))
		if b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	return found
}

// isName reports whether the text between quotes means name. Text with escapes does not mean what it looks like.
func isName(raw []byte, name string) bool {
	if plainPrefix(raw) == len(raw) {
		return string(raw) == name
	}
	return string(unquote(nil, raw)) == name
}

// elementAt is where an element of the list at index i begins; 0 if it is past the end.
func elementAt(b []byte, i int, index string) int {
	n, err := strconv.Atoi(index)
	if err != nil {
		return 0
	}
	i = skipSpace(b, i+1)
	for ; b[i] != ']'; n-- {
		if n == 0 {
			return i
		}
		i = skipSpace(b, valueEnd(b, i))
		if b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	return 0
}

func skipSpace(b []byte, i int) int {
	for isSpace(b[i]) {
		i++
	}
	return i
}

// valueEnd is the index behind the value at index i, of which something follows.
func valueEnd(b []byte, i int) int {
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i, _ = textEnd(b, i+1)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\r', '\n':
			i++
			continue
		default:
			for b[i] != ',' && b[i] != '}' && b[i] != ']' && !isSpace(b[i]) {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}
