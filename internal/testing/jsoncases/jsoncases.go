// Package jsoncases has JSON edge cases, most of them invalid, for tests of decoders.
package jsoncases

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing/iotest"
)

// Values are values of a field, most of them invalid JSON.
var Values = map[string]string{
	"zero": "0", "minus zero": "-0", "minus zero as a fraction": "-0.0", "minus zero with an exponent": "-0e0",
	"one as a fraction": "1.0", "exponent": "1e3", "signed exponent": "1E+3", "small": "1e-3", "underflow": "1e-400",
	"overflow": "1e400", "minus overflow": "-1e400", "largest float": "1.7976931348623157e308",
	"overflow by rounding": "1.7976931348623159e308", "smallest float": "5e-324",
	"18 digits": "999999999999999999", "19 digits": "1000000000000000000",
	"largest int64": "9223372036854775807", "one more": "9223372036854775808",
	"smallest int64": "-9223372036854775808", "one less": "-9223372036854775809",
	"30 digits": "123456789012345678901234567890", "400 digits": strings.Repeat("9", 400),
	"largest int64 as a fraction": "9223372036854775807.0",
	"leading zero":                "01", "minus leading zero": "-01", "two zeros": "00", "point at the end": "1.", "point at the front": ".5",
	"plus": "+1", "two minuses": "--1", "only minus": "-", "no exponent": "1e", "signed no exponent": "1e+", "point and exponent": "1.e3",
	"two points": "1.2.3", "two exponents": "1e2e3", "minus inside": "1-2", "hex": "0x10", "underscore": "1_000",
	"number then letter": "1a", "NaN": "NaN", "infinity": "Infinity", "minus infinity": "-Infinity",

	"true": "true", "false": "false", "null": "null", "short literal": "tru", "long literal": "truee", "upper case": "True",
	"wrong literal": "nul1", "bare word": "abc", "single quotes": "'a'",

	"empty string": `""`, "invalid UTF-8": "\"a\xffb\"", "cut rune": "\"a\xe4\xb8\"", "overlong": "\"\xc0\xaf\"", "surrogate as UTF-8": "\"\xed\xa0\x80\"",
	"beyond Unicode": "\"\xf4\x90\x80\x80\"", "invalid UTF-8 and an escape": "\"\xff\\n\xfe\"", "real U+FFFD": "\"\uFFFD\"",
	"pair": `"\ud83e\udd8a"`, "lone high": `"\ud83e"`, "lone low": `"\udd8a"`, "high high": `"\ud83e\ud83e"`, "low high": `"\udd8a\ud83e"`,
	"high high low": `"\ud83e\ud83e\udd8a"`, "high then text": `"\ud83eA"`, "high then newline": `"\ud83e\n"`, "high then BMP": `"\ud83e\u0041"`,
	"high then cut": `"\ud83e\u"`, "high then raw": "\"\\ud83e\U0001F98A\"", "high at the end": `"a\ud83e"`, "upper case hex": `"\uD83E\uDD8A"`,
	"NUL escaped": `"\u0000"`, "NUL raw": "\"\x00\"", "newline raw": "\"a\nb\"", "tab raw": "\"a\tb\"", "unit separator raw": "\"\x1f\"", "delete raw": "\"\x7f\"",
	"control behind eight": "\"12345678\x01\"", "control behind rune": "\"é\x01\"", "escapes": `"\"\\\/\b\f\n\r\t"`,
	"unknown escape": `"\a"`, "escaped quote mark": `"\'"`, "hex escape": `"\x41"`, "upper case u": `"\U0041"`, "three digits": `"\u004"`, "no hex": `"\u00g0"`,
	"backslash at the end": `"\`, "escaped end": `"\"`, "line separators": "\"\u2028\u2029\\u2028\"", "BOM in a string": "\"\ufeff\"",
	"escaped null": `"\n\u006eull"`,

	"empty object": "{}", "empty list": "[]", "spaces": " \t\r\n{ \"a\" : [ 1 , 2 ] } ", "form feed": "\f1", "no-break space": "\u00a01", "vertical tab": "\v1",
	"comma at the end of a list": "[1,]", "comma at the end of an object": `{"a":1,}`, "two commas": "[1,,2]", "only comma": "[,]", "comma first": `{,"a":1}`,
	"no comma": "[1 2]", "no comma between members": `{"a":1 "b":2}`, "no colon": `{"a" 1}`, "two colons": `{"a"::1}`, "no value": `{"a":}`, "no name": `{:1}`,
	"number for a name": `{1:1}`, "null for a name": `{null:1}`, "bare name": `{a:1}`, "crossed": "[}", "crossed the other way": "{]", "comment": "/* */1",
	"same name twice": `{"a":1,"b":2,"a":{"c":3}}`, "same name, null last": `{"a":1,"a":null}`, "same name escaped": `{"a":1,"\u0061":2}`,
	"same name, objects do not merge": `{"a":{"b":1},"a":{"c":2}}`, "names made equal": "{\"\xff\":1,\"\xfe\":2}", "names differ by case": `{"a":1,"A":2}`,
	"empty name": `{"":1}`, "control in a name": "{\"a\x01\":1}", "lone surrogate in a name": `{"\ud800":1}`,

	"nested as deep as may be": Nested(9999), "nested too deep": Nested(10000), "nested objects": strings.Repeat(`{"a":`, 9999) + "1" + strings.Repeat("}", 9999),
	"nested objects too deep": strings.Repeat(`{"a":`, 10000) + "1" + strings.Repeat("}", 10000), "nested far too deep": strings.Repeat("[", 100000),
}

// Documents are whole inputs.
var Documents = map[string]string{
	"empty": "", "space": " \n", "null": "null", "true": "true", "number": "1", "string": `"a"`, "list": `[{"kind":"A"}]`, "empty object": "{}",
	"BOM": "\ufeff{\"kind\":\"A\"}", "UTF-16": "{\x00\"\x00k\x00", "space around": " \r\n\t{\"kind\":\"A\"}\t\n ", "NUL behind": "{\"kind\":\"A\"}\x00",
	"trailing text": `{"kind":"A"} x`, "two objects": `{"kind":"A"}{"kind":"A"}`, "trailing brace": `{"kind":"A"}}`, "trailing comma": `{"kind":"A"},`,
	"only kind": `{"kind":"A"}`, "no kind": `{"apiVersion":"v1"}`, "empty kind": `{"kind":""}`, "null kind": `{"kind":null}`, "number for a kind": `{"kind":1}`,
	"list for a kind": `{"kind":["A"]}`, "object for a kind": `{"kind":{}}`, "upper case kind": `{"Kind":"A"}`, "space for a kind": `{"kind":" "}`,
	"kind twice": `{"kind":"A","kind":"B"}`, "kind lost": `{"kind":"A","kind":""}`, "escaped kind": `{"\u006bind":"A"}`,
	"empty apiVersion": `{"kind":"A","apiVersion":""}`, "slash": `{"kind":"A","apiVersion":"/"}`, "group and no version": `{"kind":"A","apiVersion":"a/"}`,
	"version and no group": `{"kind":"A","apiVersion":"/v1"}`, "three parts": `{"kind":"A","apiVersion":"a/b/c"}`, "two slashes": `{"kind":"A","apiVersion":"a//c"}`,
	"number for an apiVersion": `{"kind":"A","apiVersion":1}`, "null apiVersion": `{"kind":"A","apiVersion":null}`, "list for an apiVersion": `{"kind":"A","apiVersion":["a/b/c"]}`,
	"wrong metadata": `{"kind":"A","metadata":[]}`, "wrong items": `{"kind":"A","items":{}}`, "null items": `{"kind":"A","items":null}`,
	"items": `{"kind":"AList","items":[{},null,{"kind":"B"}]}`,
}

// Nested returns depth nested lists.
func Nested(depth int) string {
	return strings.Repeat("[", depth) + strings.Repeat("]", depth)
}

// InObject returns an object of an unknown kind with value as a field.
func InObject(value string) []byte {
	return []byte(`{"apiVersion":"v1","kind":"Thing","value":` + value + `}`)
}

// Chunked returns readers of data with unusual chunk sizes.
func Chunked(data []byte) map[string]io.Reader {
	return map[string]io.Reader{
		"one byte at a time":  iotest.OneByteReader(bytes.NewReader(data)),
		"half of each read":   iotest.HalfReader(bytes.NewReader(data)),
		"data with the error": iotest.DataErrReader(bytes.NewReader(data)),
		"one byte, with EOF":  iotest.DataErrReader(iotest.OneByteReader(bytes.NewReader(data))),
		"random chunks":       &randomReader{data: data, random: rand.New(rand.NewPCG(1, uint64(len(data))))},
	}
}

// randomReader returns 0 to 16 bytes from each read, and io.EOF with or after the last bytes.
type randomReader struct {
	data   []byte
	random *rand.Rand
}

func (r *randomReader) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), r.random.IntN(17))], r.data)
	r.data = r.data[n:]
	if len(r.data) == 0 && r.random.IntN(2) == 0 {
		return n, io.EOF
	}
	return n, nil
}
