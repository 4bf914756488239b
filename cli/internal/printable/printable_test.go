package printable

import (
	"bytes"
	"io"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// cases maps texts to their form on a terminal.
var cases = map[string]string{
	"": "",
	"größer\t世界 👩‍👩‍👧 é\r\nnext\n": "größer\t世界 👩‍👩‍👧 é\r\nnext\n",
	"\x1b[31mred\x1b[0m":              "\ufffd[31mred\ufffd[0m",
	"\x1b]0;title\x07x":               "\ufffd]0;title\ufffdx",
	"\x1b]52;c;aGk=\x1b\\":            "\ufffd]52;c;aGk=\ufffd\\",
	"\u009b31m\u009d0;t\u009c":        "\ufffd31m\ufffd0;t\ufffd",
	"\x9b31m":                         "\ufffd31m",
	"abc\b\b\bxyz\x7f":                "abc\ufffd\ufffd\ufffdxyz\ufffd",
	"real\rfake":                      "real\ufffdfake",
	"a\u202egnp.exe\u2066":            "a\ufffdgnp.exe\ufffd",
	"\xe4\xb8":                        "\ufffd\ufffd",
	"cut\r":                           "cut\ufffd",
	"\xff\xfe\x00":                    "\ufffd\ufffd\ufffd",
	"\v\f\x0e\x0f \u0085":             "\ufffd\ufffd\ufffd\ufffd \ufffd",
	"right-to-left mark \u200f, شكرا": "right-to-left mark \u200f, شكرا",
}

func TestText_ReplacesControls(t *testing.T) {
	for text, want := range cases {
		assert.Equal(t, want, Text(text), "%q", text)
	}
}

func TestLine_HasNoBreaks(t *testing.T) {
	for text, want := range map[string]string{
		"a\nb":                "a b",
		"a\r\nb\r\n\n":        "a  b",
		"a\u2028b\u2029c\vd":  "a b c d",
		"a\u0085b\tc\x1b[2Jd": "a b\tc\ufffd[2Jd",
		"a\xff\nb":            "a\ufffd b",
		"ends with a space. ": "ends with a space. ",
	} {
		assert.Equal(t, want, Line(text), "%q", text)
	}
}

func TestLines_IndentsAfterFirst(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"one\n":                           "one",
		"denied: \n\nrule:\n  a: 'x'\n\n": "denied: \n\n  rule:\n    a: 'x'",
		"a\r\nerror: fake\r\n":            "a\n  error: fake",
		"a\n\n \n\r\n\n\tb\n\n\nc":        "a\n\n  \tb\n\n  c",
		"\n\nerror: fake":                 "\n  error: fake",
		"a\rb\u2028c\vd\n\x1b[2Je":        "a b c d\n  \ufffd[2Je",
	} {
		assert.Equal(t, want, Lines(text), "%q", text)
	}
}

func TestLineFor_TerminalOnly(t *testing.T) {
	assert.Equal(t, "a\nb", LineFor(new(bytes.Buffer), "a\nb"))
	assert.Equal(t, "a b", LineFor(&writer{}, "a\nb"))
	assert.Equal(t, "a b", LineFor(wrapper{wrapper{&writer{}}}, "a\nb"))
	assert.Equal(t, "a\nb", LineFor(wrapper{new(bytes.Buffer)}, "a\nb"))
}

type wrapper struct{ io.Writer }

func (w wrapper) Unwrap() io.Writer { return w.Writer }

func TestFlush_WritesRest(t *testing.T) {
	for text, want := range cases {
		var out bytes.Buffer
		w := &writer{out: &out}
		for range 2 {
			_, err := w.Write([]byte(text))
			assert.NoError(t, err)
			assert.NoError(t, Flush(w))
			assert.NoError(t, Flush(w))
			assert.Equal(t, want, out.String(), "%q", text)
			out.Reset()
		}
	}
	assert.NoError(t, Flush(new(bytes.Buffer)))
}

// A character split between two writes is written whole.
func TestWriter_AnyWrites(t *testing.T) {
	for text, want := range cases {
		for cut := range len(text) + 1 {
			var out bytes.Buffer
			w := &writer{out: &out}
			for _, part := range []string{text[:cut], text[cut:], "\n"} {
				n, err := w.Write([]byte(part))
				assert.NoError(t, err)
				assert.Equal(t, len(part), n)
			}
			if text == "cut\r" {
				want = "cut\r"
			}
			assert.Equal(t, want+"\n", out.String(), "%q, %d", text, cut)
		}
	}
}

func TestWriter_LeavesOtherWriters(t *testing.T) {
	var out bytes.Buffer
	assert.Same(t, &out, Writer(&out))
	assert.Same(t, &out, Unwrap(&out))
	w := &writer{out: &out}
	assert.Same(t, w, Writer(w))
	assert.Same(t, &out, Unwrap(w))
	assert.True(t, IsTerminal(w))
	assert.False(t, IsTerminal(&out))
}

func FuzzText(f *testing.F) {
	for text := range cases {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		clean := Text(text)
		assert.True(t, utf8.ValidString(clean))
		assert.Equal(t, clean, Text(clean))
		assert.Equal(t, utf8.RuneCountInString(text), utf8.RuneCountInString(clean))
		for i, r := range clean {
			assert.False(t, controls(r) && (r != '\r' || clean[i+1] != '\n'), "%q", clean)
		}
	})
}
