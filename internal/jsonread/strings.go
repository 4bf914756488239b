package jsonread

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// stringBytes reads and unquotes a string. Its opening quote is next. The bytes are valid until the next read. The charge is cost
// plus the length.
func (r *Reader) stringBytes(cost int64) ([]byte, error) {
	start := r.pos + 1
	i := start + PlainPrefix(r.buf[start:r.end])
	if i < r.end && r.buf[i] == '"' {
		r.pos = i + 1
		r.left -= cost + int64(i-start)
		return r.buf[start:i], nil
	}
	return r.stringBytesFrom(i, cost)
}

// stringBytesFrom is stringBytes for strings with special bytes and for strings beyond the buffer's end. The bytes before i are
// plain. Each invalid UTF-8 byte and each unpaired surrogate becomes U+FFFD.
func (r *Reader) stringBytesFrom(i int, cost int64) ([]byte, error) {
	end, result := stringEnd(r.buf[:r.end], i)
	for result == needsInput {
		quote := r.pos
		if err := r.fillInside(); err != nil {
			return nil, err
		}
		end, result = stringEnd(r.buf[:r.end], end+r.pos-quote)
	}
	if result == invalid {
		return nil, r.stringError(end)
	}
	raw := r.buf[r.pos+1 : end-1]
	r.pos = end
	r.left -= cost + int64(len(raw))
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return raw, nil
	}
	r.scratch = appendUnquoted(r.scratch[:0], raw)
	return r.scratch, nil
}

// stringError returns the error for a string with an invalid byte at index i.
func (r *Reader) stringError(i int) error {
	rest := r.buf[i:r.end]
	if rest[0] != '\\' {
		return fmt.Errorf("invalid JSON at byte %d: control character %q in a string", r.dropped+int64(i), rest[0])
	}
	length, _ := escapeLength(rest)
	return fmt.Errorf("invalid JSON at byte %d: escape sequence %q", r.dropped+int64(i), rest[:length])
}

// unescaped maps the byte behind a backslash to the escaped character. 0 stands for \u and invalid escapes.
var unescaped = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// appendUnquoted appends the decoded text of a JSON string to dst. raw is the text between the quotes. Its escape sequences must
// be valid.
func appendUnquoted(dst, raw []byte) []byte {
	for len(raw) > 0 {
		switch n := PlainPrefix(raw); {
		case n > 0:
			dst = append(dst, raw[:n]...)
			raw = raw[n:]
		case raw[0] != '\\':
			c, size := utf8.DecodeRune(raw)
			dst = utf8.AppendRune(dst, c)
			raw = raw[size:]
		case raw[1] != 'u':
			dst = append(dst, unescaped[raw[1]])
			raw = raw[2:]
		default:
			c, size := unquoteRune(raw)
			dst = utf8.AppendRune(dst, c)
			raw = raw[size:]
		}
	}
	return dst
}

// unquoteRune decodes the \u escape at the beginning of raw, or two escapes of a surrogate pair. size is their length.
func unquoteRune(raw []byte) (c rune, size int) {
	c = hex4(raw[2:])
	size = len(`\u0000`)
	if !utf16.IsSurrogate(c) {
		return c, size
	}
	if second := raw[size:]; len(second) >= size && second[0] == '\\' && second[1] == 'u' {
		if pair := utf16.DecodeRune(c, hex4(second[2:])); pair != utf8.RuneError {
			return pair, 2 * size
		}
	}
	return utf8.RuneError, size
}

// hex4 parses the first four digits of b as a hexadecimal number. It returns -1 for invalid digits.
func hex4(b []byte) rune {
	var n [2]byte
	if _, err := hex.Decode(n[:], b[:4]); err != nil {
		return -1
	}
	return rune(n[0])<<8 | rune(n[1])
}

func isStringByte(c byte) bool { return c >= ' ' && c != '"' && c != '\\' }

// ones and highs have the lowest and the highest bit of each byte set.
const ones, highs = 0x0101010101010101, 0x8080808080808080

// PlainPrefix counts the leading plain bytes of b: ASCII without control characters, quotes and backslashes. It checks eight
// bytes at a time. For a plain byte, no subtraction borrows or sets a high bit, so the lowest high bit marks the first special
// byte.
func PlainPrefix(b []byte) int {
	n := 0
	for ; len(b)-n >= 8; n += 8 {
		x := binary.LittleEndian.Uint64(b[n:])
		quote := x ^ (ones * '"')
		backslash := x ^ (ones * '\\')
		if odd := (x | (x - ones*' ') | (quote - ones) | (backslash - ones)) & highs; odd != 0 {
			return n + bits.TrailingZeros64(odd)/8
		}
	}
	for n < len(b) && b[n] < utf8.RuneSelf && isStringByte(b[n]) {
		n++
	}
	return n
}

// Unquote decodes the text between the quotes of a valid JSON string. It returns raw itself if all bytes are plain.
func Unquote(raw []byte) []byte {
	if PlainPrefix(raw) == len(raw) {
		return raw
	}
	return appendUnquoted(nil, raw)
}
