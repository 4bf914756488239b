package protobuf

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"math/bits"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/jsonread"
)

// AppendJSON appends the JSON form of an object to dst, with kind and apiVersion. The object must have passed [Decoder.Check]: its
// memory and depth are not limited here.
func (m *Message) AppendJSON(dst, raw []byte, t metav1.TypeMeta) ([]byte, error) {
	w := jsonWriter{buf: dst}
	err := w.object(m, raw, t)
	return w.buf, err
}

// jsonWriter writes encoded messages as JSON.
type jsonWriter struct {
	buf     []byte
	scratch []byte
}

func (w *jsonWriter) object(m *Message, data []byte, t metav1.TypeMeta) error {
	w.buf = append(w.buf, '{')
	if t.Kind != "" {
		w.buf = append(w.buf, `"kind":`...)
		w.text([]byte(t.Kind))
		w.buf = append(w.buf, ',')
	}
	if t.APIVersion != "" {
		w.buf = append(w.buf, `"apiVersion":`...)
		w.text([]byte(t.APIVersion))
		w.buf = append(w.buf, ',')
	}
	if err := w.fields(m.parsed(), data); err != nil {
		return err
	}
	w.end('}')
	return nil
}

// end replaces the comma behind the last member or item by the closing brace or bracket.
func (w *jsonWriter) end(closing byte) {
	if last := len(w.buf) - 1; w.buf[last] == ',' {
		w.buf[last] = closing
		return
	}
	w.buf = append(w.buf, closing)
}

// fields writes a message's fields as members, each with a comma behind it.
func (w *jsonWriter) fields(m *Message, data []byte) error {
	var seen uint64
	for len(data) > 0 {
		tag, rest, err := varint(data)
		if err != nil {
			return err
		}
		f, err := m.field(tag, &seen)
		if err != nil {
			return err
		}
		switch f.shape {
		case '[':
			data, err = w.list(f, tag, rest)
		case '{':
			data, err = w.entries(m, f, tag, rest)
		default:
			data, err = w.single(f, rest)
		}
		if err != nil {
			return err
		}
	}
	for absent := m.alwaysPresent &^ seen; absent != 0; absent &= absent - 1 {
		if err := w.absent(&m.fields[bits.TrailingZeros64(absent)]); err != nil {
			return err
		}
	}
	return nil
}

func (w *jsonWriter) single(f *field, data []byte) (rest []byte, err error) {
	number, content, rest, err := f.content(data)
	if err != nil {
		return nil, err
	}
	switch {
	case f.name == inlined:
		return rest, w.fields(f.message.parsed(), content)
	case f.presence == 'z' && f.isOmitted(number, content):
		return rest, nil
	}
	w.buf = append(w.buf, f.quoted...)
	return rest, w.value(f, number, content)
}

func (w *jsonWriter) list(f *field, tag uint64, data []byte) (rest []byte, err error) {
	w.buf = append(w.buf, f.quoted...)
	w.buf = append(w.buf, '[')
	for found := true; found; data, found = nextItem(rest, tag) {
		number, content, after, err := f.content(data)
		if err != nil {
			return nil, err
		}
		if err := w.value(f, number, content); err != nil {
			return nil, err
		}
		rest = after
	}
	w.end(']')
	w.buf = append(w.buf, ',')
	return rest, nil
}

func (w *jsonWriter) entries(m *Message, f *field, tag uint64, data []byte) (rest []byte, err error) {
	w.buf = append(w.buf, f.quoted...)
	w.buf = append(w.buf, '{')
	for found := true; found; data, found = nextItem(rest, tag) {
		var entry []byte
		if entry, rest, err = delimited(data); err != nil {
			return nil, err
		}
		key, content, err := splitEntry(m, f, entry)
		if err != nil {
			return nil, err
		}
		w.text(key)
		w.buf = append(w.buf, ':')
		if err := w.value(f, 0, content); err != nil {
			return nil, err
		}
	}
	w.end('}')
	w.buf = append(w.buf, ',')
	return rest, nil
}

func (w *jsonWriter) absent(f *field) error {
	switch {
	case f.presence == 'n':
		w.buf = append(w.buf, f.quoted...)
		w.buf = append(w.buf, "null,"...)
		return nil
	case f.name == inlined:
		return w.fields(f.message.parsed(), nil)
	default:
		w.buf = append(w.buf, f.quoted...)
		return w.value(f, 0, nil)
	}
}

// value writes a value with a comma behind it.
func (w *jsonWriter) value(f *field, number uint64, content []byte) (err error) {
	switch f.form {
	case 's':
		w.text(content)
	case 'm':
		err = w.object(f.message, content, f.typeMeta)
	case 'b':
		w.buf = strconv.AppendBool(w.buf, number != 0)
	case 'i':
		w.buf = strconv.AppendInt(w.buf, int64(int32(number)), 10) //nolint:gosec // like the generated code
	case 'l':
		w.buf = strconv.AppendInt(w.buf, int64(number), 10) //nolint:gosec // like the generated code
	case 'f':
		w.buf, err = appendFloat(w.buf, math.Float64frombits(number))
	case 'y':
		w.buf = append(w.buf, '"')
		w.buf = base64.StdEncoding.AppendEncode(w.buf, content)
		w.buf = append(w.buf, '"')
	case '*':
		err = w.stringList(content)
	default:
		err = w.special(f, content)
	}
	w.buf = append(w.buf, ',')
	return err
}

// text writes a string.
func (w *jsonWriter) text(content []byte) {
	if jsonread.PlainPrefix(content) == len(content) {
		w.buf = append(w.buf, '"')
		w.buf = append(w.buf, content...)
		w.buf = append(w.buf, '"')
		return
	}
	quoted, _ := json.Marshal(string(content)) // a string has no errors
	w.buf = append(w.buf, quoted...)
}

// json writes JSON within a message. Like the API server it removes white space.
func (w *jsonWriter) json(raw []byte) error {
	if raw = trimmed(raw); len(raw) == 0 {
		w.buf = append(w.buf, "null"...)
		return nil
	}
	if !bytes.ContainsAny(raw, whiteSpace) {
		w.buf = append(w.buf, raw...)
		return nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return err
	}
	w.buf = append(w.buf, compact.Bytes()...)
	return nil
}

func (w *jsonWriter) stringList(content []byte) error {
	w.buf = append(w.buf, '[')
	for len(content) > 0 {
		f, rest, err := nextField(content)
		if err != nil {
			return err
		}
		w.text(f.bytes)
		w.buf = append(w.buf, ',')
		content = rest
	}
	w.end(']')
	return nil
}

func (w *jsonWriter) special(f *field, content []byte) error {
	switch f.form {
	case 'T', 'U', 'D', 'Q', 'I':
		text, isText, err := appendScalar(w.scratch[:0], f.form, content)
		if err != nil {
			return err
		}
		w.scratch = text
		if isText {
			w.text(text)
		} else {
			w.buf = append(w.buf, text...)
		}
		return nil
	case 'R':
		raw, err := rawJSON(content)
		if err != nil {
			return err
		}
		return w.json(raw)
	}
	s, err := splitSchema(f, content)
	switch {
	case err != nil:
		return err
	case s.schema != nil:
		return w.object(f.message, *s.schema, metav1.TypeMeta{})
	case f.form == 'O':
		w.buf = strconv.AppendBool(w.buf, s.allows)
		return nil
	case len(s.items) == 0:
		w.buf = append(w.buf, "null"...)
		return nil
	}
	w.buf = append(w.buf, '[')
	for _, item := range s.items {
		if f.form == 'S' {
			w.text(item)
		} else if err := w.object(f.message, item, metav1.TypeMeta{}); err != nil {
			return err
		}
		w.buf = append(w.buf, ',')
	}
	w.end(']')
	return nil
}
