package jsonread

import "iter"

// The functions of this file find values in valid JSON. An index is the position of a value's first byte. Index 0 means none.

// Member returns the index of a member's value in the object at index i. If the name occurs twice, the last member wins.
func Member(b []byte, i int, name string) int {
	found := 0
	i = skipSpace(b, i+1)
	for b[i] != '}' {
		start := i + 1
		i, _ = stringEnd(b, start)
		isIt := string(Unquote(b[start:i-1])) == name
		i = skipSpace(b, skipSpace(b, i)+1) // the colon
		if isIt {
			found = i
		}
		i = nextItem(b, i)
	}
	return found
}

// MemberRange returns the range of a member in the object at index i. If the name occurs twice, it is the first member's. The
// range includes the comma behind the member, or the comma before the last member. The object remains valid without the range.
func MemberRange(b []byte, i int, name string) (start, end int, found bool) {
	previous := i + 1 // the end of the member before
	for next := skipSpace(b, i+1); b[next] != '}'; {
		start = next
		nameEnd, _ := stringEnd(b, start+1)
		end = ValueEnd(b, skipSpace(b, skipSpace(b, nameEnd)+1))
		next = skipSpace(b, end)
		isLast := b[next] == '}'
		if !isLast {
			next = skipSpace(b, next+1)
		}
		switch {
		case string(Unquote(b[start+1:nameEnd-1])) != name:
			previous = end
		case isLast:
			return previous, end, true
		default:
			return start, next, true
		}
	}
	return 0, 0, false
}

// Elements iterates over the indexes of the elements of the list at index i.
func Elements(b []byte, i int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := skipSpace(b, i+1); b[i] != ']'; i = nextItem(b, i) {
			if !yield(i) {
				return
			}
		}
	}
}

// nextItem returns the index behind a member or element and its comma. Its value is at index i.
func nextItem(b []byte, i int) int {
	if i = skipSpace(b, ValueEnd(b, i)); b[i] == ',' {
		i = skipSpace(b, i+1)
	}
	return i
}

func skipSpace(b []byte, i int) int {
	for isSpace(b[i]) {
		i++
	}
	return i
}

// RawString returns the bytes between the quotes of the string at index i. It returns nil if the value is no string.
func RawString(b []byte, i int) []byte {
	if i == 0 || b[i] != '"' {
		return nil
	}
	end, _ := stringEnd(b, i+1)
	return b[i+1 : end-1]
}

// ValueEnd returns the index behind the value at index i. The value must not be the end of b.
func ValueEnd(b []byte, i int) int {
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i, _ = stringEnd(b, i+1)
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
