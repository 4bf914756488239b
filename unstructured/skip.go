package unstructured

import "fmt"

// A skipper finds the end of an object without making anything of it, and accepts exactly what a reader does. It
// notes where the object's fields of general interest are. Where the input ends it remembers how far it came, so that
// no byte is looked at twice however the input comes.
type skipper struct {
	state skipState
	pos   int // of the next token
	seen  int // where to go on in it, if that is not its beginning
	depth int
	limit int                          // of depth
	lists [(maxDepth + 63) / 64]uint64 // a bit for each level: whether it is a list

	next       place // which place the next value is
	inMetadata bool  // level 2 is the object's metadata
	at         places
}

type skipState int

const (
	atValue skipState = iota
	atFirstElement
	atFirstName
	atName
	atColon
	behindValue
)

// skipResult is what came of skipping.
type skipResult int

const (
	skipped   skipResult = iota
	needsMore            // input
	isOdd                // a reader refuses it, and says why
)

func (s *skipper) reset(limit int) {
	s.state, s.pos, s.seen, s.depth, s.limit = atValue, 0, 0, 0, limit
	s.next, s.inMetadata, s.at = nowhere, false, places{}
}

// skip goes on in b, which begins with the object and may have grown since the last call. Once it is skipped, pos is
// behind it.
func (s *skipper) skip(b []byte) skipResult {
	i, result := s.pos, skipped
	for i < len(b) {
		c := b[i]
		if isSpace(c) {
			i++
			continue
		}
		s.pos = i
		switch s.state {
		case atFirstName, atName:
			if c == '}' && s.state == atFirstName {
				i = s.leave(i)
				break
			}
			i, result = s.name(b, i, c)
		case atColon:
			if c != ':' {
				return isOdd
			}
			i++
			s.state = atValue
		case atFirstElement, atValue:
			if c == ']' && s.state == atFirstElement {
				i = s.leave(i)
				break
			}
			i, result = s.value(b, i, c)
		case behindValue:
			i, result = s.behind(i, c)
		}
		if result != skipped {
			return result
		}
		if s.depth == 0 {
			s.pos = i
			return skipped
		}
	}
	s.pos = i
	return needsMore
}

func (s *skipper) name(b []byte, i int, c byte) (int, skipResult) {
	if c != '"' {
		return i, isOdd
	}
	end, result := s.text(b, i)
	if result != skipped {
		return i, result
	}
	if s.depth == 1 || s.inMetadata && s.depth == 2 {
		s.note(b[i+1 : end-1])
	}
	if end < len(b) && b[end] == ':' {
		s.state = atValue
		return end + 1, skipped
	}
	s.state = atColon
	return end, skipped
}

func (s *skipper) value(b []byte, i int, c byte) (int, skipResult) {
	if s.next != nowhere {
		s.at[s.next] = i
	}
	var result skipResult
	switch c {
	case '"':
		i, result = s.text(b, i)
	case '{', '[':
		return s.enter(i, c)
	case 't':
		i, result = skipLiteral(b, i, "true")
	case 'f':
		i, result = skipLiteral(b, i, "false")
	case 'n':
		i, result = skipLiteral(b, i, "null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		i, result = s.number(b, i)
	default:
		return i, isOdd
	}
	if result == skipped {
		s.next, s.state = nowhere, behindValue
	}
	return i, result
}

func (s *skipper) enter(i int, c byte) (int, skipResult) {
	if s.depth == s.limit {
		return i, isOdd
	}
	bit := uint64(1) << (s.depth % 64)
	if c == '[' {
		s.lists[s.depth/64] |= bit
		s.state = atFirstElement
	} else {
		s.lists[s.depth/64] &^= bit
		s.state = atFirstName
	}
	s.depth++
	if s.depth == 2 {
		s.inMetadata = s.next == metadataAt && c == '{'
	}
	s.next = nowhere
	return i + 1, skipped
}

func (s *skipper) leave(i int) int {
	s.depth--
	s.state = behindValue
	return i + 1
}

func (s *skipper) behind(i int, c byte) (int, skipResult) {
	inList := s.lists[(s.depth-1)/64]>>((s.depth-1)%64)&1 != 0
	switch {
	case c == ',' && inList:
		s.state = atValue
		return i + 1, skipped
	case c == ',':
		s.state = atName
		return i + 1, skipped
	case c == '}' && !inList, c == ']' && inList:
		return s.leave(i), skipped
	default:
		return i, isOdd
	}
}

// text skips the string whose opening quote is at index i.
func (s *skipper) text(b []byte, i int) (int, skipResult) {
	end, result := textEnd(b, max(i+1, s.seen))
	s.seen = 0
	if result == needsMore {
		s.seen = end
	}
	return end, result
}

// skipObject reads an object, whose opening brace is next. Its data are the window's: good until the next read.
func (r *reader) skipObject() (Lazy, error) {
	s := &r.skipper
	s.reset(maxDepth - r.depth)
	for {
		switch s.skip(r.buf[r.pos:r.end]) {
		case skipped:
			start := r.pos
			r.pos += s.pos
			return Lazy{data: r.buf[start:r.pos], at: s.at}, nil
		case needsMore:
			if err := r.need(); err != nil {
				return Lazy{}, err
			}
		case isOdd:
			start := r.offset()
			if _, err := r.object(); err != nil {
				return Lazy{}, err
			}
			return Lazy{}, fmt.Errorf("cannot skip the object at byte %d", start) // never: see FuzzLazy
		}
	}
}
