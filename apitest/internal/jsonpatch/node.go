package jsonpatch

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// node is a JSON value, parsed only as deep as operations reach. In the library, too, the size of a copy includes duplicate fields
// and escape sequences of unparsed JSON. A nil node is null or absent.
type node struct {
	raw    json.RawMessage // nil is null
	fields map[string]*node
	items  []*node
	form   form
}

type form int

const (
	unparsed form = iota
	object
	array
)

// UnmarshalJSON implements json.Unmarshaler.
func (n *node) UnmarshalJSON(data []byte) error {
	n.raw = slices.Clone(data)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (n *node) MarshalJSON() ([]byte, error) {
	switch {
	case n.form == object:
		return json.Marshal(n.fields)
	case n.form == array:
		return json.Marshal(n.items)
	case n.raw == nil:
		return []byte("null"), nil
	}
	return n.raw, nil
}

// open parses an object or a list, without its fields or items. It reports whether n is an object or a list.
func (n *node) open() bool {
	if n == nil || n.raw == nil {
		return false
	}
	if n.form != unparsed {
		return true
	}
	if strings.HasPrefix(string(n.raw[:1]), "[") {
		if json.Unmarshal(n.raw, &n.items) != nil {
			return false
		}
		n.form = array
		return true
	}
	if json.Unmarshal(n.raw, &n.fields) != nil {
		return false
	}
	n.form = object
	return true
}

// openAll parses n to its leaves, as a successful test does.
func (n *node) openAll() {
	if !n.open() {
		return
	}
	for _, child := range n.fields {
		child.openAll()
	}
	for _, child := range n.items {
		child.openAll()
	}
}

// apply applies an operation to the document. copied is the size of the value copied by it.
func (n *node) apply(op jsonpatch.Operation) (copied int64, ok bool) {
	path, err := op.Path()
	if err != nil {
		return 0, false
	}
	switch op.Kind() {
	case "add":
		parent, key := n.find(path)
		return 0, parent.add(key, valueOf(op))
	case "remove":
		parent, key := n.find(path)
		return 0, parent.remove(key)
	case "replace":
		return 0, n.replace(path, valueOf(op))
	case "move":
		parent, key := n.from(op)
		child, found := parent.get(key)
		if !found || !parent.remove(key) {
			return 0, false
		}
		parent, key = n.find(path)
		return 0, parent.add(key, child)
	case "test":
		if path == "" {
			n.openAll()
			return 0, true
		}
		parent, key := n.find(path)
		child, found := parent.get(key)
		child.openAll()
		return 0, found
	case "copy":
		parent, key := n.from(op)
		child, found := parent.get(key)
		if parent, key = n.find(path); !found || parent == nil {
			return 0, false
		}
		if child == nil {
			return 0, parent.add(key, nil)
		}
		content, err := json.Marshal(child)
		if err != nil {
			return 0, false
		}
		return int64(len(content)), parent.add(key, &node{raw: content})
	}
	return 0, false
}

func valueOf(op jsonpatch.Operation) *node {
	raw, found := op["value"]
	switch {
	case !found:
		return nil
	case raw == nil:
		return &node{}
	}
	return &node{raw: *raw}
}

func (n *node) from(op jsonpatch.Operation) (parent *node, key string) {
	from, err := op.From()
	if err != nil {
		return nil, ""
	}
	return n.find(from)
}

// find returns the parent of the value at a path, or nil, and the value's key there.
func (n *node) find(path string) (parent *node, key string) {
	parts := strings.Split(path, "/")
	if len(parts) < 2 {
		return nil, ""
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~").Replace
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		if n, _ = n.get(unescape(part)); !n.open() {
			return nil, ""
		}
	}
	return n, unescape(parts[last])
}

// get returns the value of a key. That of an absent field is nil.
func (n *node) get(key string) (child *node, found bool) {
	if n == nil {
		return nil, false
	}
	if n.form == object {
		return n.fields[key], true
	}
	if i, ok := index(key, len(n.items)); ok && i < len(n.items) {
		return n.items[i], true
	}
	return nil, false
}

func (n *node) add(key string, child *node) bool {
	switch {
	case n == nil:
		return false
	case n.form == object:
		if n.fields == nil { // null
			return false
		}
		n.fields[key] = child
		return true
	case key == "-":
		n.items = append(n.items, child)
		return true
	}
	i, ok := index(key, len(n.items)+1)
	if ok && i <= len(n.items) {
		n.items = slices.Insert(n.items, i, child)
		return true
	}
	return false
}

func (n *node) remove(key string) bool {
	if n == nil {
		return false
	}
	if n.form == object {
		_, found := n.fields[key]
		delete(n.fields, key)
		return found
	}
	i, ok := index(key, len(n.items))
	if ok && i < len(n.items) {
		n.items = slices.Delete(n.items, i, i+1)
		return true
	}
	return false
}

func (n *node) replace(path string, child *node) bool {
	if path == "" {
		if !child.open() {
			return false
		}
		*n = *child
		return true
	}
	parent, key := n.find(path)
	if _, found := parent.get(key); !found {
		return false
	}
	if parent.form == object {
		return parent.add(key, child)
	}
	i, _ := index(key, len(parent.items))
	parent.items[i] = child
	return true
}

// index returns the index that a key is. A negative index counts from the end, at length.
func index(key string, length int) (int, bool) {
	i, err := strconv.Atoi(key)
	if err != nil || i < -length {
		return 0, false
	}
	if i < 0 {
		i += length
	}
	return i, true
}
