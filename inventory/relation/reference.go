package relation

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/unstructured"
)

// Reference is the value of a relation's field in an object.
type Reference struct {
	Kind schema.GroupKind
	// Namespace is the namespace of the target. It has no meaning for a cluster-scoped kind.
	Namespace string
	// Name is the name of the target, or "" with Selector.
	Name string
	// Selector selects the targets of Relation.IsSelector. Otherwise it is nil.
	Selector labels.Selector
	// Optional is the field optional beside the name, as in the references of pods to ConfigMaps and Secrets: the target may be missing.
	Optional bool
}

// References returns the references of an object by a relation, without duplicates. A kind different from From has none. Values of
// unexpected types are no references.
func (r *Relation) References(obj *unstructured.Lazy) (all []Reference) {
	if obj.GroupVersionKind().GroupKind() != r.From {
		return nil
	}
	for _, value := range r.values(obj) {
		ref := Reference{Kind: r.To, Namespace: obj.GetNamespace(), Optional: value.isOptional}
		fields, isMap := value.value.(map[string]any)
		switch {
		case r.IsSelector:
			ref.Selector = parseSelector(fields)
			if isMap && ref.Selector != nil {
				all = append(all, ref)
			}
			continue
		case isMap:
			if !ref.read(fields) {
				continue
			}
		default:
			ref.Name, _ = value.value.(string)
		}
		known := slices.IndexFunc(all, func(known Reference) bool {
			return known.Kind == ref.Kind && known.Namespace == ref.Namespace && known.Name == ref.Name
		})
		switch {
		case ref.Name == "":
		case known < 0:
			all = append(all, ref)
		default:
			all[known].Optional = all[known].Optional && ref.Optional
		}
	}
	return all
}

// fieldValue is a value of Relation.Field.
type fieldValue struct {
	value      any
	isOptional bool
}

// values returns the values of the field.
func (r *Relation) values(obj *unstructured.Lazy) (all []fieldValue) {
	path, err := unstructured.ParsePath(r.Field)
	if err != nil || len(path) == 0 {
		return nil
	}
	last := path[len(path)-1]
	// In a list, the map with the name is read for its field optional: GetAll decodes the whole list in any case.
	inMap := last != "[*]" && slices.Contains(path, "[*]")
	if inMap {
		path = path[:len(path)-1]
	}
	found, err := unstructured.GetAll[any](obj, path...)
	if err != nil {
		return nil
	}
	for _, value := range found {
		if !inMap {
			all = append(all, fieldValue{value: value})
			continue
		}
		parent, _ := value.(map[string]any)
		isOptional, _ := parent["optional"].(bool)
		all = append(all, fieldValue{parent[last], isOptional})
	}
	return all
}

// read reads a reference in a map. It reports false for a kind different from r.Kind.
func (r *Reference) read(fields map[string]any) bool {
	text := func(name string) string {
		value, _ := fields[name].(string)
		return value
	}
	r.Name = text("name")
	if namespace := text("namespace"); namespace != "" {
		r.Namespace = namespace
	}
	kind := text("kind")
	if kind == "" {
		return !r.Kind.Empty()
	}
	group := r.Kind.Group
	for _, field := range []string{"group", "apiGroup", "apiVersion"} {
		if value, found := fields[field].(string); found {
			group = value
			if field == "apiVersion" {
				group, _, _ = strings.Cut(value, "/")
				if group == value { // the core group
					group = ""
				}
			}
		}
	}
	named := schema.GroupKind{Group: group, Kind: kind}
	isSame := r.Kind.Empty() || r.Kind == named
	r.Kind = named
	return isSame
}

// IsTo reports whether an object is a target of the reference.
func (r *Reference) IsTo(obj *unstructured.Lazy) bool {
	switch {
	case r.Kind != obj.GroupVersionKind().GroupKind() || obj.GetNamespace() != "" && obj.GetNamespace() != r.Namespace:
		return false
	case r.Selector != nil:
		return r.Selector.Matches(labels.Set(obj.GetLabels()))
	}
	return r.Name == obj.GetName()
}

// parseSelector returns the selector of a LabelSelector or a map of labels, or nil if it is invalid.
func parseSelector(fields map[string]any) labels.Selector {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	var set labels.Set
	if _, isExpression := fields["matchExpressions"]; !isExpression && json.Unmarshal(text, &set) == nil {
		return labels.SelectorFromSet(set)
	}
	var structured metav1.LabelSelector
	if json.Unmarshal(text, &structured) != nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&structured)
	if err != nil {
		return nil
	}
	return selector
}
