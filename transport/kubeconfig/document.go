package kubeconfig

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"
	ky "sigs.k8s.io/yaml"
)

// Document is one kubeconfig file being edited. Fields and entries that this package does not know, comments and the
// order of things stay; white space may change. JSON stays JSON. It is not safe for concurrent use. A method that
// returns an error may leave the Document half changed: throw it away, as [Edit] does.
type Document struct {
	dir  string
	root *yaml.Node // a DocumentNode with one mapping
	json bool
	// indent is JSON's, "" where it stands in one line.
	indent string
	// before is what was parsed, and edits are what has been changed since: everything else must keep its meaning.
	before []byte
	edits  edits
}

// ParseDocument reads a document for editing; empty data is an empty one. Relative file names in it are taken from
// dir by [Document.File], and stay relative.
func ParseDocument(data []byte, dir string) (*Document, error) {
	// What cannot be read must not be rewritten.
	if _, err := Parse(data, dir); err != nil {
		return nil, err
	}
	root, err := parseOnly(data)
	if err != nil {
		return nil, err
	}
	d := &Document{dir: dir, root: root, before: data, edits: edits{}}
	d.json = json.Valid(data)
	if bytes.ContainsRune(bytes.TrimSpace(data), '\n') {
		d.indent = "  "
	}
	if root == nil || isNull(root.Content[0]) {
		d.root = emptyDocument(root)
		return d, nil
	}
	if err := d.keepsMeaning(); err != nil {
		return nil, err
	}
	inline(d.root)
	if err := d.keepsMeaning(); err != nil {
		return nil, err
	}
	return d, nil
}

// keepsMeaning returns an error unless the tree means what the data does that it was parsed from.
func (d *Document) keepsMeaning() error {
	written, err := d.encode()
	if err != nil {
		return err
	}
	if !sameMeaning(d.before, written) {
		return &ParseError{Problem: "it uses YAML that cannot be rewritten without a change of meaning: edit it by hand"}
	}
	return nil
}

func emptyDocument(old *yaml.Node) *yaml.Node {
	root := &yaml.Node{Kind: yaml.DocumentNode}
	if old != nil {
		root.HeadComment, root.FootComment = old.HeadComment, old.FootComment
	}
	mapping := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	setField(mapping, "apiVersion", stringNode("v1", false))
	setField(mapping, "kind", stringNode("Config", false))
	root.Content = []*yaml.Node{mapping}
	return root
}

// parseOnly refuses a second YAML document: kubectl does not read it, and writing would lose it.
func parseOnly(data []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	root, err := nextTree(decoder, data)
	if err != nil || root == nil {
		return nil, err
	}
	if second, err := nextTree(decoder, data); err != nil {
		return nil, err
	} else if second != nil {
		return nil, &ParseError{Line: second.Line, Column: second.Column,
			Problem: "it has a second YAML document, which kubectl does not read: delete it before editing"}
	}
	return root, nil
}

// Bytes writes the document. It returns an error if an entry or field that no method was asked to change would not mean
// what it did, as kubectl reads it.
func (d *Document) Bytes() ([]byte, error) {
	after, err := d.encode()
	if err != nil {
		return nil, err
	}
	if err := d.edits.checkRest(d.before, after); err != nil {
		return nil, err
	}
	return after, nil
}

func (d *Document) encode() ([]byte, error) {
	var out bytes.Buffer
	if d.json {
		return d.bytesOfJSON(&out)
	}
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent() // as kubectl writes
	if err := encoder.Encode(d.root); err != nil {
		return nil, err
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (d *Document) bytesOfJSON(out *bytes.Buffer) ([]byte, error) {
	if err := writeJSON(out, d.root); err != nil {
		return nil, err
	}
	if d.indent != "" {
		var indented bytes.Buffer
		if err := json.Indent(&indented, out.Bytes(), "", d.indent); err != nil {
			return nil, err
		}
		out = &indented
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// File is what the document says now.
func (d *Document) File() (*File, error) {
	data, err := d.Bytes()
	if err != nil {
		return nil, err
	}
	return Parse(data, d.dir)
}

// top is the document's mapping.
func (d *Document) top() *yaml.Node { return d.root.Content[0] }

// sameMeaning compares as kubectl reads.
func sameMeaning(a, b []byte) bool {
	aJSON, err := ky.YAMLToJSON(a)
	if err != nil {
		return false
	}
	bJSON, err := ky.YAMLToJSON(b)
	return err == nil && bytes.Equal(aJSON, bJSON)
}
