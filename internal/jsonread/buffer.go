package jsonread

import (
	"fmt"
	"io"
)

// buffer is the part of the input in memory. Over a []byte it is the whole input. Over an io.Reader it moves along. It grows for
// a token or pinned bytes longer than the buffer, and up to maxLen for fast input.
type buffer struct {
	buf     []byte // over a []byte the caller's slice, read-only
	pos     int    // next byte to read
	end     int    // length of the input in buf
	dropped int64  // bytes of input before buf[0]
	src     io.Reader
	srcErr  error // last error of src, reported after the bytes returned with it
	pinned  bool  // the bytes from index pin on are kept
	pin     int
	full    bool // the last read filled buf: more input may be ready
	maxLen  int  // limit of growth after full reads, for fewer and larger reads

	maxHeld  int64 // maximum length of the input kept for a token or raw object
	exceeded error // error beyond maxHeld
}

const (
	maxEmptyReads = 100      // "0 bytes, no error" in a row before a reader counts as broken, as in bufio
	maxChunksKept = 16       // chunks: Shrink replaces a larger buf
	maxPinned     = 32 << 10 // bytes
)

// Offset returns the offset of the next byte in the whole input.
func (b *buffer) Offset() int64 { return b.dropped + int64(b.pos) }

// Size returns the size of the buffer, in bytes.
func (b *buffer) Size() int { return len(b.buf) }

// Buffered skips white space in the buffer and returns the number of bytes behind it.
func (b *buffer) Buffered() int {
	for b.pos < b.end && isSpace(b.buf[b.pos]) {
		b.pos++
	}
	return b.end - b.pos
}

// GrowTo lets the buffer grow to size bytes while input arrives faster than it is read.
func (b *buffer) GrowTo(size int) { b.maxLen = size }

// fill reads more input once. It keeps pinned bytes and the bytes from pos on; pos may become a different index of the same byte.
// It returns the source's own error, and io.EOF at the end.
func (b *buffer) fill() error {
	if b.src == nil {
		return io.EOF
	}
	if b.srcErr != nil {
		return b.srcErr
	}
	keep := b.pos
	if b.pinned = b.pinned && b.end-b.pin <= maxPinned; b.pinned {
		keep = b.pin
	}
	if keep > 0 { // otherwise each read would copy a long token onto itself
		b.end = copy(b.buf, b.buf[keep:b.end])
		b.pos -= keep
		b.pin -= keep
		b.dropped += int64(keep)
	}
	if int64(b.end) > b.maxHeld { // nothing could be dropped
		return b.exceeded
	}
	if b.end == len(b.buf) || b.full && len(b.buf) < b.maxLen {
		larger := make([]byte, 2*len(b.buf))
		copy(larger, b.buf)
		b.buf = larger
	}
	for range maxEmptyReads {
		n, err := b.src.Read(b.buf[b.end:])
		b.end += n
		b.full = b.end == len(b.buf)
		b.srcErr = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	b.srcErr = io.ErrNoProgress
	return b.srcErr
}

// fillInside is fill within a value: the end of the input is an error.
func (b *buffer) fillInside() error {
	err := b.fill()
	switch err {
	case nil, b.exceeded:
		return err
	case io.EOF:
		return fmt.Errorf("JSON input ends early, after byte %d: %w", b.dropped+int64(b.end), io.ErrUnexpectedEOF)
	default:
		return fmt.Errorf("reading JSON after byte %d: %w", b.dropped+int64(b.end), err)
	}
}

// shrink replaces a buffer larger than kept bytes by a buffer of chunk bytes.
func (b *buffer) shrink(chunk, kept int) {
	if rest := b.buf[b.pos:b.end]; len(b.buf) > kept && len(rest) <= chunk {
		b.dropped += int64(b.pos)
		b.buf = make([]byte, chunk)
		b.pos = 0
		b.end = copy(b.buf, rest)
	}
}

// pinHere keeps the bytes from pos on in memory, until unpin or up to maxPinned bytes.
func (b *buffer) pinHere() {
	b.pinned = true
	b.pin = b.pos
}
func (b *buffer) unpin() { b.pinned = false }

// PeekStart skips white space and returns the next byte without consuming it; io.EOF at the end of the input.
func (b *buffer) PeekStart() (byte, error) { return b.peek((*buffer).fill) }

// Peek is PeekStart within a value: the end of the input is an error.
func (b *buffer) Peek() (byte, error) {
	if b.pos < b.end && b.buf[b.pos] > ' ' {
		return b.buf[b.pos], nil
	}
	return b.peek((*buffer).fillInside)
}

func (b *buffer) peek(fill func(*buffer) error) (byte, error) {
	for {
		for ; b.pos < b.end; b.pos++ {
			if c := b.buf[b.pos]; !isSpace(c) {
				return c, nil
			}
		}
		if err := fill(b); err != nil {
			return 0, err
		}
	}
}

func isSpace(c byte) bool { return c <= ' ' && (c == ' ' || c == '\n' || c == '\t' || c == '\r') }

// Expect returns an error unless c is the next byte after white space. It does not consume c.
func (b *buffer) Expect(c byte, where string) error {
	next, err := b.Peek()
	if err == nil && next != c {
		err = b.SyntaxError(next, where)
	}
	return err
}

// SyntaxError returns the error for a misplaced byte.
func (b *buffer) SyntaxError(c byte, where string) error {
	return fmt.Errorf("invalid JSON at byte %d: %q %s", b.Offset(), c, where)
}
