package stream

import "encoding/binary"

// spdyZlib begins the compressed headers of a connection: a zlib stream that says it was made with the dictionary of
// SPDY/3, by that one's checksum. All that follows is stored as it is and so never refers to the dictionary: the few
// headers of a port-forward are not worth a compressor of 600 KB a connection.
var spdyZlib = []byte{0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2}

// zlibFlush ends each block of headers: an empty stored block, at which decompressors hand out what they have.
var zlibFlush = []byte{0, 0, 0, 0xff, 0xff}

// spdyHeader is one header: its name in lower case, its value.
type spdyHeader struct{ name, value string }

// appendSPDYSynStream appends the frame that opens a stream. All such frames of a connection share one zlib stream,
// which begins with the first.
func appendSPDYSynStream(to []byte, stream uint32, first bool, headers ...spdyHeader) []byte {
	start := len(to)
	to = appendSPDYControl(to, spdySynStream, stream, 0)
	to = append(to, 0, 0) // the highest priority, and no slot
	if first {
		to = append(to, spdyZlib...)
	}
	to = append(to, 0) // a stored block, and not the last; its length follows, and that one's complement
	block := len(to)
	to = append(to, 0, 0, 0, 0)
	to = binary.BigEndian.AppendUint32(to, uint32(len(headers))) //nolint:gosec // three headers
	for _, header := range headers {
		for _, text := range []string{header.name, header.value} {
			to = binary.BigEndian.AppendUint32(to, uint32(len(text))) //nolint:gosec // a few letters
			to = append(to, text...)
		}
	}
	length := uint16(len(to) - block - 4) //nolint:gosec // a few dozen letters
	binary.LittleEndian.PutUint16(to[block:], length)
	binary.LittleEndian.PutUint16(to[block+2:], ^length)
	to = append(to, zlibFlush...)
	binary.BigEndian.PutUint32(to[start+4:], uint32(len(to)-start-spdyHeaderSize)) //nolint:gosec // below 64 KiB
	return to
}
