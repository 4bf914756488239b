package unstructured

import (
	"fmt"
	"io"
)

// A window is the part of the input that is in memory. Over a []byte it is all of it; over an io.Reader it slides
// on, and grows only while one token is longer than it.
type window struct {
	buf    []byte // over a []byte the caller's own, never written to
	pos    int    // next byte to read
	end    int    // bytes of buf that hold input
	before int64  // bytes of input that lay before buf[0]
	src    io.Reader
	srcErr error // what src said last; reported once the bytes it came with are used up
	held   bool  // what stands from index from on stays
	from   int
	full   bool // the last read filled buf, so that there may be more
	most   int  // bytes that buf may grow to because it was full, so that reading more at once saves reads
}

// maxEmptyReads is how often a reader may answer "0 bytes, no error" before it counts as broken, as in bufio.
const maxEmptyReads = 100

// offset is where in the whole input the next byte stands.
func (w *window) offset() int64 { return w.before + int64(w.pos) }

// fill reads more input, once, and keeps what stands from pos on, or what is held: pos may be another index of the same
// byte then. It fails with the reader's own error, io.EOF at the end.
func (w *window) fill() error {
	if w.src == nil {
		return io.EOF
	}
	if w.srcErr != nil {
		return w.srcErr
	}
	keep := w.pos
	if w.held = w.held && w.end-w.from <= longestHeld; w.held {
		keep = w.from
	}
	if keep > 0 { // else a long token would be copied with every chunk that it comes in
		w.end = copy(w.buf, w.buf[keep:w.end])
		w.pos -= keep
		w.from -= keep
		w.before += int64(keep)
	}
	if w.end == len(w.buf) || w.full && len(w.buf) < w.most {
		larger := make([]byte, 2*len(w.buf))
		copy(larger, w.buf)
		w.buf = larger
	}
	for range maxEmptyReads {
		n, err := w.src.Read(w.buf[w.end:])
		w.end += n
		w.full = w.end == len(w.buf)
		w.srcErr = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	w.srcErr = io.ErrNoProgress
	return w.srcErr
}

// keptChunks is how many chunks a buffer may grow to and still be kept for the next object.
const keptChunks = 16

// shrink goes back to a buffer of one chunk when a large object is read.
func (w *window) shrink(chunk int) {
	if rest := w.buf[w.pos:w.end]; len(w.buf) > keptChunks*chunk && len(rest) <= chunk {
		w.before += int64(w.pos)
		w.buf = make([]byte, chunk)
		w.pos, w.end = 0, copy(w.buf, rest)
	}
}

// hold keeps what comes from pos on, until that is too long, or letGo.
func (w *window) hold()  { w.held, w.from = true, w.pos }
func (w *window) letGo() { w.held = false }

// longestHeld is how much is held, in bytes.
const longestHeld = 32 << 10

// need is fill inside a value, where the input must not end.
func (w *window) need() error {
	err := w.fill()
	switch err {
	case nil:
		return nil
	case io.EOF:
		return fmt.Errorf("JSON input ends early, after byte %d: %w", w.before+int64(w.end), io.ErrUnexpectedEOF)
	default:
		return fmt.Errorf("reading JSON after byte %d: %w", w.before+int64(w.end), err)
	}
}

// peek skips white space and tells the next byte without consuming it. Its error is fill's.
func (w *window) peek() (byte, error) {
	for {
		for ; w.pos < w.end; w.pos++ {
			if c := w.buf[w.pos]; !isSpace(c) {
				return c, nil
			}
		}
		if err := w.fill(); err != nil {
			return 0, err
		}
	}
}

// next is peek inside a value, where the input must not end.
func (w *window) next() (byte, error) {
	if w.pos < w.end && w.buf[w.pos] > ' ' {
		return w.buf[w.pos], nil
	}
	return w.nextBehindSpace()
}

func (w *window) nextBehindSpace() (byte, error) {
	for {
		for ; w.pos < w.end; w.pos++ {
			if c := w.buf[w.pos]; !isSpace(c) {
				return c, nil
			}
		}
		if err := w.need(); err != nil {
			return 0, err
		}
	}
}

func isSpace(c byte) bool { return c <= ' ' && (c == ' ' || c == '\n' || c == '\t' || c == '\r') }

// syntax is the error for a byte that may not stand where it does.
func (w *window) syntax(c byte, where string) error {
	return fmt.Errorf("invalid JSON at byte %d: %q %s", w.offset(), c, where)
}
