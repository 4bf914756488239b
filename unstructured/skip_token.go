package unstructured

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// textEnd is the index behind the closing quote of a string that goes on at index i. Where b ends first, it is the
// index to go on from. Of eight bytes at a time the first that may end the string is the lowest at which a
// subtraction borrows.
func textEnd(b []byte, i int) (int, skipResult) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for {
		for ; len(b)-i >= 8; i += 8 {
			x := binary.LittleEndian.Uint64(b[i:])
			quote, backslash := x^(ones*'"'), x^(ones*'\\')
			if odd := ((x-ones*' ')&^x | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs; odd != 0 {
				i += bits.TrailingZeros64(odd) / 8
				break
			}
		}
		for i < len(b) && isTextByte(b[i]) {
			i++
		}
		switch {
		case i == len(b):
			return i, needsMore
		case b[i] == '"':
			return i + 1, skipped
		case b[i] != '\\':
			return i, isOdd
		}
		length, result := escapeLength(b[i:])
		if result != skipped {
			return i, result
		}
		i += length
	}
}

// escapeLength is the length of the escape sequence that b begins with.
func escapeLength(b []byte) (int, skipResult) {
	length := 2
	if len(b) > 1 && b[1] == 'u' {
		length = len(`\u0000`)
	}
	switch {
	case len(b) < length:
		return 0, needsMore
	case length == 2 && unescaped[b[1]] == 0, length > 2 && hex4(b[2:]) < 0:
		return 0, isOdd
	default:
		return length, skipped
	}
}

func skipLiteral(b []byte, i int, word string) (int, skipResult) {
	switch end := i + len(word); {
	case end > len(b):
		return i, needsMore
	case string(b[i:end]) != word:
		return i, isOdd
	default:
		return end, skipped
	}
}

// noOverflow is how many characters of a number without an exponent always fit into a float64.
const noOverflow = 300

func (s *skipper) number(b []byte, i int) (int, skipResult) {
	end := max(i, s.seen)
	for end < len(b) && isNumberByte(b[end]) {
		end++
	}
	s.seen = 0
	if end == len(b) {
		s.seen = end
		return i, needsMore
	}
	text := b[i:end]
	digits, isNumber := integerDigits(text)
	if !isNumber {
		return i, isOdd
	}
	if len(text) > noOverflow || digits == nil && bytes.ContainsAny(text, "eE") {
		if _, err := parseNumber(text); err != nil {
			return i, isOdd
		}
	}
	return end, skipped
}
