package jsonread

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

func (r *Reader) number() (any, error) {
	i := r.pos
	for {
		for i < r.end && isNumberByte(r.buf[i]) {
			i++
		}
		if i < r.end {
			break
		}
		start := r.pos
		if err := r.fillInside(); err != nil {
			return nil, err
		}
		i += r.pos - start
	}
	v, err := ParseNumber(r.buf[r.pos:i])
	if err != nil {
		return nil, fmt.Errorf("invalid JSON at byte %d: %w", r.Offset(), err)
	}
	r.pos = i
	return v, nil
}

func isNumberByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// ParseNumber parses a JSON number: an int64 if b is an integer in its range, otherwise a float64.
func ParseNumber(b []byte) (any, error) {
	isInteger, isNumber := checkNumber(b)
	if !isNumber {
		return nil, fmt.Errorf("%.40q is not a number", b)
	}
	if isInteger {
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

// checkNumber reports whether b is a JSON number, and whether it is an integer without fraction and exponent.
func checkNumber(b []byte) (isInteger, isNumber bool) {
	digits := bytes.TrimPrefix(b, []byte("-"))
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false, json.Valid(b)
		}
	}
	isInteger = len(digits) == 1 || len(digits) > 1 && digits[0] != '0'
	return isInteger, isInteger
}
