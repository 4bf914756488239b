package stream

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/anykind/anykind/stream/internal/portconn"
	"github.com/stretchr/testify/assert"
)

// FuzzLegacyChannels shows that whatever a server sends leads to bytes that it sent as data, and to no panic.
func FuzzLegacyChannels(f *testing.F) {
	f.Add([]byte("\x00P\x00"), []byte("\x00hello"), []byte("\x01P\x00refused"))
	f.Add([]byte(""), []byte("\x00P"), []byte("\x00\x00x"))
	f.Fuzz(func(t *testing.T, first, second, third []byte) {
		c := newLegacyConn(nil, portconn.Addr{Pod: "web-0", Port: 80}, nil)
		close(c.done)
		var data []byte
		for _, message := range [][]byte{first, second, third} {
			if err := c.handle(bytes.NewReader(message), make([]byte, 8)); err != nil {
				break
			}
			if message[0] == legacyData {
				data = append(data, message[1:]...)
			}
		}
		c.conn.EndData()
		c.conn.EndErrors()
		got, _ := io.ReadAll(c.conn)
		if len(data) >= 2 {
			assert.True(t, bytes.HasPrefix(got, bytes.TrimPrefix(data, binary.LittleEndian.AppendUint16(nil, 80))))
		}
	})
}
