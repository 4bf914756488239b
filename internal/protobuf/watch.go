package protobuf

import (
	"bytes"
	"encoding/binary"
	"io"
)

// ReadFrame reads a frame of a watch into buf: four bytes with the length, and an event. It returns io.EOF itself at the end of the
// watch, and io.ErrUnexpectedEOF (errors.Is) within a frame. A frame longer than maxFrame bytes is the error exceeded. The result
// is valid until the next call with the same buf.
func ReadFrame(src io.Reader, buf *bytes.Buffer, maxFrame int64, exceeded error) ([]byte, error) {
	buf.Reset()
	if buf.Cap() > maxKept {
		*buf = bytes.Buffer{}
	}
	header := buf.AvailableBuffer()
	if cap(header) < 4 {
		buf.Grow(512)
		header = buf.AvailableBuffer()
	}
	header = header[:4]
	if _, err := io.ReadFull(src, header); err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(header))
	if size > maxFrame {
		return nil, exceeded
	}
	n, err := buf.ReadFrom(io.LimitReader(src, size))
	if err == nil && n < size {
		err = errInput
	}
	return buf.Bytes(), err
}

// Event splits a watch event into its type and its object. The object has an envelope, unless it is the metadata of a custom
// resource: see [HasEnvelope].
func Event(frame []byte) (eventType string, object []byte, err error) {
	for len(frame) > 0 {
		var f wireField
		if f, frame, err = nextField(frame); err != nil {
			return "", nil, err
		}
		switch {
		case f.number == 1 && f.wire == wireBytes:
			eventType = string(f.bytes)
		case f.number == 2 && f.wire == wireBytes:
			if object, err = rawJSON(f.bytes); err != nil {
				return "", nil, err
			}
		default:
			return "", nil, &UnknownFieldError{"meta/v1.WatchEvent", f.number, "is unknown"}
		}
	}
	return eventType, object, nil
}
