package protobuf

import (
	"encoding/base64"
	"math"
	"math/bits"
	"strings"
	"sync"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/limits"
)

// Decoder decodes encoded messages. It counts the same memory for a value as a [jsonread.Reader] does for its JSON. One goroutine
// at a time.
type Decoder struct {
	names  *jsonread.StringTable // of map entries
	values *jsonread.StringTable

	// members and elements are the stacks of the objects and lists being decoded, innermost last.
	members  []member
	elements []any
	text     []byte // scratch

	checkOnly bool // values are validated and counted, but not made
	depth     int
	limit     int64 // of an object's memory
	left      int64 // of limit
	exceeded  error // error beyond limit
}

type member struct {
	name  string
	value any
}

// NewDecoder returns a decoder of many objects, such as the items of a list. Every object has the limit, in bytes of memory.
func NewDecoder(limit int64, exceeded error) *Decoder {
	d := &Decoder{
		names:  jsonread.NewStringTable(jsonread.TableSlots, true),
		values: jsonread.NewStringTable(jsonread.TableSlots, false),
	}
	d.Limit(limit, exceeded)
	return d
}

var pool = sync.Pool{New: func() any {
	return &Decoder{
		names:  jsonread.NewStringTable(jsonread.TableSlots, true),
		values: jsonread.NewStringTable(jsonread.PooledTableSlots, true),
	}
}}

// maxPooled is the maximum capacity of a pooled slice, in elements.
const maxPooled = 4096

// Borrow returns a decoder of a single object from a pool. Call Release to return it.
func Borrow(limit int64, exceeded error) *Decoder {
	d := pool.Get().(*Decoder) //nolint:forcetypeassert // from New
	d.Limit(limit, exceeded)
	return d
}

// Release returns d to the pool. It clears everything but the names of map entries, since values may be secret.
func (d *Decoder) Release() {
	d.members = emptied(d.members)
	d.elements = emptied(d.elements)
	clear(d.text)
	d.values.Forget()
	pool.Put(d)
}

func emptied[T any](s []T) []T {
	if cap(s) > maxPooled {
		return nil
	}
	clear(s)
	return s[:0]
}

// Limit sets the limit of an object's memory, in bytes, and the error beyond the limit.
func (d *Decoder) Limit(memory int64, exceeded error) {
	d.limit = memory
	d.exceeded = exceeded
}

// Object decodes an object and adds kind and apiVersion. The result shares no memory with raw.
func (d *Decoder) Object(m *Message, raw []byte, t metav1.TypeMeta) (map[string]any, error) {
	d.begin(raw)
	obj, err := d.object(m, raw, t)
	if err != nil {
		d.members = emptied(d.members)
		d.elements = emptied(d.elements)
	}
	return obj, err
}

// Check validates an object without decoding it: Object returns the same error.
func (d *Decoder) Check(m *Message, raw []byte, t metav1.TypeMeta) error {
	d.begin(raw)
	d.checkOnly = true
	_, err := d.object(m, raw, t)
	d.checkOnly = false
	return err
}

// Memory returns the memory of the last object.
func (d *Decoder) Memory() int64 { return d.limit - d.left }

func (d *Decoder) begin(raw []byte) {
	d.depth = 0
	// The charges of values come in addition: an encoded object held by the caller counts, too.
	d.left = d.limit
	if int64(len(raw)) > limits.JSON(d.limit) {
		d.left = -1
	}
}

// charge counts memory.
func (d *Decoder) charge(memory int) error {
	if d.left -= int64(memory); d.left < 0 {
		return d.exceeded
	}
	return nil
}

func (d *Decoder) object(m *Message, data []byte, t metav1.TypeMeta) (map[string]any, error) {
	if err := d.charge(jsonread.ValueCost + jsonread.ObjectCost); err != nil {
		return nil, err
	}
	if d.depth++; d.depth > jsonread.MaxDepth {
		return nil, errDepth
	}
	base := len(d.members)
	before := d.left
	if t.Kind != "" {
		d.add("kind", t.Kind, jsonread.ValueCost+len(t.Kind))
	}
	if t.APIVersion != "" {
		d.add("apiVersion", t.APIVersion, jsonread.ValueCost+len(t.APIVersion))
	}
	if err := d.fields(m.parsed(), data); err != nil {
		return nil, err
	}
	d.depth--
	if d.left < before {
		if err := d.charge(jsonread.FirstMemberCost); err != nil {
			return nil, err
		}
	}
	return d.popMembers(base), nil
}

// add adds a member to the innermost object. memory is the value's.
func (d *Decoder) add(name string, value any, memory int) {
	d.left -= int64(memory + jsonread.MemberCost + len(name))
	if !d.checkOnly {
		d.members = append(d.members, member{name, value})
	}
}

// popMembers returns the innermost object, whose members begin at base.
func (d *Decoder) popMembers(base int) map[string]any {
	if d.checkOnly {
		return nil
	}
	read := d.members[base:]
	obj := make(map[string]any, len(read))
	for i := range read {
		obj[read[i].name] = read[i].value
	}
	clear(read)
	d.members = d.members[:base]
	return obj
}

// fields decodes a message's fields as members of the innermost object.
func (d *Decoder) fields(m *Message, data []byte) error {
	if d.checkOnly {
		return d.checkFields(m, data)
	}
	var seen uint64
	for len(data) > 0 {
		var err error
		if data, err = d.next(m, data, &seen); err != nil {
			return err
		}
	}
	return d.absentFields(m, seen)
}

// absentFields adds the fields of JSON that the message does not have.
func (d *Decoder) absentFields(m *Message, seen uint64) error {
	for absent := m.alwaysPresent &^ seen; absent != 0; absent &= absent - 1 {
		if err := d.absent(&m.fields[bits.TrailingZeros64(absent)]); err != nil {
			return err
		}
	}
	return nil
}

// next decodes the first field in data, with all items of a list and all entries of a map. It returns the rest.
func (d *Decoder) next(m *Message, data []byte, seen *uint64) (rest []byte, err error) {
	tag, rest, err := varint(data)
	if err != nil {
		return nil, err
	}
	f, err := m.field(tag, seen)
	if err != nil {
		return nil, err
	}
	switch f.shape {
	case '[':
		return d.list(f, tag, rest)
	case '{':
		return d.entries(m, f, tag, rest)
	default:
		return d.single(f, rest)
	}
}

// field returns the field with a tag, and adds it to the fields seen in a message.
func (m *Message) field(tag uint64, seen *uint64) (*field, error) {
	number := tag >> 3
	if number >= uint64(len(m.fields)) || m.fields[number].name == "" {
		return nil, &UnknownFieldError{m.name, number, "is unknown"}
	}
	f := &m.fields[number]
	if uint8(tag&7) != f.wire {
		return nil, &UnknownFieldError{m.name, number, "has an unexpected wire type"}
	}
	if *seen&(1<<number) != 0 {
		return nil, &UnknownFieldError{m.name, number, "occurs twice"}
	}
	*seen |= 1 << number
	return f, nil
}

// content splits data, behind a tag, into the field's value and the rest.
func (f *field) content(data []byte) (number uint64, content, rest []byte, err error) {
	switch f.wire {
	case wireBytes:
		content, rest, err = delimited(data)
	case wireVarint:
		number, rest, err = varint(data)
	default:
		if len(data) < 8 {
			return 0, nil, nil, errTruncated
		}
		for i, b := range data[:8] {
			number |= uint64(b) << (8 * i)
		}
		rest = data[8:]
	}
	return number, content, rest, err
}

// isOmitted reports whether JSON omits a value with presence z: the zero value of its Go type. No further forms have this presence.
func (f *field) isOmitted(number uint64, content []byte) bool {
	switch f.form {
	case 'T':
		return isZeroTime(content)
	case 's', 'y':
		return len(content) == 0
	case 'i':
		return uint32(number) == 0 //nolint:gosec // like the generated code
	default:
		return number == 0
	}
}

func (d *Decoder) single(f *field, data []byte) (rest []byte, err error) {
	number, content, rest, err := f.content(data)
	if err != nil {
		return nil, err
	}
	if f.name == inlined {
		return rest, d.inline(f, content)
	}
	if f.presence == 'z' && f.isOmitted(number, content) {
		return rest, nil
	}
	v, err := d.value(f, number, content)
	if err != nil {
		return nil, err
	}
	d.add(f.name, v, 0)
	return rest, nil
}

func (d *Decoder) inline(f *field, data []byte) error {
	if d.depth++; d.depth > jsonread.MaxDepth {
		return errDepth
	}
	err := d.fields(f.message.parsed(), data)
	d.depth--
	return err
}

// nextItem returns the data behind the tag if data begins with the same tag. The items of a list and the entries of a map are
// adjacent.
func nextItem(data []byte, tag uint64) (rest []byte, found bool) {
	if len(data) == 0 {
		return nil, false
	}
	if data[0] < 0x80 {
		return data[1:], uint64(data[0]) == tag
	}
	next, rest, err := varint(data)
	return rest, err == nil && next == tag
}

func (d *Decoder) list(f *field, tag uint64, data []byte) (rest []byte, err error) {
	d.left -= f.memory
	base := len(d.elements)
	for found := true; found; data, found = nextItem(rest, tag) {
		number, content, after, err := f.content(data)
		if err != nil {
			return nil, err
		}
		v, err := d.value(f, number, content)
		if err != nil {
			return nil, err
		}
		d.elements = append(d.elements, v)
		rest = after
	}
	d.members = append(d.members, member{f.name, d.popElements(base)})
	return rest, nil
}

// popElements returns the innermost list, whose elements begin at base.
func (d *Decoder) popElements(base int) any {
	if d.checkOnly {
		return nil
	}
	read := d.elements[base:]
	list := make([]any, len(read))
	copy(list, read)
	clear(read)
	d.elements = d.elements[:base]
	return list
}

func (d *Decoder) entries(m *Message, f *field, tag uint64, data []byte) (rest []byte, err error) {
	d.left -= f.memory
	base := len(d.members)
	for found := true; found; data, found = nextItem(rest, tag) {
		var entry []byte
		if entry, rest, err = delimited(data); err != nil {
			return nil, err
		}
		key, content, err := splitEntry(m, f, entry)
		if err != nil {
			return nil, err
		}
		v, err := d.value(f, 0, content)
		if err != nil {
			return nil, err
		}
		d.add(d.names.Name(validUTF8(key)), v, 0)
	}
	d.members = append(d.members, member{f.name, d.popMembers(base)})
	return rest, nil
}

// splitEntry returns key and value of a map's entry.
func splitEntry(m *Message, f *field, entry []byte) (key, content []byte, err error) {
	for len(entry) > 0 {
		tag := entry[0]
		if tag != 1<<3|wireBytes && tag != 2<<3|wireBytes {
			return nil, nil, &UnknownFieldError{m.name, f.number, "has an entry with unknown fields"}
		}
		var part []byte
		if part, entry, err = delimited(entry[1:]); err != nil {
			return nil, nil, err
		}
		if tag == 1<<3|wireBytes {
			key = part
		} else {
			content = part
		}
	}
	return key, content, nil
}

// absent adds a field that is always present in JSON.
func (d *Decoder) absent(f *field) error {
	switch {
	case f.presence == 'n':
		d.add(f.name, nil, jsonread.ValueCost)
	case f.name == inlined:
		return d.inline(f, nil)
	default:
		v, err := d.value(f, 0, nil)
		if err != nil {
			return err
		}
		d.add(f.name, v, 0)
	}
	return nil
}

// value decodes and charges a value. A list's item and a map's value have the field's form, too.
func (d *Decoder) value(f *field, number uint64, content []byte) (any, error) {
	switch f.form {
	case 's':
		return d.str(content)
	case 'm':
		return d.object(f.message, content, f.typeMeta)
	}
	if err := d.charge(jsonread.ValueCost); err != nil {
		return nil, err
	}
	switch f.form {
	case 'b':
		return number != 0, nil
	case 'i':
		return int64(int32(number)), nil //nolint:gosec // like the generated code
	case 'l':
		return int64(number), nil //nolint:gosec // like the generated code
	case 'f':
		return decodeFloat(number)
	case 'y':
		return d.base64(content)
	case '*':
		return d.stringList(content)
	default:
		return d.special(f, content)
	}
}

// str returns a string. It replaces invalid UTF-8 like encoding/json.
func (d *Decoder) str(content []byte) (any, error) {
	if err := d.charge(jsonread.ValueCost + len(content)); err != nil || d.checkOnly {
		return nil, err
	}
	return d.values.Value(validUTF8(content)), nil
}

func validUTF8(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	var b strings.Builder
	for _, c := range string(text) {
		b.WriteRune(c)
	}
	return []byte(b.String())
}

func (d *Decoder) base64(content []byte) (any, error) {
	if err := d.charge(base64.StdEncoding.EncodedLen(len(content))); err != nil || d.checkOnly {
		return nil, err
	}
	return base64.StdEncoding.EncodeToString(content), nil
}

// stringList decodes a message with a list of strings as its only field.
func (d *Decoder) stringList(content []byte) (any, error) {
	base := len(d.elements)
	for len(content) > 0 {
		f, rest, err := nextField(content)
		if err != nil {
			return nil, err
		}
		if f.number != 1 || f.wire != wireBytes {
			return nil, &UnknownFieldError{"of a list of strings", f.number, "is unknown"}
		}
		v, err := d.str(f.bytes)
		if err != nil {
			return nil, err
		}
		if !d.checkOnly {
			d.elements = append(d.elements, v)
		}
		content = rest
	}
	return d.popElements(base), d.charge(jsonread.ListCost)
}

// decodeFloat decodes a double. JSON writes an integer without a fraction, which decodes as int64.
func decodeFloat(number uint64) (any, error) {
	text, err := appendFloat(nil, math.Float64frombits(number))
	if err != nil {
		return nil, err
	}
	return jsonread.ParseNumber(text)
}
