package kubeconfig

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	ky "sigs.k8s.io/yaml"
)

// Put adds the clusters, users and contexts of file; an entry of the same name gets the new fields and loses those
// that the new one leaves empty. Fields this package does not know and extensions of other names stay. File names are
// written as they are. The current context is written where file names one; see [Document.SetCurrentContext].
func (d *Document) Put(file *File) error {
	if err := putList(d, "clusters", "cluster", file.Clusters); err != nil {
		return err
	}
	if err := putList(d, "users", "user", file.Users); err != nil {
		return err
	}
	if err := putList(d, "contexts", "context", file.Contexts); err != nil {
		return err
	}
	if file.Preferences.Colors || len(file.Preferences.Extensions) > 0 {
		d.edits.field("preferences")
		preferences := child(d.top(), "preferences", yaml.MappingNode)
		if err := setFields(preferences, file.Preferences); err != nil {
			return fmt.Errorf("preferences: %w", err)
		}
	}
	if len(file.Extensions) > 0 {
		d.edits.field("extensions")
	}
	if err := putExtensions(d.top(), file.Extensions); err != nil {
		return err
	}
	if file.CurrentContext != "" {
		d.SetCurrentContext(file.CurrentContext)
	}
	return nil
}

func putList[T any](d *Document, listName, what string, entries map[string]T) error {
	if len(entries) == 0 {
		return nil
	}
	top := d.top()
	flow := top.Style&yaml.FlowStyle != 0
	list := child(top, listName, yaml.SequenceNode)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		d.edits.entry(listName, name)
		entry := named(list, name)
		if entry == nil {
			entry = addNamed(list, name, flow)
		}
		if err := setFields(child(entry, what, yaml.MappingNode), entries[name]); err != nil {
			return fmt.Errorf("%s %q: %w", what, name, err)
		}
	}
	return nil
}

// setFields gives a mapping the fields of a struct, and takes away those the struct has but leaves empty. What is
// equal already stays as it is written.
func setFields(mapping *yaml.Node, from any) error {
	value := reflect.ValueOf(from)
	for i := range value.NumField() {
		name, options, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		field := value.Field(i)
		var err error
		switch inner := field.Interface().(type) {
		case Extensions:
			err = putExtensions(mapping, inner)
		case *Exec:
			// A new program may not know the old one's other fields, so they stay only with the same program.
			if inner != nil && sameProgram(mapping, inner) {
				err = setFields(child(mapping, name, yaml.MappingNode), *inner)
			} else {
				err = setValue(mapping, name, inner, inner == nil)
			}
		default:
			err = setValue(mapping, name, inner, options == "omitempty" && isEmpty(field))
		}
		if err != nil {
			return fmt.Errorf("field %q: %w", name, err)
		}
	}
	return nil
}

func sameProgram(user *yaml.Node, exec *Exec) bool {
	old := field(user, "exec")
	if old == nil {
		return false
	}
	command := field(old, "command")
	return command != nil && command.Value == exec.Command
}

// isEmpty is what encoding/json's omitempty leaves out.
func isEmpty(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Slice, reflect.Map:
		return value.Len() == 0
	default:
		return value.IsZero()
	}
}

func setValue(mapping *yaml.Node, name string, value any, remove bool) error {
	if remove {
		removeField(mapping, name)
		return nil
	}
	raw, err := revealedJSON(value)
	if err != nil {
		return err
	}
	if old := field(mapping, name); old != nil && means(old, raw) {
		return nil
	}
	made, err := nodeFromJSON(raw, mapping.Style&yaml.FlowStyle != 0)
	if err != nil {
		return err
	}
	setField(mapping, name, made)
	return nil
}

// means reports whether what is written is this value already.
func means(node *yaml.Node, value []byte) bool {
	written, err := yaml.Marshal(node)
	if err != nil {
		return false
	}
	now, err := ky.YAMLToJSON(written)
	if err != nil {
		return false
	}
	wanted, err := ky.YAMLToJSON(value) // sorts the fields
	return err == nil && bytes.Equal(now, wanted)
}

func putExtensions(mapping *yaml.Node, extensions Extensions) error {
	if len(extensions) == 0 {
		return nil
	}
	flow := mapping.Style&yaml.FlowStyle != 0
	list := child(mapping, "extensions", yaml.SequenceNode)
	for _, name := range slices.Sorted(maps.Keys(extensions)) {
		entry := named(list, name)
		if entry == nil {
			entry = addNamed(list, name, flow)
		}
		if err := setValue(entry, "extension", extensions[name], false); err != nil {
			return fmt.Errorf("extension %q: %w", name, err)
		}
	}
	return nil
}
