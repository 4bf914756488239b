package unstructured

import (
	"fmt"
	"strconv"
)

// number reads a number: an int64 if it has neither fraction nor exponent and fits, else a float64.
func (r *reader) number() (any, error) {
	i := r.pos
	for {
		for i < r.end && isNumberByte(r.buf[i]) {
			i++
		}
		if i < r.end {
			break
		}
		start := r.pos
		if err := r.need(); err != nil {
			return nil, err
		}
		i += r.pos - start
	}
	v, err := parseNumber(r.buf[r.pos:i])
	if err != nil {
		return nil, fmt.Errorf("invalid JSON at byte %d: %w", r.offset(), err)
	}
	r.pos = i
	return v, nil
}

func isNumberByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

func parseNumber(b []byte) (any, error) {
	digits, isNumber := integerDigits(b)
	if !isNumber {
		return nil, fmt.Errorf("%.40q is not a number", b)
	}
	// 18 digits always fit; longer ones are left to strconv.
	if len(digits) > 0 && len(digits) <= 18 {
		var n int64
		for _, c := range digits {
			n = n*10 + int64(c-'0')
		}
		if b[0] == '-' {
			n = -n
		}
		return n, nil
	}
	if len(digits) > 0 {
		if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
			return n, nil
		}
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return nil, fmt.Errorf("%.40q is too large a number", b)
	}
	return f, nil
}

// integerDigits tells whether b is a JSON number (https://www.rfc-editor.org/rfc/rfc8259#section-6) and, if it has
// neither fraction nor exponent, its digits.
func integerDigits(b []byte) (digits []byte, isNumber bool) {
	rest := b
	if len(rest) > 0 && rest[0] == '-' {
		rest = rest[1:]
	}
	n := countDigits(rest)
	if n == 0 || n > 1 && rest[0] == '0' {
		return nil, false
	}
	digits, rest = rest[:n], rest[n:]
	if len(rest) == 0 {
		return digits, true
	}
	if rest[0] == '.' {
		n = countDigits(rest[1:])
		if n == 0 {
			return nil, false
		}
		rest = rest[1+n:]
	}
	if len(rest) > 0 && (rest[0] == 'e' || rest[0] == 'E') {
		rest = rest[1:]
		if len(rest) > 0 && (rest[0] == '+' || rest[0] == '-') {
			rest = rest[1:]
		}
		n = countDigits(rest)
		if n == 0 {
			return nil, false
		}
		rest = rest[n:]
	}
	return nil, len(rest) == 0
}

func countDigits(b []byte) int {
	for i, c := range b {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(b)
}
