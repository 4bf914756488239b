package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/sets"
	ky "sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/yamltree"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// Document is a kubeconfig file being edited. Unknown fields and entries, comments and order are kept; white space may change.
// JSON stays JSON. It is not safe for concurrent use. After an error of a method the Document may be half changed: discard it,
// like [File] does.
type Document struct {
	dir     string
	root    *yaml.Node // a DocumentNode with a single mapping
	before  []byte     // the original
	changed map[part]bool
}

// part is an entry of a list of the document. With an empty name it is a top-level field.
type part struct{ field, name string }

// Parse parses a document; empty data is an empty document. [Document.File] resolves relative file names against dir.
func Parse(data []byte, dir string) (*Document, error) {
	// An invalid document must not be rewritten.
	if _, err := kubeconfig.Parse(data, dir); err != nil {
		return nil, err
	}
	root, err := parseSingle(data)
	if err != nil {
		return nil, err
	}
	d := &Document{dir: dir, root: root, before: data, changed: map[part]bool{}}
	if isNull(root.Content[0]) {
		root.Content[0] = collection(yaml.MappingNode, false)
		d.setTop("apiVersion", "v1")
		d.setTop("kind", "Config")
		return d, nil
	}
	expand(d.root)
	expanded, err := d.encode()
	if err != nil {
		return nil, err
	}
	if !sameMeaning(data, expanded) {
		return nil, &kubeconfig.ParseError{Problem: "it uses YAML that cannot be rewritten without a change of meaning (edit it by hand)"}
	}
	return d, nil
}

// parseSingle rejects a second YAML document: kubectl does not read it, and writing would lose it.
func parseSingle(data []byte) (*yaml.Node, error) {
	documents, line, err := yamltree.Parse(data, 2)
	if err != nil {
		return nil, &kubeconfig.ParseError{Line: line, Problem: err.Error()}
	}
	switch len(documents) {
	case 0:
		return &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{nullNode()}}, nil
	case 1:
		return documents[0], nil
	default:
		return nil, &kubeconfig.ParseError{Line: documents[1].Line, Column: documents[1].Column,
			Problem: "it has a second YAML document, which kubectl does not read (delete it before editing)"}
	}
}

// SetCurrentContext sets the current context; "" means none. The context need not exist: it may be in a different file of the
// KUBECONFIG list.
func (d *Document) SetCurrentContext(name string) { d.setTop("current-context", name) }

func (d *Document) setTop(field, value string) {
	d.changed[part{field: field}] = true
	setField(d.top(), field, stringNode(value, isFlow(d.top())))
}

// DeleteContext deletes a context. As with kubectl, its cluster and user stay, and so does the current-context.
func (d *Document) DeleteContext(name string) error { return d.deleteEntry("context", name) }

// DeleteCluster deletes a cluster. As with kubectl, its contexts stay.
func (d *Document) DeleteCluster(name string) error { return d.deleteEntry("cluster", name) }

// DeleteUser deletes a user. As with kubectl, its contexts stay.
func (d *Document) DeleteUser(name string) error { return d.deleteEntry("user", name) }

func (d *Document) deleteEntry(kind, name string) error {
	field := kind + "s"
	entry := d.entry(field, name)
	if entry == nil {
		return fmt.Errorf("delete %s %q: not found in this file", kind, name)
	}
	d.changed[part{field, name}] = true
	list := yamltree.Field(d.top(), field)
	list.Content = slices.DeleteFunc(list.Content, func(other *yaml.Node) bool { return other == entry })
	return nil
}

// RenameContext renames a context in its place. newName must be unused in this file. The current-context stays; see
// [Document.SetCurrentContext].
func (d *Document) RenameContext(name, newName string) error {
	entry := d.entry("contexts", name)
	switch {
	case entry == nil:
		return fmt.Errorf("rename context %q: not found in this file", name)
	case d.entry("contexts", newName) != nil:
		return fmt.Errorf("rename context %q: this file has a context %q", name, newName)
	}
	d.changed[part{"contexts", name}] = true
	d.changed[part{"contexts", newName}] = true
	setField(entry, "name", stringNode(newName, isFlow(entry)))
	return nil
}

// SetAuthProviderConfig sets fields of a user's auth-provider config, such as the tokens of an OIDC provider. All remaining
// fields are kept. The user's file is its Origin, see [kubeconfig.User].
func (d *Document) SetAuthProviderConfig(user string, config map[string]string) error {
	provider := yamltree.Field(yamltree.Field(d.entry("users", user), "user"), "auth-provider")
	if provider == nil || provider.Kind != yaml.MappingNode {
		return fmt.Errorf("set auth-provider config of user %q: no such user with an auth-provider in this file", user)
	}
	d.changed[part{"users", user}] = true
	fields := child(provider, "config", yaml.MappingNode)
	for _, name := range slices.Sorted(maps.Keys(config)) {
		setField(fields, name, stringNode(config[name], isFlow(fields)))
	}
	return nil
}

// Bytes encodes the document. It returns an error if the result would change the meaning, for kubectl, of an unedited entry or
// field.
func (d *Document) Bytes() ([]byte, error) {
	after, err := d.encode()
	if err != nil {
		return nil, err
	}
	if err := d.verifyUnchanged(after); err != nil {
		return nil, err
	}
	return after, nil
}

// File decodes the current document.
func (d *Document) File() (*kubeconfig.File, error) {
	data, err := d.Bytes()
	if err != nil {
		return nil, err
	}
	return kubeconfig.Parse(data, d.dir)
}

// encode encodes JSON as JSON, on one line if the original was on one line.
func (d *Document) encode() ([]byte, error) {
	var out bytes.Buffer
	if json.Valid(d.before) {
		writeJSON(&out, d.root)
		out.WriteByte('\n')
		if !bytes.ContainsRune(bytes.TrimSpace(d.before), '\n') {
			return out.Bytes(), nil
		}
		var indented bytes.Buffer
		err := json.Indent(&indented, out.Bytes(), "", "  ")
		return indented.Bytes(), err
	}
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent() // as kubectl writes
	if err := encoder.Encode(d.root); err != nil {
		return nil, err
	}
	err := encoder.Close()
	return out.Bytes(), err
}

// verifyUnchanged returns an error unless all unchanged parts have the same meaning in after as in the original. Editing an entry
// must not give a different entry its server or its token.
func (d *Document) verifyUnchanged(after []byte) error {
	oldParts, err := decodeParts(d.before)
	if err != nil {
		return err
	}
	newParts, err := decodeParts(after)
	if err != nil {
		return err
	}
	for p := range sets.KeySet(oldParts).Union(sets.KeySet(newParts)) {
		switch {
		case d.changed[p] || reflect.DeepEqual(oldParts[p], newParts[p]):
		case isEntryList(p.field):
			return fmt.Errorf("entry %q of %s: unintended change (edit the file by hand, and write out its aliases and merge keys)", p.name, p.field)
		default:
			return fmt.Errorf("field %q: unintended change (edit the file by hand)", p.field)
		}
	}
	return nil
}

// decodeParts decodes all parts of a document, as kubectl does. The names of entries are unique: kubeconfig.Parse checks that.
func decodeParts(data []byte) (map[part]any, error) {
	asJSON, err := ky.YAMLToJSON(data)
	if err != nil {
		return nil, errors.New("its YAML cannot be converted to JSON") // the library's error may quote a value
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, err
	}
	parts := map[part]any{}
	for field, value := range fields {
		if !isEntryList(field) {
			parts[part{field: field}] = value
			continue
		}
		entries, _ := value.([]any)
		for _, entry := range entries {
			fields, _ := entry.(map[string]any)
			name, _ := fields["name"].(string)
			parts[part{field, name}] = entry
		}
	}
	return parts, nil
}

func isEntryList(field string) bool {
	return field == "clusters" || field == "users" || field == "contexts"
}

// sameMeaning reports whether a and b are equal for kubectl.
func sameMeaning(a, b []byte) bool {
	aJSON, errA := ky.YAMLToJSON(a)
	bJSON, errB := ky.YAMLToJSON(b)
	return errA == nil && errB == nil && bytes.Equal(aJSON, bJSON)
}

func (d *Document) top() *yaml.Node { return d.root.Content[0] }

// entry returns an entry of a list, or nil.
func (d *Document) entry(list, name string) *yaml.Node {
	if entries := yamltree.Field(d.top(), list); entries != nil && entries.Kind == yaml.SequenceNode {
		return entryNamed(entries, name)
	}
	return nil
}
