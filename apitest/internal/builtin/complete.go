package builtin

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// check applies the rules of rules.txt to an object.
func check(resource schema.GroupResource, subresource string, obj, old map[string]any) (errs field.ErrorList, notValidated []string) {
	kind := (&unstructuredv1.Unstructured{Object: obj}).GroupVersionKind()
	w := newWalk(resource, subresource, old)
	w.rules = complete()
	typ, ok := w.types.kinds[kind]
	if !ok {
		return nil, []string{"the object"}
	}
	w.structure(typ, place{}, obj, old)
	w.annotations(nested.StringMap(obj, "metadata", "annotations"), nested.StringMap(old, "metadata", "annotations"))
	return w.errs, w.notValidated
}

func newWalk(resource schema.GroupResource, subresource string, old object) *walk {
	name := resource.String()
	if subresource != "" {
		name += "/" + subresource
	}
	resetsStatus := subresource == "" && KeepsStatus(resource) && resource.Resource != "nodes"
	return &walk{types: goTypes(), resource: complete()[name], subresource: subresource, isUpdate: old != nil, resetsStatus: resetsStatus}
}

// FieldWarning returns the warning about a field with incomplete rules.
func FieldWarning(path string) string { return "apitest: " + path + " was not validated" }

// validatedAnnotations are prefixes of the annotations with rules of their own.
var validatedAnnotations = []string{
	"container.apparmor.security.beta.kubernetes.io/", "container.seccomp.security.alpha.kubernetes.io/", "seccomp.security.alpha.kubernetes.io/",
	"scheduler.alpha.kubernetes.io/preferAvoidPods", "service.beta.kubernetes.io/load-balancer-source-ranges",
}

// annotations reports the set or changed annotations with rules of their own.
func (w *walk) annotations(annotations, old map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		hasRules := slices.ContainsFunc(validatedAnnotations, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if before, found := old[name]; hasRules && (!found || before != annotations[name]) {
			w.notValidated = append(w.notValidated, field.NewPath("metadata", "annotations").Key(name).String())
		}
	}
}

// walk visits the fields of an object by their Go types.
type walk struct {
	types        *typeTable
	rules        ruleTable
	resource     map[string]*fieldRules // the rules of the resource by path without indexes
	subresource  string
	isUpdate     bool
	resetsStatus bool // the request's status is ignored
	isDeclared   bool // rules are declared by the types: of changed fields, and of fields inside any field
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

// rulesOf returns the rules of a field, nil if it is not listed.
func (w *walk) rulesOf(typ string, p place, name string) *fieldRules {
	if rules := w.resource[p.key]; rules != nil && (!w.isDeclared || rules.unchecked && len(rules.rules) == 0) {
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
	if rules := w.rules[typ][wholeStruct]; rules != nil && obj != nil && w.isChecked(p, obj, old) && !w.applyToStruct(rules, p.at, obj) {
		return
	}
	names := slices.Sorted(maps.Keys(obj))
	for name := range old {
		if _, kept := obj[name]; !kept {
			names = append(names, name)
		}
	}
	for name := range t.byName {
		if _, given := obj[name]; obj != nil && !given && name != wholeStruct && w.rulesOf(typ, p.child(name), name).needsValue() && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if first := w.rules[typ][wholeStruct].firstField(); first != "" && obj != nil && isZero(obj[first]) {
		names = []string{first}
	}
	for _, name := range names {
		isHeader := t.byName["apiVersion"] != nil && (name == "apiVersion" || name == "kind") && t.byName["metadata"] != nil
		if isHeader || p.key == "" && (name == "metadata" || name == "status" && w.resetsStatus) {
			continue
		}
		w.field(t, p.child(name), name, obj, obj[name], old[name])
	}
}

// firstField returns the field to be set before the server checks further fields.
func (r *fieldRules) firstField() string {
	if r == nil || r.rules[0].name != "first" {
		return ""
	}
	return r.rules[0].args[0]
}

// isOfCreations reports whether the rules are those of creations only.
func (r *fieldRules) isOfCreations() bool {
	return r != nil && len(r.rules) > 0 && r.rules[0].name == "created"
}

// needsValue reports whether an absent field may be an error.
func (r *fieldRules) needsValue() bool {
	isRequired := func(r rule) bool {
		return slices.Contains([]string{"required", "requiredIf", "requiredUnless", "requiredWith", "present", "presentIf", "notEmpty", "notEmptyIf", "stated"}, r.name)
	}
	return r != nil && slices.ContainsFunc(r.rules, isRequired)
}

func (w *walk) field(t *goType, p place, name string, parent object, value, old any) {
	known := t.byName[name]
	if w.isDeclared && (known == nil || w.isUpdate && !isChanged(value, old)) {
		return
	}
	rules := w.rulesOf(t.path, p, name)
	isPointer := known != nil && strings.HasPrefix(known.typ, "*")
	if rules != nil && known != nil && parent != nil && w.isChecked(p, value, old) {
		w.apply(rules, &fieldValue{typ: t.path, name: name, at: p.at, parent: parent, value: value, old: old, isUpdate: w.isUpdate}, isPointer || known.typ == "util/intstr.IntOrString")
	}
	switch {
	case w.isDeclared && w.isUpdate && w.resource[p.key].isOfCreations(): // its content does not matter
	case w.isDeclared:
		w.value(known.typ, p, value, old)
	case known == nil || rules == nil || rules.unchecked:
		if isChanged(value, old) && (known == nil || old != nil || isPointer || !isUnset(known.typ, value)) {
			w.notValidated = append(w.notValidated, p.at.String())
		}
	case !rules.any:
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

// IsComplete reports whether the rules of a field of a resource or subresource are complete. The path has no indexes.
func IsComplete(kind schema.GroupVersionKind, resource schema.GroupResource, subresource string, path ...string) bool {
	name := resource.String()
	if subresource != "" {
		name += "/" + subresource
	}
	w := &walk{types: goTypes(), rules: complete(), resource: complete()[name]}
	typ := w.types.kinds[kind]
	p := place{}
	for _, name := range path {
		p = p.child(name)
		t := w.types.types[w.types.elementOf(typ)]
		if t == nil || t.byName[name] == nil {
			return false
		}
		rules := w.rulesOf(t.path, p, name)
		if rules == nil || rules.unchecked {
			return false
		}
		if rules.any {
			return true
		}
		typ = t.byName[name].typ
	}
	return true
}

// CountFields returns the number of fields of a kind that a write to the resource or subresource may set, each type counted once,
// and how many of them have complete rules. top is the field that a subresource takes, "" for all but the status.
func CountFields(kind schema.GroupVersionKind, resource schema.GroupResource, subresource, top string) (all, listed int) {
	name := resource.String()
	if subresource != "" {
		name += "/" + subresource
	}
	w := &walk{types: goTypes(), rules: complete(), resource: complete()[name]}
	seen := map[string]bool{}
	var count func(typ string, p place, isComplete bool)
	count = func(typ string, p place, isComplete bool) {
		t := w.types.types[w.types.elementOf(typ)]
		if t == nil || seen[t.path] {
			return
		}
		seen[t.path] = true
		for _, field := range t.fields {
			switch isRoot := p.key == ""; {
			case isRoot && slices.Contains([]string{"apiVersion", "kind", "metadata"}, field.name):
				continue
			case isRoot && (top != "" && field.name != top || top == "" && field.name == "status"):
				continue
			}
			below := p.child(field.name)
			rules := w.rulesOf(t.path, below, field.name)
			fieldComplete := isComplete && rules != nil && !rules.unchecked
			all++
			if fieldComplete {
				listed++
			}
			count(field.typ, below, fieldComplete)
		}
	}
	count(w.types.kinds[kind], place{}, true)
	return all, listed
}
