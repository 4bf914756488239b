package jsonread

import "iter"

// The functions of this file find values in JSON that has been checked. Indexes are those of first bytes; 0 is none.

// Member returns the index of the value of the last member of that name in the object at index i.
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

// MemberRange returns the range of the first member of that name in the object at index i, with the comma behind it or, of
// the last member, the one before it. Without the range it is still an object.
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

// nextItem returns the index of what follows the member or element whose value is at index i, and its comma.
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

// RawString returns the bytes between the quotes of the string at index i; nil if there is no string.
func RawString(b []byte, i int) []byte {
	if i == 0 || b[i] != '"' {
		return nil
	}
	end, _ := stringEnd(b, i+1)
	return b[i+1 : end-1]
}

// ValueEnd returns the index behind the value at index i, of which something follows.
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
