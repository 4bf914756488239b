package protobuf

import (
	"bytes"
	"compress/gzip"
	_ "embed" // messages.txt.gz
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/jsonread"
)

// compressedTable is text in lines:
//
//	=apps/v1 Deployment 4       a kind and the index of its message
//	apps/v1.Deployment          a message; messages are counted from 0
//		1 metadata dm5          a field: number, name in JSON, form
//
// The name "." stands for a message whose fields belong to the message around it. A form begins with a presence: of a field that
// is absent, or has the zero value in the Go type, JSON has
//
//	o  nothing if absent
//	z  nothing if absent or zero
//	n  null if absent
//	d  the zero value if absent
//
// An optional [ or { for a list or map follows, and the form of the value, item or map value:
//
//	s y   string, bytes           b i l f   bool, int32, int64, double
//	m7    message 7; m7,v1,Claim  with an apiVersion and a kind
//	T U D Q I                     metav1.Time, MicroTime, Duration, Quantity, IntOrString
//	R     a message with JSON: RawExtension, FieldsV1, JSON
//	*s    a message with a list: a nullable list of strings
//	O7 A7 S7                      JSONSchemaPropsOrBool, OrArray and OrStringArray, where message 7 is JSONSchemaProps
//
// Its first use takes 0.9 ms and 445 kB. Embedded as text it would take 0.25 ms and 238 kB, but 94 kB (0.9 %) of every program.
//
//go:embed messages.txt.gz
var compressedTable []byte

// table is the index of the recorded table. Messages are parsed at first use.
type table struct {
	kinds    map[schema.GroupVersionKind]int
	messages []Message
}

var loadTable = sync.OnceValue(readTable)

// Message describes the encoded form of a kind, or of a part of one. It is safe for concurrent use.
type Message struct {
	name   string
	text   string // the lines of its fields
	once   sync.Once
	fields []field // by number
	// alwaysPresent has a bit for each field number with presence n or d. The table has no number above 63.
	alwaysPresent uint64
}

type field struct {
	name     string // empty for an unused number; inlined for a field without a name in JSON
	quoted   string // the name and colon in JSON
	presence byte
	shape    byte // '[', '{' or 0
	form     byte
	wire     uint8
	number   uint64
	memory   int64  // of a list or map without its items or entries, as a member
	id       uint32 // unique
	message  *Message
	typeMeta metav1.TypeMeta // added to the object in form m
}

// fields counts the fields that have been parsed.
var fields atomic.Uint32

const inlined = "."

// wireTypes has the wire types of forms.
var wireTypes = [128]uint8{
	's': wireBytes, 'y': wireBytes, 'b': wireVarint, 'i': wireVarint, 'l': wireVarint, 'f': wireFixed64, 'm': wireBytes,
	'T': wireBytes, 'U': wireBytes, 'D': wireBytes, 'Q': wireBytes, 'I': wireBytes, 'R': wireBytes, '*': wireBytes,
	'O': wireBytes, 'A': wireBytes, 'S': wireBytes,
}

// Lookup returns the message of a kind. It returns false for kinds without a recorded message, such as custom resources.
func Lookup(gvk schema.GroupVersionKind) (*Message, bool) {
	t := loadTable()
	index, found := t.kinds[gvk]
	if !found {
		return nil, false
	}
	return &t.messages[index], true
}

// readTable decompresses and indexes the table. It is embedded and valid: see TestTable_AllMessagesParse.
func readTable() *table {
	text, err := decompress(compressedTable)
	if err != nil {
		return &table{} // never
	}
	return indexTable(text)
}

// Replace makes Lookup find the kinds of a changed table, until restore is called. It is for tests of servers that are newer than the
// table. change gets the text of the table.
func Replace(change func(text string) string) (restore func()) {
	recorded := loadTable
	text, err := decompress(compressedTable)
	if err != nil {
		return func() {} // never
	}
	loadTable = sync.OnceValue(func() *table { return indexTable(change(text)) })
	return func() { loadTable = recorded }
}

func indexTable(rest string) *table {
	t := &table{kinds: map[schema.GroupVersionKind]int{}}
	for strings.HasPrefix(rest, "=") {
		line, after, _ := strings.Cut(rest[1:], "\n")
		words := strings.Fields(line)
		t.kinds[schema.FromAPIVersionAndKind(words[0], words[1])] = number(words[2])
		rest = after
	}
	count := strings.Count("\n"+rest, "\n") - strings.Count(rest, "\n\t") - 1
	t.messages = make([]Message, 0, count)
	for rest != "" {
		name, after, _ := strings.Cut(rest, "\n")
		end := 0
		for strings.HasPrefix(after[end:], "\t") {
			end += strings.IndexByte(after[end:], '\n') + 1
		}
		t.messages = append(t.messages, Message{name: name, text: after[:end]})
		rest = after[end:]
	}
	return t
}

func decompress(data []byte) (string, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.Grow(6 * len(data))        // enough
	_, err = io.Copy(&text, reader) //nolint:gosec // embedded
	return text.String(), err
}

// number parses a number of the table.
func number(digits string) (n int) {
	for _, digit := range digits {
		n = 10*n + int(digit-'0')
	}
	return n
}

// parsed returns m after its first use has parsed its lines.
func (m *Message) parsed() *Message {
	m.once.Do(m.parse)
	return m
}

func (m *Message) parse() {
	for line := range strings.Lines(m.text) {
		words := strings.Fields(line)
		at := number(words[0])
		for len(m.fields) <= at {
			m.fields = append(m.fields, field{})
		}
		f := parseField(words[1], words[2])
		f.number = uint64(at) //nolint:gosec // not negative
		m.fields[at] = f
		if f.presence == 'n' || f.presence == 'd' {
			m.alwaysPresent |= 1 << at
		}
	}
	m.text = ""
}

func parseField(name, expression string) field {
	f := field{name: name, quoted: strconv.Quote(name) + ":", presence: expression[0]}
	expression = expression[1:]
	if expression[0] == '[' || expression[0] == '{' {
		f.shape = expression[0]
		expression = expression[1:]
	}
	f.form = expression[0]
	f.id = fields.Add(1)
	f.wire = wireTypes[f.form]
	switch member := int64(jsonread.ValueCost + jsonread.MemberCost + len(name)); f.shape {
	case '[':
		f.memory = member + jsonread.ListCost
	case '{':
		f.memory = member + jsonread.ObjectCost + jsonread.FirstMemberCost
		f.wire = wireBytes
	}
	if f.form == '*' || len(expression) == 1 {
		return f
	}
	words := strings.Split(expression[1:], ",")
	f.message = &loadTable().messages[number(words[0])]
	if len(words) > 1 {
		f.typeMeta = metav1.TypeMeta{APIVersion: words[1], Kind: words[2]}
	}
	return f
}
