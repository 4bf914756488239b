package protobuf

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ListReader reads the items of a list from a body, in sequence. It holds one encoded item in memory.
type ListReader struct {
	src      *bufio.Reader
	part     io.LimitedReader // of src, reused for each read
	buf      bytes.Buffer     // the last part read
	maxPart  int64
	exceeded error

	hasHeader bool
	typeMeta  metav1.TypeMeta
	meta      metav1.ListMeta
	left      uint64 // bytes of the list not yet read
	err       error
}

const (
	listBuffer = 32 << 10
	// maxKept is the capacity of a buffer kept for the next item.
	maxKept = 16 * listBuffer
)

// NewListReader returns a reader of the list in src. A part of the body longer than maxPart bytes, such as an item, is the error
// exceeded.
func NewListReader(src io.Reader, maxPart int64, exceeded error) *ListReader {
	return &ListReader{src: bufio.NewReaderSize(src, listBuffer), maxPart: maxPart, exceeded: exceeded}
}

// Header reads the list's kind and apiVersion. Next calls it, too.
func (l *ListReader) Header() (metav1.TypeMeta, error) {
	if !l.hasHeader && l.err == nil {
		l.err = unexpectedEnd(l.readHeader())
		l.hasHeader = true
	}
	return l.typeMeta, l.err
}

// Meta returns the list's metadata read so far. It is final once Next has returned io.EOF. API servers send it before the items.
func (l *ListReader) Meta() metav1.ListMeta { return l.meta }

// Next returns the next encoded item, valid until the next call. After the last item it returns io.EOF itself. A body that ends
// early is io.ErrUnexpectedEOF (errors.Is), and a failing reader returns its own error. After an error Next returns the same error
// again.
func (l *ListReader) Next() ([]byte, error) {
	if _, err := l.Header(); err != nil {
		return nil, err
	}
	item, err := l.next()
	l.err = unexpectedEnd(err)
	return item, l.err
}

// errListEnds is the end of the list in its body. It is io.EOF for the caller, unlike the end of the body.
var errListEnds = errors.New("the list ends")

func unexpectedEnd(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return errInput
	case errors.Is(err, errListEnds):
		return io.EOF
	}
	return err
}

func (l *ListReader) readHeader() error {
	prefix, err := l.read(uint64(len(magic)))
	if err != nil {
		return err
	}
	if !bytes.Equal(prefix, magic) {
		return fmt.Errorf("invalid Protobuf: the body begins with %q, not %q", prefix, magic)
	}
	for {
		tag, size, err := l.readTag()
		switch {
		case err != nil:
			return err
		case tag == 2<<3|wireBytes:
			l.left = size
			return nil
		}
		content, err := l.read(size)
		if err != nil {
			return err
		}
		if tag == 1<<3|wireBytes {
			if l.typeMeta, err = decodeTypeMeta(content); err != nil {
				return err
			}
		}
	}
}

// readTag reads the tag and the length of length-delimited bytes.
func (l *ListReader) readTag() (tag, size uint64, err error) {
	if tag, err = l.readVarint(); err != nil {
		return 0, 0, err
	}
	if tag&7 != wireBytes {
		return 0, 0, &UnknownFieldError{"of a list", tag >> 3, "has an unexpected wire type"}
	}
	size, err = l.readVarint()
	return tag, size, err
}

func (l *ListReader) readVarint() (value uint64, err error) {
	for shift := 0; shift < 64; shift += 7 {
		b, err := l.src.ReadByte()
		if err != nil {
			return 0, err
		}
		l.left--
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return value, nil
		}
	}
	return 0, errVarint
}

// read reads a part of the body. The result is valid until the next call.
func (l *ListReader) read(size uint64) ([]byte, error) {
	if size > uint64(l.maxPart) { //nolint:gosec // not negative
		return nil, l.exceeded
	}
	l.buf.Reset()
	if l.buf.Cap() > maxKept {
		l.buf = bytes.Buffer{}
	}
	// The buffer grows as input arrives: a length alone allocates nothing.
	l.part = io.LimitedReader{R: l.src, N: int64(size)} //nolint:gosec // at most maxPart
	n, err := l.buf.ReadFrom(&l.part)
	if err == nil && n < int64(size) { //nolint:gosec // at most maxPart
		err = io.EOF
	}
	l.left -= uint64(n) //nolint:gosec // not negative
	return l.buf.Bytes(), err
}

func (l *ListReader) next() ([]byte, error) {
	if !strings.HasSuffix(l.typeMeta.Kind, "List") {
		return nil, fmt.Errorf("%.40q %.40q is not a list", l.typeMeta.APIVersion, l.typeMeta.Kind)
	}
	for l.left > 0 {
		before := l.left
		tag, size, err := l.readTag()
		if err != nil {
			return nil, err
		}
		if l.left > before || size > l.left { // the tag exceeds the list, or its content does
			return nil, errTruncated
		}
		content, err := l.read(size)
		if err != nil {
			return nil, err
		}
		switch tag >> 3 {
		case 1:
			l.meta = metav1.ListMeta{}
			if err := l.meta.Unmarshal(content); err != nil {
				return nil, fmt.Errorf("invalid Protobuf: metadata of the list: %w", err)
			}
		case 2:
			return content, nil
		default:
			return nil, &UnknownFieldError{"of " + l.typeMeta.Kind, tag >> 3, "is unknown"}
		}
	}
	return nil, l.readEnd()
}

// readEnd reads the envelope behind the list, to the end of the body.
func (l *ListReader) readEnd() error {
	for {
		if _, err := l.src.Peek(1); err == io.EOF {
			return errListEnds
		}
		_, size, err := l.readTag()
		if err != nil {
			return err
		}
		if _, err := l.read(size); err != nil {
			return err
		}
	}
}
