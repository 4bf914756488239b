package edit

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/anykind/anykind/internal/yamltree"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// Put adds the clusters, users and contexts of file. An existing entry gets the new fields and loses fields left empty in the new
// entry; its unknown fields and extensions of different names are kept. An existing file name relative to the document's folder
// is kept if it means the same file. All remaining file names are written unchanged. The current context is set unless it is
// empty; see [Document.SetCurrentContext].
func (d *Document) Put(file *kubeconfig.File) error {
	if err := putEntries(d, "cluster", file.Clusters); err != nil {
		return err
	}
	if err := putEntries(d, "user", file.Users); err != nil {
		return err
	}
	if err := putEntries(d, "context", file.Contexts); err != nil {
		return err
	}
	if file.Preferences.Colors || len(file.Preferences.Extensions) > 0 {
		d.changed[part{field: "preferences"}] = true
		if err := d.setFields(child(d.top(), "preferences", yaml.MappingNode), file.Preferences); err != nil {
			return fmt.Errorf("preferences: %w", err)
		}
	}
	if len(file.Extensions) > 0 {
		d.changed[part{field: "extensions"}] = true
		if err := putExtensions(d.top(), file.Extensions); err != nil {
			return err
		}
	}
	if file.CurrentContext != "" {
		d.SetCurrentContext(file.CurrentContext)
	}
	return nil
}

func putEntries[T any](d *Document, kind string, entries map[string]T) error {
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		d.changed[part{kind + "s", name}] = true
		entry := childNamed(d.top(), kind+"s", name)
		if err := d.setFields(child(entry, kind, yaml.MappingNode), entries[name]); err != nil {
			return fmt.Errorf("%s %q: %w", kind, name, err)
		}
	}
	return nil
}

func putExtensions(mapping *yaml.Node, extensions kubeconfig.Extensions) error {
	for _, name := range slices.Sorted(maps.Keys(extensions)) {
		extension := extensions[name]
		if len(extension) > 0 && !json.Valid(extension) {
			return fmt.Errorf("extension %q: not JSON", name)
		}
		setValue(childNamed(mapping, "extensions", name), "extension", reflect.ValueOf(extension))
	}
	return nil
}

// setFields sets a mapping's fields to the fields of a struct, and removes empty fields.
func (d *Document) setFields(mapping *yaml.Node, from any) error {
	for field, value := range reflect.ValueOf(from).Fields() {
		name, omit := jsonField(field, value)
		if name == "-" {
			continue
		}
		extensions, isExtensions := value.Interface().(kubeconfig.Extensions)
		exec, _ := value.Interface().(*kubeconfig.Exec)
		var err error
		switch {
		case isExtensions:
			err = putExtensions(mapping, extensions)
		case omit:
			removeField(mapping, name)
		case exec != nil && d.sameCommand(mapping, exec): // unknown fields are kept only for the same program
			err = d.setFields(child(mapping, name, yaml.MappingNode), *exec)
		case d.isSameFile(mapping, name, value):
		default:
			setValue(mapping, name, value)
		}
		if err != nil {
			return fmt.Errorf("field %q: %w", name, err)
		}
	}
	return nil
}

func (d *Document) sameCommand(user *yaml.Node, exec *kubeconfig.Exec) bool {
	fields := yamltree.Field(user, "exec")
	command := yamltree.Field(fields, "command")
	return command != nil && (command.Value == exec.Command || d.isSameFile(fields, "command", reflect.ValueOf(exec.Command)))
}

// isSameFile reports whether a field has a relative file name for the file in value, as resolved by [kubeconfig.Parse].
func (d *Document) isSameFile(mapping *yaml.Node, name string, value reflect.Value) bool {
	if !slices.Contains([]string{"certificate-authority", "client-certificate", "client-key", "tokenFile", "command"}, name) {
		return false
	}
	old := yamltree.Field(mapping, name)
	return old != nil && d.dir != "" && old.Value != "" && !filepath.IsAbs(old.Value) && value.Kind() == reflect.String &&
		(name != "command" || filepath.Base(old.Value) != old.Value) && filepath.Join(d.dir, old.Value) == value.String()
}

// setValue sets a field unless it already has an equal value: its notation is kept.
func setValue(mapping *yaml.Node, name string, value reflect.Value) {
	encoded := encodeValue(value, isFlow(mapping))
	if old := yamltree.Field(mapping, name); old == nil || !sameValue(old, encoded) {
		setField(mapping, name, encoded)
	}
}

func sameValue(a, b *yaml.Node) bool {
	aText, errA := yaml.Marshal(a)
	bText, errB := yaml.Marshal(b)
	return errA == nil && errB == nil && sameMeaning(aText, bText)
}

// jsonField returns a struct field's JSON name, and whether encoding/json omits its value.
func jsonField(field reflect.StructField, value reflect.Value) (name string, omit bool) {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	isEmpty := value.IsZero() || (value.Kind() == reflect.Slice || value.Kind() == reflect.Map) && value.Len() == 0
	return name, name == "-" || options == "omitempty" && isEmpty
}

// encodeValue returns the tree of a value of a [kubeconfig.File] in encoding/json's form, but with its secrets.
func encodeValue(value reflect.Value, flow bool) *yaml.Node {
	switch typed := value.Interface().(type) {
	case kubeconfig.Secret:
		return stringNode(typed.Reveal(), flow)
	case kubeconfig.SecretData:
		return stringNode(base64.StdEncoding.EncodeToString([]byte(typed.Reveal())), flow)
	case []byte:
		return stringNode(base64.StdEncoding.EncodeToString(typed), flow)
	case json.RawMessage:
		return parseJSON(typed, flow)
	case string:
		return stringNode(typed, flow)
	case bool:
		return scalar("!!bool", fmt.Sprint(typed))
	}
	node := collection(yaml.MappingNode, flow)
	switch value.Kind() {
	case reflect.Pointer:
		return encodeValue(value.Elem(), flow)
	case reflect.Slice:
		node = collection(yaml.SequenceNode, flow)
		for _, element := range value.Seq2() {
			node.Content = append(node.Content, encodeValue(element, flow))
		}
	case reflect.Map:
		names := value.MapKeys()
		sort.Slice(names, func(i, j int) bool { return names[i].String() < names[j].String() })
		for _, name := range names {
			setField(node, name.String(), encodeValue(value.MapIndex(name), flow))
		}
	default: // a struct is the only remaining kind
		for field, value := range value.Fields() {
			if name, omit := jsonField(field, value); !omit {
				setField(node, name, encodeValue(value, flow))
			}
		}
	}
	return node
}
