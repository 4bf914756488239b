package spdy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Types of control frames. Data frames have no type; typeData is an internal value for them.
const (
	typeData      = 0
	typeSynStream = 1
	typeSynReply  = 2
	typeRstStream = 3
	typePing      = 6
	typeGoAway    = 7
)

const (
	flagFin      = 1 // the sender sends nothing more on the stream
	headerSize   = 8
	controlBit   = 1 << 31
	version      = 3
	statusReject = 3 // RST_STREAM: the stream was refused before processing
	statusCancel = 5 // RST_STREAM: the stream is no longer needed
	maxLength    = 1<<24 - 1
	maxStreamID  = 1<<31 - 1
)

// MaxData limits the data frames of this side: with the headers of SPDY and WebSocket, a full data frame fills two TLS records.
const MaxData = 32<<10 - 1 - headerSize

// frame is a frame's header and the fixed part of its payload.
type frame struct {
	kind   uint16 // typeData, typeSynReply …
	flags  byte
	stream uint32 // or the number of a ping, or the last stream of GOAWAY
	status uint32 // of RST_STREAM and GOAWAY
	length int    // unread bytes of the payload
}

type frameReader struct {
	in     io.Reader
	buffer [headerSize]byte
}

// next reads a frame's header and the fixed part of its payload. The caller reads or discards the rest: data, or unused headers.
// io.EOF itself is an end between two frames.
func (r *frameReader) next() (frame, error) {
	if _, err := io.ReadFull(r.in, r.buffer[:]); err != nil {
		return frame{}, err
	}
	first := binary.BigEndian.Uint32(r.buffer[:])
	second := binary.BigEndian.Uint32(r.buffer[4:])
	f := frame{stream: first, flags: byte(second >> 24), length: int(second & maxLength)}
	if first&controlBit == 0 {
		if f.stream == 0 {
			return frame{}, errors.New("SPDY: the node sent data on stream 0")
		}
		return f, nil
	}
	if v := first >> 16 & 0x7fff; v != version {
		return frame{}, fmt.Errorf("SPDY: the node sent a frame of version %d, not %d", v, version)
	}
	f.kind = uint16(first)
	f.stream = 0 //nolint:gosec // the lower half
	return f, r.fixed(&f)
}

// fixed reads the fixed part of a control frame's payload.
func (r *frameReader) fixed(f *frame) error {
	size := 0
	switch f.kind {
	case typeSynStream, typeSynReply, typePing:
		size = 4
	case typeRstStream, typeGoAway:
		size = 8
	}
	if f.length < size {
		return fmt.Errorf("SPDY: the node sent a frame of type %d with %d bytes, too few", f.kind, f.length)
	}
	clear(r.buffer[:])
	if _, err := io.ReadFull(r.in, r.buffer[:size]); err == io.EOF {
		return io.ErrUnexpectedEOF
	} else if err != nil {
		return err
	}
	f.length -= size
	f.stream = binary.BigEndian.Uint32(r.buffer[:])
	f.status = binary.BigEndian.Uint32(r.buffer[4:])
	if f.kind != typePing {
		f.stream &= maxStreamID
	}
	return nil
}

func appendData(to []byte, stream uint32, flags byte, data []byte) []byte {
	to = binary.BigEndian.AppendUint32(to, stream)
	to = binary.BigEndian.AppendUint32(to, uint32(flags)<<24|uint32(len(data))) //nolint:gosec // at most MaxData
	return append(to, data...)
}

// appendControl appends a control frame without flags.
func appendControl(to []byte, kind uint16, payload ...uint32) []byte {
	to = binary.BigEndian.AppendUint32(to, controlBit|version<<16|uint32(kind))
	to = binary.BigEndian.AppendUint32(to, uint32(4*len(payload))) //nolint:gosec // at most two words
	for _, word := range payload {
		to = binary.BigEndian.AppendUint32(to, word)
	}
	return to
}

// zlibHeader begins the compressed headers of a session: a zlib stream with the checksum of SPDY/3's dictionary. Only stored
// blocks follow, without the dictionary: the few headers of port-forwarding do not justify a compressor of 600 KB for each
// session.
var zlibHeader = []byte{0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2}

// zlibFlush ends each block of headers: at an empty stored block, a decompressor returns its output so far.
var zlibFlush = []byte{0, 0, 0, 0xff, 0xff}

// header is a name, in lower case, and its value.
type header struct{ name, value string }

// appendSynStream appends the frame for opening a stream. All such frames of a session share a zlib stream. It begins with the
// first frame.
func appendSynStream(to []byte, stream uint32, first bool, headers ...header) []byte {
	start := len(to)
	to = appendControl(to, typeSynStream, stream, 0)
	to = append(to, 0, 0) // the highest priority, and no slot
	if first {
		to = append(to, zlibHeader...)
	}
	to = append(to, 0) // a stored block, not the last; its length and the length's complement follow
	block := len(to)
	to = append(to, 0, 0, 0, 0)
	to = binary.BigEndian.AppendUint32(to, uint32(len(headers))) //nolint:gosec // three headers
	for _, h := range headers {
		for _, text := range []string{h.name, h.value} {
			to = binary.BigEndian.AppendUint32(to, uint32(len(text))) //nolint:gosec // a few letters
			to = append(to, text...)
		}
	}
	length := uint16(len(to) - block - 4) //nolint:gosec // a few dozen letters
	binary.LittleEndian.PutUint16(to[block:], length)
	binary.LittleEndian.PutUint16(to[block+2:], ^length)
	to = append(to, zlibFlush...)
	binary.BigEndian.PutUint32(to[start+4:], uint32(len(to)-start-headerSize)) //nolint:gosec // below 64 KiB
	return to
}
