package print

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// jsonFormat writes JSON like json.MarshalIndent with four spaces, but from decoded values and without copies.
type jsonFormat struct{ encoder jsonEncoder }

func (f *jsonFormat) object(w io.Writer, object map[string]any) error {
	return f.write(w, 0, object, "\n")
}

func (f *jsonFormat) list(w io.Writer, objects func(yield func(map[string]any) bool)) error {
	next := "{\n    \"apiVersion\": \"v1\",\n    \"items\": ["
	empty := true
	for object := range objects {
		f.encoder.buffer = append(f.encoder.buffer[:0], next...)
		f.encoder.buffer = append(f.encoder.buffer, "\n        "...)
		f.encoder.value(object, 2)
		if err := f.flush(w); err != nil {
			return err
		}
		next = ","
		empty = false
	}
	end := "\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n"
	if empty {
		end = next + end[len("\n    "):]
	}
	_, err := io.WriteString(w, end)
	return err
}

// line writes a value without line breaks.
func (f *jsonFormat) line(w io.Writer, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

func (f *jsonFormat) write(w io.Writer, depth int, value any, end string) error {
	f.encoder.buffer = f.encoder.buffer[:0]
	f.encoder.value(value, depth)
	f.encoder.buffer = append(f.encoder.buffer, end...)
	return f.flush(w)
}

func (f *jsonFormat) flush(w io.Writer) error {
	if err := f.encoder.err; err != nil {
		return err
	}
	_, err := w.Write(f.encoder.buffer)
	return err
}

// jsonEncoder appends JSON to its buffer.
type jsonEncoder struct {
	buffer []byte
	// keys is a stack: the sorted keys of each open map.
	keys []string
	err  error
}

func (e *jsonEncoder) value(value any, depth int) {
	switch value := value.(type) {
	case nil:
		e.buffer = append(e.buffer, "null"...)
	case bool:
		e.buffer = strconv.AppendBool(e.buffer, value)
	case string:
		e.string(value)
	case int64:
		e.buffer = strconv.AppendInt(e.buffer, value, 10)
	case int:
		e.buffer = strconv.AppendInt(e.buffer, int64(value), 10)
	case float64:
		e.float(value)
	case map[string]any:
		e.object(value, depth)
	case []any:
		e.array(value, depth)
	default:
		e.err = fmt.Errorf("encode JSON: %T is no JSON value", value)
	}
}

func (e *jsonEncoder) object(object map[string]any, depth int) {
	if len(object) == 0 {
		e.buffer = append(e.buffer, "{}"...)
		return
	}
	start := len(e.keys)
	for key := range object {
		e.keys = append(e.keys, key)
	}
	end := len(e.keys)
	slices.Sort(e.keys[start:end])
	for i := start; i < end; i++ {
		e.separator('{', i == start, depth+1)
		e.string(e.keys[i])
		e.buffer = append(e.buffer, ": "...)
		e.value(object[e.keys[i]], depth+1)
	}
	e.keys = e.keys[:start]
	e.newline(depth)
	e.buffer = append(e.buffer, '}')
}

func (e *jsonEncoder) array(array []any, depth int) {
	if len(array) == 0 {
		e.buffer = append(e.buffer, "[]"...)
		return
	}
	for i, value := range array {
		e.separator('[', i == 0, depth+1)
		e.value(value, depth+1)
	}
	e.newline(depth)
	e.buffer = append(e.buffer, ']')
}

func (e *jsonEncoder) separator(open byte, first bool, depth int) {
	if first {
		e.buffer = append(e.buffer, open)
	} else {
		e.buffer = append(e.buffer, ',')
	}
	e.newline(depth)
}

func (e *jsonEncoder) newline(depth int) {
	e.buffer = append(e.buffer, '\n')
	for range depth {
		e.buffer = append(e.buffer, "    "...)
	}
}

func (e *jsonEncoder) float(value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		e.err = fmt.Errorf("encode JSON: %v is no JSON number", value)
		return
	}
	data, err := json.Marshal(value)
	if err != nil {
		e.err = err
	}
	e.buffer = append(e.buffer, data...)
}

// string appends text with the escapes of encoding/json, including HTML's special characters.
func (e *jsonEncoder) string(text string) {
	e.buffer = append(e.buffer, '"')
	done := 0
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' {
				i++
				continue
			}
			e.buffer = append(e.buffer, text[done:i]...)
			e.escape(c)
			i++
			done = i
			continue
		}
		char, size := utf8.DecodeRuneInString(text[i:])
		if char == utf8.RuneError && size == 1 || char == '\u2028' || char == '\u2029' {
			e.buffer = append(e.buffer, text[done:i]...)
			e.buffer = fmt.Appendf(e.buffer, `\u%04x`, char)
			done = i + size
		}
		i += size
	}
	e.buffer = append(e.buffer, text[done:]...)
	e.buffer = append(e.buffer, '"')
}

func (e *jsonEncoder) escape(c byte) {
	switch c {
	case '"', '\\':
		e.buffer = append(e.buffer, '\\', c)
	case '\n':
		e.buffer = append(e.buffer, `\n`...)
	case '\r':
		e.buffer = append(e.buffer, `\r`...)
	case '\t':
		e.buffer = append(e.buffer, `\t`...)
	case '\b':
		e.buffer = append(e.buffer, `\b`...)
	case '\f':
		e.buffer = append(e.buffer, `\f`...)
	default:
		const digits = "0123456789abcdef"
		e.buffer = append(e.buffer, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
	}
}
