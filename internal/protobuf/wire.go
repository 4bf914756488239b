package protobuf

import (
	"encoding/binary"
	"fmt"
)

// Wire types.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// wireField is an encoded field: bytes of wireBytes, and value of the remaining wire types.
type wireField struct {
	number uint64
	wire   uint8
	value  uint64
	bytes  []byte
}

// nextField splits data into its first field and the rest.
func nextField(data []byte) (f wireField, rest []byte, err error) {
	tag, data, err := varint(data)
	if err != nil {
		return f, nil, err
	}
	f.number = tag >> 3
	f.wire = uint8(tag & 7)
	switch f.wire {
	case wireVarint:
		f.value, data, err = varint(data)
	case wireBytes:
		f.bytes, data, err = delimited(data)
	case wireFixed64:
		if len(data) < 8 {
			return f, nil, errTruncated
		}
		f.value = binary.LittleEndian.Uint64(data)
		data = data[8:]
	case wireFixed32:
		if len(data) < 4 {
			return f, nil, errTruncated
		}
		f.value = uint64(binary.LittleEndian.Uint32(data))
		data = data[4:]
	default:
		err = fmt.Errorf("invalid Protobuf: wire type %d", f.wire)
	}
	return f, data, err
}

// varint splits data into its first varint and the rest.
func varint(data []byte) (value uint64, rest []byte, err error) {
	if len(data) > 0 && data[0] < 0x80 {
		return uint64(data[0]), data[1:], nil
	}
	value, n := binary.Uvarint(data)
	switch {
	case n == 0:
		return 0, nil, errTruncated
	case n < 0:
		return 0, nil, errVarint
	}
	return value, data[n:], nil
}

// delimited splits data into its first length-delimited bytes and the rest.
func delimited(data []byte) (content, rest []byte, err error) {
	size, data, err := varint(data)
	if err != nil {
		return nil, nil, err
	}
	if size > uint64(len(data)) {
		return nil, nil, errTruncated
	}
	return data[:size:size], data[size:], nil
}
