package sanitize

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestText_OneLineOfPrintableText(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", `container "web" not found: größer`, `container "web" not found: größer`},
		{"empty", "", ""},
		{"white space only", " \n\t", ""},
		{"line breaks", "\none\r\n\ttwo\u2028three\u0085four \n", "one two three four"},
		{"colors", "\x1b[1;31mred\x1b[0m and\x1b[2J gone", "red and gone"},
		{"a sequence without an end", "red\x1b[1;31", "red"},
		{"a malformed sequence", "a\x1b[1\nb", "a b"},
		{"a window title", "\x1b]0;owned\x07x", "\ufffd]0;owned\ufffdx"},
		{"C1 controls", "a\u009b31mb", "a\ufffd31mb"},
		{"bidirectional override", "a\u202egnp.exe", "a\ufffdgnp.exe"},
		{"a run of controls", "a\x00\x01\x02b", "a\ufffdb"},
		{"invalid UTF-8", "a\xff\xfeb", "a\ufffdb"},
		{"carriage return", "true\rfalse", "true false"},
	} {
		assert.Equal(t, c.want, Text(c.in, 100), c.name)
	}
}

func TestText_AtMostLimit(t *testing.T) {
	assert.Equal(t, "12345", Text("12345", 5))
	assert.Equal(t, "12…", Text("123456", 5))
	assert.Equal(t, "ä…", Text("äöü!", 6), "cut between characters")
	assert.Equal(t, "1…", Text("1 3456", 5), "no space before the ellipsis")
	assert.Equal(t, "…", Text("12345", 3))
	for _, none := range []int{-1, 0, 1, 2} {
		assert.Empty(t, Text("12345", none))
	}
	assert.Len(t, Text(strings.Repeat("x", 1<<20), 64), 64)
}

func FuzzText(f *testing.F) {
	f.Add("\x1b[1;31mred\x1b[0m\n\xff", 9)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		text := Text(s, limit)
		assert.LessOrEqual(t, len(text), max(0, limit))
		assert.True(t, utf8.ValidString(text))
		assert.Equal(t, strings.TrimSpace(text), text)
		for _, r := range text {
			assert.True(t, unicode.IsPrint(r), "%q", r)
		}
		assert.Equal(t, text, Text(text, limit), "a second time changes nothing")
	})
}

func TestJoin_AtMostLimit(t *testing.T) {
	assert.Equal(t, "a, b", Join([]string{"a", "b"}, 2))
	assert.Equal(t, "a, b and 2 more", Join([]string{"a", "b", "c", "d"}, 2))
	assert.Empty(t, Join(nil, 2))
}
