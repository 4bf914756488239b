package spdy

import "encoding/binary"

// zlibHeader begins the compressed headers of a session: a zlib stream that names, by its checksum, the dictionary of
// SPDY/3. All that follows are stored blocks, which never refer to the dictionary: the few headers of port-forwarding are
// not worth a compressor of 600 KB for each session.
var zlibHeader = []byte{0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2}

// zlibFlush ends each block of headers: an empty stored block, at which a decompressor returns what it has.
var zlibFlush = []byte{0, 0, 0, 0xff, 0xff}

// header is one header; its name is in lower case.
type header struct{ name, value string }

// appendSynStream appends the frame that opens a stream. All such frames of a session share one zlib stream, which begins
// with the first.
func appendSynStream(to []byte, stream uint32, first bool, headers ...header) []byte {
	start := len(to)
	to = appendControl(to, typeSynStream, stream, 0)
	to = append(to, 0, 0) // the highest priority, and no slot
	if first {
		to = append(to, zlibHeader...)
	}
	to = append(to, 0) // a stored block, not the last; its length follows, and the complement of that
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
