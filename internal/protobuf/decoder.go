package protobuf

import (
	"sync"

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

	interner *jsonread.Interner // nil for none
	node     jsonread.Node      // of the innermost map or list, for the interner
	child    jsonread.Node      // of the value to decode next

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
	d.text = emptied(d.text)
	clear(d.text[:cap(d.text)])
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
	if d.interner != nil {
		d.node = d.interner.BeginObject()
	}
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
