package spdy

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAppendSynStream_Bytes(t *testing.T) {
	first := appendSynStream(nil, 1, true, header{"port", "80"})
	assert.Equal(t, "\x80\x03\x00\x01\x00\x00\x00\x2c"+ // SYN_STREAM of SPDY/3, 44 bytes
		"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"+ // stream 1, with no other, priority 0, slot 0
		"\x78\xbb\xe3\xc6\xa7\xc2"+ // zlib with the dictionary of SPDY/3
		"\x00\x12\x00\xed\xff"+ // 18 bytes, stored
		"\x00\x00\x00\x01\x00\x00\x00\x04port\x00\x00\x00\x0280"+
		"\x00\x00\x00\xff\xff", string(first)) // flushed
	next := appendSynStream([]byte("before"), 3, false, header{"port", "80"})
	want := strings.NewReplacer("\x78\xbb\xe3\xc6\xa7\xc2", "", "\x00\x00\x00\x2c", "\x00\x00\x00\x26",
		"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00", "\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00").Replace(string(first))
	assert.Equal(t, "before"+want, string(next))
}

func TestFrameReader_Malformed(t *testing.T) {
	for name, c := range map[string]struct{ bytes, want string }{
		"nothing":           {"", "EOF"},
		"half a header":     {"\x00\x00\x00", "unexpected EOF"},
		"stream 0":          {"\x00\x00\x00\x00\x00\x00\x00\x01x", "on stream 0"},
		"another version":   {"\x80\x02\x00\x06\x00\x00\x00\x04\x00\x00\x00\x01", "version 2"},
		"a short reset":     {"\x80\x03\x00\x03\x00\x00\x00\x04\x00\x00\x00\x01", "too few"},
		"half of a reset":   {"\x80\x03\x00\x03\x00\x00\x00\x08\x00\x00\x00\x01", "unexpected EOF"},
		"a reset cut short": {"\x80\x03\x00\x03\x00\x00\x00\x08", "unexpected EOF"},
		"a short GOAWAY":    {"\x80\x03\x00\x07\x00\x00\x00\x04\x00\x00\x00\x01", "too few"},
	} {
		_, err := (&frameReader{in: strings.NewReader(c.bytes)}).next()
		require.ErrorContains(t, err, c.want, name)
		assert.Equal(t, c.want == "EOF", err == io.EOF, name) //nolint:errorlint // itself
	}
}
