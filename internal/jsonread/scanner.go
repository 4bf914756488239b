package jsonread

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// scanner finds the end of an object without decoding it. It accepts the same JSON as a Reader and notes the offsets of common
// fields.
type scanner struct {
	state  scanState
	pos    int // of the next token
	resume int // where to continue within the token; 0 for its beginning
	depth  int
	limit  int                          // of depth
	cost   int64                        // memory of the scanned values, as charged by a Reader
	lists  [(MaxDepth + 63) / 64]uint64 // a bit for each level, set for a list

	next       Field // field of the next value
	inMetadata bool  // level 2 is the object's metadata
	offsets    FieldOffsets
}

type scanState int

const (
	expectValue scanState = iota
	expectFirstElement
	expectFirstName
	expectName
	expectColon
	expectComma // or the end
)

type scanResult int

const (
	scanned scanResult = iota
	needsInput
	invalid // decoding returns the error
)

func (s *scanner) reset(limit int) {
	s.state = expectValue
	s.pos = 0
	s.resume = 0
	s.depth = 0
	s.limit = limit
	s.cost = 0
	s.next = NoField
	s.inMetadata = false
	s.offsets = FieldOffsets{}
}

// scan continues in b. b begins with the object and may have grown since the last call. At the end of the object, pos is the
// index behind it.
func (s *scanner) scan(b []byte) scanResult {
	i := s.pos
	result := scanned
	for i < len(b) {
		c := b[i]
		if isSpace(c) {
			i++
			continue
		}
		s.pos = i
		switch s.state {
		case expectFirstName, expectName:
			if c == '}' && s.state == expectFirstName {
				s.cost -= FirstMemberCost
				i = s.leave(i)
				break
			}
			i, result = s.name(b, i, c)
		case expectColon:
			if c != ':' {
				return invalid
			}
			i++
			s.state = expectValue
		case expectFirstElement, expectValue:
			if c == ']' && s.state == expectFirstElement {
				i = s.leave(i)
				break
			}
			i, result = s.value(b, i, c)
		case expectComma:
			i, result = s.comma(i, c)
		}
		if result != scanned {
			return result
		}
		if s.depth == 0 {
			s.pos = i
			return scanned
		}
	}
	s.pos = i
	return needsInput
}

func (s *scanner) name(b []byte, i int, c byte) (int, scanResult) {
	if c != '"' {
		return i, invalid
	}
	end, result := s.str(b, i)
	if result != scanned {
		return i, result
	}
	s.cost += MemberCost + int64(end-i-len(`""`))
	if s.depth == 1 || s.inMetadata && s.depth == 2 {
		s.expectField(b[i+1 : end-1])
	}
	if end < len(b) && b[end] == ':' {
		s.state = expectValue
		return end + 1, scanned
	}
	s.state = expectColon
	return end, scanned
}

func (s *scanner) value(b []byte, i int, c byte) (int, scanResult) {
	if s.next != NoField {
		s.offsets.Set(s.next, i)
	}
	var result scanResult
	switch c {
	case '"':
		start := i
		if i, result = s.str(b, i); result == scanned {
			s.cost += int64(i - start - len(`""`))
		}
	case '{', '[':
		return s.enter(i, c)
	case 't':
		i, result = scanLiteral(b, i, "true")
	case 'f':
		i, result = scanLiteral(b, i, "false")
	case 'n':
		i, result = scanLiteral(b, i, "null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		i, result = s.number(b, i)
	default:
		return i, invalid
	}
	if result == scanned {
		s.next = NoField
		s.state = expectComma
		s.cost += ValueCost
	}
	return i, result
}

func (s *scanner) enter(i int, c byte) (int, scanResult) {
	if s.depth == s.limit {
		return i, invalid
	}
	bit := uint64(1) << (s.depth % 64)
	if c == '[' {
		s.lists[s.depth/64] |= bit
		s.state = expectFirstElement
		s.cost += ValueCost + ListCost
	} else {
		s.lists[s.depth/64] &^= bit
		s.state = expectFirstName
		s.cost += ValueCost + ObjectCost + FirstMemberCost // taken back for an empty object
	}
	s.depth++
	if s.depth == 2 {
		s.inMetadata = s.next == FieldMetadata
	}
	s.next = NoField
	return i + 1, scanned
}

func (s *scanner) leave(i int) int {
	s.depth--
	s.state = expectComma
	return i + 1
}

func (s *scanner) comma(i int, c byte) (int, scanResult) {
	inList := s.lists[(s.depth-1)/64]>>((s.depth-1)%64)&1 != 0
	switch {
	case c == ',' && inList:
		s.state = expectValue
		return i + 1, scanned
	case c == ',':
		s.state = expectName
		return i + 1, scanned
	case c == '}' && !inList, c == ']' && inList:
		return s.leave(i), scanned
	default:
		return i, invalid
	}
}

// str scans a string. Its opening quote is at index i.
func (s *scanner) str(b []byte, i int) (int, scanResult) {
	end, result := stringEnd(b, max(i+1, s.resume))
	s.resume = 0
	if result == needsInput {
		s.resume = end
	}
	return end, result
}

// RawObject reads an object without decoding it. Its opening brace must be next. RawObject returns the JSON, valid until the next
// read, and the offsets of common fields. A JSON length of 4 GiB or more is an error.
func (r *Reader) RawObject() ([]byte, FieldOffsets, error) {
	result, err := r.scanNext(math.MaxUint32)
	start := r.pos
	offset := r.Offset()
	switch {
	case result == scanned && r.scanner.cost > r.left:
		err = r.exceeded
	case err == nil && result == needsInput || int64(r.scanner.pos) > math.MaxUint32:
		err = fmt.Errorf("the object at byte %d is longer than 4 GiB", offset)
	case result == scanned:
		r.pos += r.scanner.pos
		r.left -= r.scanner.cost
		return r.buf[start:r.pos], r.scanner.offsets, nil
	case err == nil || err != r.exceeded:
		if _, decodeErr := r.object(node{}); decodeErr != nil {
			err = decodeErr // the limit may be exceeded before
		} else if err == nil {
			err = fmt.Errorf("cannot scan the object at byte %d", offset) // never: see FuzzLazy
		}
	}
	return nil, FieldOffsets{}, err
}

// Skip reads any value without decoding it. It returns the length of its JSON and an upper bound of the number of values in it.
// It counts no memory.
func (r *Reader) Skip() (length, values int64, err error) {
	c, err := r.Peek()
	if err != nil {
		return 0, 0, err
	}
	if c != '{' && c != '[' {
		start := r.Offset()
		left := r.left
		if c == '"' {
			_, err = r.stringBytes(0)
		} else {
			_, err = r.Value()
		}
		r.left = left
		return r.Offset() - start, 1, err
	}
	result, err := r.scanNext(math.MaxInt64)
	if err != nil {
		return 0, 0, err
	}
	if result == invalid {
		if _, err = r.decodeNode(node{}); err == nil {
			err = fmt.Errorf("cannot scan the value at byte %d", r.Offset()) // never: see FuzzLazy
		}
		return 0, 0, err
	}
	r.pos += r.scanner.pos
	return int64(r.scanner.pos), r.scanner.cost / ValueCost, nil
}

// scanAhead returns the JSON of the next object or list, valid until the next read. It returns nil for long or invalid JSON.
func (r *Reader) scanAhead() []byte {
	if result, _ := r.scanNext(maxInternedJSON); result != scanned {
		return nil
	}
	return r.buf[r.pos:][:r.scanner.pos]
}

// scanNext scans the next object or list. It reads input until the value ends or more than limit bytes of it are in memory.
func (r *Reader) scanNext(limit int64) (scanResult, error) {
	r.scanner.reset(MaxDepth - r.depth)
	for {
		result := r.scanner.scan(r.buf[r.pos:r.end])
		if result != needsInput || int64(r.end-r.pos) > limit {
			return result, nil
		}
		if err := r.fillInside(); err != nil {
			return result, err
		}
	}
}

// stringEnd continues to scan a string at index i, and returns the index behind its closing quote. If b ends first, it returns
// the index to continue from. It checks eight bytes at a time: the lowest borrow of a subtraction marks the first quote,
// backslash or control character.
func stringEnd(b []byte, i int) (int, scanResult) {
	for {
		for ; len(b)-i >= 8; i += 8 {
			x := binary.LittleEndian.Uint64(b[i:])
			quote := x ^ (ones * '"')
			backslash := x ^ (ones * '\\')
			if odd := ((x-ones*' ')&^x | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs; odd != 0 {
				i += bits.TrailingZeros64(odd) / 8
				break
			}
		}
		for i < len(b) && isStringByte(b[i]) {
			i++
		}
		switch {
		case i == len(b):
			return i, needsInput
		case b[i] == '"':
			return i + 1, scanned
		case b[i] != '\\':
			return i, invalid
		}
		length, result := escapeLength(b[i:])
		if result != scanned {
			return i, result
		}
		i += length
	}
}

// escapeLength returns the length of the escape sequence at the beginning of b, valid or not.
func escapeLength(b []byte) (int, scanResult) {
	length := 2
	if len(b) > 1 && b[1] == 'u' {
		length = len(`\u0000`)
	}
	switch {
	case len(b) < length:
		return length, needsInput
	case length == 2 && unescaped[b[1]] == 0, length > 2 && hex4(b[2:]) < 0:
		return length, invalid
	default:
		return length, scanned
	}
}

func scanLiteral(b []byte, i int, word string) (int, scanResult) {
	switch end := i + len(word); {
	case end > len(b):
		return i, needsInput
	case string(b[i:end]) != word:
		return i, invalid
	default:
		return end, scanned
	}
}

// maxSafeLen is a length in bytes: a shorter number without an exponent always fits into a float64.
const maxSafeLen = 300

func (s *scanner) number(b []byte, i int) (int, scanResult) {
	end := max(i, s.resume)
	for end < len(b) && isNumberByte(b[end]) {
		end++
	}
	s.resume = 0
	if end == len(b) {
		s.resume = end
		return i, needsInput
	}
	text := b[i:end]
	if _, isNumber := checkNumber(text); !isNumber {
		return i, invalid
	}
	if len(text) > maxSafeLen || bytes.ContainsAny(text, "eE") {
		if _, err := ParseNumber(text); err != nil {
			return i, invalid
		}
	}
	return end, scanned
}
