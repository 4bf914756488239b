package builtin

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// check applies the rules of rules.txt to an object.
func check(resource schema.GroupResource, subresource string, obj, old map[string]any) (errs field.ErrorList, notValidated []string) {
	name := resource.String()
	if subresource != "" {
		name += "/" + subresource
	}
	kind := (&unstructuredv1.Unstructured{Object: obj}).GroupVersionKind()
	w := &walk{types: goTypes(), rules: complete(), resource: complete()[name], subresource: subresource, isUpdate: old != nil}
	w.resetsStatus = subresource == "" && KeepsStatus(resource) && resource.Resource != "nodes"
	typ, ok := w.types.kinds[kind]
	if !ok {
		return nil, []string{"the object"}
	}
	w.structure(typ, place{}, obj, old)
	return w.errs, w.notValidated
}

// walk visits the fields of an object by their Go types.
type walk struct {
	types        *typeTable
	rules        ruleTable
	resource     map[string]*fieldRules // the rules of the resource by path without indexes
	subresource  string
	isUpdate     bool
	resetsStatus bool // the request's status is ignored
	errs         field.ErrorList
	notValidated []string
}

// place is a position in an object: at for messages, key without indexes.
type place struct {
	at  *field.Path
	key string
}

func (p place) child(name string) place {
	key := name
	if p.key != "" {
		key = p.key + "." + name
	}
	return place{at: p.at.Child(name), key: key}
}

func (p place) index(i int) place { return place{at: p.at.Index(i), key: p.key} }

// rulesOf returns the rules of a field, nil if they are incomplete.
func (w *walk) rulesOf(typ string, p place, name string) *fieldRules {
	if rules := w.resource[p.key]; rules != nil {
		if rules.unchecked {
			return nil
		}
		return rules
	}
	return w.rules[typ][name]
}

// isChecked reports whether the errors of a field count: an update of the status is not rejected for the spec.
func (w *walk) isChecked(p place, value, old any) bool {
	top, _, _ := strings.Cut(p.key, ".")
	switch w.subresource {
	case "":
		return top != "status" || isChanged(value, old)
	case "status":
		return top == "status"
	}
	return isChanged(value, old)
}

func isChanged(value, old any) bool { return !equality.Semantic.DeepEqual(value, old) }

// structure checks the fields of a struct. obj and old may be nil.
func (w *walk) structure(typ string, p place, obj, old object) {
	t := w.types.types[typ]
	names := slices.Sorted(maps.Keys(obj))
	for name := range old {
		if _, kept := obj[name]; !kept {
			names = append(names, name)
		}
	}
	for name, rules := range w.rules[typ] {
		if _, given := obj[name]; !given && rules.has("required") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		isHeader := t.byName["apiVersion"] != nil && (name == "apiVersion" || name == "kind") && t.byName["metadata"] != nil
		if isHeader || p.key == "" && (name == "metadata" || name == "status" && w.resetsStatus) {
			continue
		}
		w.field(t, p.child(name), name, obj[name], old[name])
	}
}

func (r *fieldRules) has(name string) bool {
	return slices.ContainsFunc(r.rules, func(r rule) bool { return r.name == name })
}

func (w *walk) field(t *goType, p place, name string, value, old any) {
	known := t.byName[name]
	rules := w.rulesOf(t.path, p, name)
	if known == nil || rules == nil {
		isPointer := known != nil && strings.HasPrefix(known.typ, "*")
		if isChanged(value, old) && (old != nil || isPointer || !isUnset(value)) {
			w.notValidated = append(w.notValidated, p.at.String())
		}
		return
	}
	if w.isChecked(p, value, old) {
		w.apply(rules, p.at, value, old, strings.HasPrefix(known.typ, "*"))
	}
	if !rules.any {
		w.value(known.typ, p, value, old)
	}
}

// value checks what is inside a value: the fields of a struct, the items of a list, the values of a map.
func (w *walk) value(typ string, p place, value, old any) {
	typ = strings.TrimPrefix(typ, "*")
	named := w.types.types[typ]
	if named != nil && named.underlying == "struct" {
		fields, _ := value.(object)
		before, _ := old.(object)
		if fields != nil || before != nil {
			w.structure(typ, p, fields, before)
		}
		return
	}
	if named != nil {
		typ = named.underlying
	}
	switch {
	case strings.HasPrefix(typ, "[]") && w.isStruct(typ[2:]):
		items, _ := value.([]any)
		before, _ := old.([]any)
		for i, item := range items {
			w.value(typ[2:], p.index(i), item, counterpart(before, item, i))
		}
	case strings.HasPrefix(typ, "map["):
		_, element, _ := strings.Cut(typ[4:], "]")
		fields, _ := value.(object)
		before, _ := old.(object)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if w.isStruct(element) {
				w.value(element, place{at: p.at.Key(name), key: p.key}, fields[name], before[name])
			}
		}
	}
}

func (w *walk) isStruct(typ string) bool {
	named := w.types.types[strings.TrimPrefix(typ, "*")]
	return named != nil && named.underlying == "struct"
}

// counterpart returns the item of an old list that became item: an equal item, an item with the same name or type, or the item at
// the same index.
func counterpart(old []any, item any, i int) any {
	fields, _ := item.(object)
	for _, candidate := range old {
		if equality.Semantic.DeepEqual(candidate, item) {
			return candidate
		}
	}
	for _, key := range []string{"name", "type"} {
		for _, candidate := range old {
			if before, _ := candidate.(object); fields[key] != nil && before[key] == fields[key] {
				return candidate
			}
		}
	}
	if i < len(old) {
		return old[i]
	}
	return nil
}
