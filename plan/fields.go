package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/anykind/anykind/internal/managedfields"
	"github.com/anykind/anykind/unstructured"
)

// changedFields returns the fields in which two states of an object differ, with the present managers of the fields. Items of lists
// are matched by the keys in the managed fields of either state. A list without such keys is compared as a whole.
func changedFields(live, planned *unstructured.Object) []Field {
	c := &fieldComparison{}
	before := withoutAssigned(live).Object
	after := withoutAssigned(planned).Object
	c.value("", before, after, managersOf(live), managersOf(planned))
	return c.changed
}

// withoutAssigned returns a copy without the fields that the server assigns to each write.
func withoutAssigned(obj *unstructured.Object) *unstructured.Object {
	if obj == nil {
		return nil
	}
	fields := maps.Clone(obj.Object)
	metadata, _ := fields["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, name := range []string{"creationTimestamp", "uid", "resourceVersion", "generation", "managedFields", "selfLink"} {
		delete(metadata, name)
	}
	fields["metadata"] = metadata
	return &unstructured.Object{Object: fields}
}

// owner is a field manager at a node of its FieldsV1.
type owner struct {
	name string
	// fields is nil for a manager of a whole value above this node.
	fields map[string]any
}

func managersOf(obj *unstructured.Object) (owners []owner) {
	entries, _ := managedfields.Read(obj.Object) // an object with malformed managedFields has no known managers
	for _, entry := range entries {
		name := entry.Manager
		if entry.Subresource != "" {
			name += " through " + entry.Subresource
		}
		owners = append(owners, owner{name, entry.Fields})
	}
	return owners
}

// descend returns the managers of a part of a value.
func descend(owners []owner, step string) (below []owner) {
	for _, o := range owners {
		child, found := o.fields[step].(map[string]any)
		switch {
		case o.fields == nil:
			below = append(below, o)
		case found && len(child) == 0:
			below = append(below, owner{name: o.name})
		case found:
			below = append(below, owner{o.name, child})
		}
	}
	return below
}

type fieldComparison struct{ changed []Field }

func (c *fieldComparison) value(path string, live, planned any, owners, later []owner) {
	if reflect.DeepEqual(live, planned) {
		return
	}
	before, wasMap := live.(map[string]any)
	after, isMap := planned.(map[string]any)
	if wasMap && isMap {
		for _, name := range sortedKeys(before, after) {
			step := "f:" + name
			c.value(path+"."+name, before[name], after[name], descend(owners, step), descend(later, step))
		}
		return
	}
	oldItems, wasList := live.([]any)
	newItems, isList := planned.([]any)
	if wasList && isList {
		if keys := keyNames(owners, later); len(keys) > 0 && c.items(path, keys, oldItems, newItems, owners, later) {
			return
		}
	}
	c.changed = append(c.changed, Field{Path: path, Live: live, Planned: planned, Managers: names(owners)})
}

func sortedKeys(a, b map[string]any) []string {
	var all []string
	for name := range a {
		all = append(all, name)
	}
	for name := range b {
		if _, isInBoth := a[name]; !isInBoth {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

func names(owners []owner) (all []string) {
	for _, o := range owners {
		if !slices.Contains(all, o.name) {
			all = append(all, o.name)
		}
	}
	return all
}

// keyNames returns the fields in the keys of list items, sorted.
func keyNames(owners, later []owner) []string {
	fields := map[string]any{}
	for _, o := range slices.Concat(owners, later) {
		for step := range o.fields {
			maps.Copy(fields, itemKey(step))
		}
	}
	return sortedKeys(fields, nil)
}

// itemKey returns the key in a step k:{"name":"web"}, or nil.
func itemKey(step string) (key map[string]any) {
	if text, isKey := strings.CutPrefix(step, "k:"); isKey {
		_ = json.Unmarshal([]byte(text), &key) // a malformed step has no key
	}
	return key
}

// items compares lists by the keys of their items. It returns false if an item has no key, two items have the same key, or only the
// order differs.
func (c *fieldComparison) items(path string, keys []string, live, planned []any, owners, later []owner) bool {
	before, wasKeyed := byKey(keys, live)
	after, isKeyed := byKey(keys, planned)
	if !wasKeyed || !isKeyed {
		return false
	}
	count := len(c.changed)
	for _, key := range sortedKeys(before, after) {
		c.value(path+"["+key+"]", before[key], after[key], ownersOfItem(owners, keys, key), ownersOfItem(later, keys, key))
	}
	return len(c.changed) > count
}

func byKey(keys []string, items []any) (map[string]any, bool) {
	found := map[string]any{}
	for _, item := range items {
		fields, _ := item.(map[string]any)
		key := keyText(keys, fields)
		if _, isDuplicate := found[key]; key == "" || isDuplicate {
			return nil, false
		}
		found[key] = item
	}
	return found, true
}

// keyText returns the server's notation of a key: containerPort=80,protocol="TCP".
func keyText(keys []string, fields map[string]any) string {
	var parts []string
	for _, name := range keys {
		if value, found := fields[name]; found {
			parts = append(parts, name+"="+encode(value))
		}
	}
	return strings.Join(parts, ",")
}

func ownersOfItem(owners []owner, keys []string, key string) (below []owner) {
	for _, o := range owners {
		if o.fields == nil {
			below = append(below, o)
		}
		for step := range o.fields {
			if keyText(keys, itemKey(step)) == key {
				below = append(below, descend([]owner{o}, step)...)
			}
		}
	}
	return below
}

// encode returns a value as JSON.
func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value) // not a value of an object
	}
	return string(text)
}
