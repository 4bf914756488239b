package stream

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The part of SPDY/3.1 that nodes speak: https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1. There is
// no flow control in it, for neither the API server nor the runtimes on nodes know of WINDOW_UPDATE.

// The types of control frames. Data frames have none; they are spdyData here.
const (
	spdyData      = 0
	spdySynStream = 1
	spdySynReply  = 2
	spdyRstStream = 3
	spdyPing      = 6
	spdyGoAway    = 7
)

const (
	spdyFlagFin     = 1 // the sender sends nothing after this on the stream
	spdyHeaderSize  = 8
	spdyControlBit  = 1 << 31
	spdyVersion     = 3
	spdyCancel      = 5 // RST_STREAM: the stream is no longer needed
	spdyRefused     = 3 // RST_STREAM: the stream was never wanted
	spdyMaxLength   = 1<<24 - 1
	spdyMaxStreamID = 1<<31 - 1
)

// spdyFrame is a frame's header, and of its payload what this side looks at.
type spdyFrame struct {
	kind   uint16 // spdyData, spdySynReply …
	flags  byte
	stream uint32 // or a ping's number
	code   uint32 // of RST_STREAM
	length int    // how much of the payload is still to be read
}

// readSPDYFrame reads a frame's header, and the payload as far as it has a fixed form: what is left of it, a data
// frame's data or headers that nobody needs, is the caller's to read or to discard. io.EOF itself is an end between
// two frames.
func readSPDYFrame(from io.Reader) (spdyFrame, error) {
	var header [spdyHeaderSize]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return spdyFrame{}, err
	}
	first, second := binary.BigEndian.Uint32(header[:]), binary.BigEndian.Uint32(header[4:])
	frame := spdyFrame{stream: first, flags: byte(second >> 24), length: int(second & spdyMaxLength)}
	if first&spdyControlBit == 0 {
		if frame.stream == 0 {
			return spdyFrame{}, fmt.Errorf("the SPDY peer sent data on no stream")
		}
		return frame, nil
	}
	if version := first >> 16 & 0x7fff; version != spdyVersion {
		return spdyFrame{}, fmt.Errorf("the SPDY peer speaks version %d, not %d", version, spdyVersion)
	}
	frame.kind, frame.stream = uint16(first), 0 //nolint:gosec // the lower half
	return frame, frame.readFixed(from)
}

// readFixed reads what a control frame of a kind that matters begins with.
func (f *spdyFrame) readFixed(from io.Reader) error {
	fixed := map[uint16]int{spdySynStream: 4, spdySynReply: 4, spdyRstStream: 8, spdyPing: 4}[f.kind]
	if f.length < fixed {
		return fmt.Errorf("the SPDY peer sent a frame of type %d with %d bytes, too few", f.kind, f.length)
	}
	var payload [8]byte
	if _, err := io.ReadFull(from, payload[:fixed]); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	f.length -= fixed
	f.stream = binary.BigEndian.Uint32(payload[:])
	f.code = binary.BigEndian.Uint32(payload[4:])
	if f.kind != spdyPing {
		f.stream &= spdyMaxStreamID
	}
	return nil
}

// appendSPDYData appends a data frame.
func appendSPDYData(to []byte, stream uint32, flags byte, data []byte) []byte {
	to = binary.BigEndian.AppendUint32(to, stream)
	to = binary.BigEndian.AppendUint32(to, uint32(flags)<<24|uint32(len(data))) //nolint:gosec // at most a message
	return append(to, data...)
}

// appendSPDYControl appends a control frame without flags.
func appendSPDYControl(to []byte, kind uint16, payload ...uint32) []byte {
	to = binary.BigEndian.AppendUint32(to, spdyControlBit|spdyVersion<<16|uint32(kind))
	to = binary.BigEndian.AppendUint32(to, uint32(4*len(payload))) //nolint:gosec // at most two words
	for _, word := range payload {
		to = binary.BigEndian.AppendUint32(to, word)
	}
	return to
}
