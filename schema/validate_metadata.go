package schema

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// metadata validates apiVersion, kind and metadata of an object. Names of built-in kinds have rules in Go code only.
func (v *validator) metadata(obj map[string]any, s *Schema) {
	metadata, found := obj["metadata"]
	if v.isTyped {
		if fields, isObject := metadata.(map[string]any); isObject {
			v.push("metadata")
			v.objectMeta(fields)
			v.pop()
		}
		return
	}
	fields, _ := metadata.(map[string]any)
	if text(fields["name"]) == "" && text(fields["generateName"]) == "" {
		v.push("metadata")
		v.reject("required", "has neither name nor generateName", "set metadata.name")
		v.pop()
	}
	if !found {
		return
	}
	field := s.Field("metadata")
	v.push("metadata")
	v.typed(metadata, field)
	if field != nil {
		for _, restriction := range field.AllOf { // of the definition
			v.value(metadata, restriction)
		}
	}
	v.names(fields, validation.IsDNS1123Subdomain)
	v.objectMeta(fields)
	v.pop()
}

// typed validates a value that the server decodes into a Go type.
func (v *validator) typed(value any, s *Schema) {
	if s == nil {
		return
	}
	plain := *s
	plain.AllOf = nil
	v.isTyped = true
	v.value(value, &plain)
	v.isTyped = false
}

// embeddedMeta returns the schema of the metadata of embedded resources.
func embeddedMeta() (*Schema, error) {
	document, err := metaDocument()
	if err != nil {
		return nil, err
	}
	return document.component(objectMetaName)
}

// embedded validates apiVersion, kind and metadata of an embedded resource.
func (v *validator) embedded(obj map[string]any) {
	for _, name := range []string{"apiVersion", "kind"} {
		v.push(name)
		value, found := obj[name]
		text, isText := value.(string)
		switch {
		case !found:
			v.reject("required", "is missing, an embedded resource requires it", "add it: a string")
		case !isText:
			v.reject("type", "is "+quoted(value)+", the schema says string", "")
		case text == "":
			v.reject("x-kubernetes-embedded-resource", "is empty", "")
		case name == "apiVersion":
			if _, err := schema.ParseGroupVersion(text); err != nil {
				v.reject("x-kubernetes-embedded-resource", "is "+quoted(text)+", not a group and version", "write v1 or apps/v1")
			}
		case len(validation.IsDNS1035Label(strings.ToLower(text))) > 0:
			v.reject("x-kubernetes-embedded-resource", "is "+quoted(text)+", not a kind", "a kind has letters, digits and hyphens")
		}
		v.pop()
	}
	metadata, found := obj["metadata"]
	if !found {
		return
	}
	s, err := embeddedMeta()
	v.push("metadata")
	if err != nil {
		v.note(v.field() + ": " + err.Error())
	} else {
		v.typed(metadata, s)
	}
	fields, _ := metadata.(map[string]any)
	v.names(fields, isPathSegment)
	v.objectMeta(fields)
	v.pop()
}

func isPathSegment(name string) []string {
	if name == "." || name == ".." || strings.ContainsAny(name, "/%") {
		return []string{"may not be '.' or '..', or contain '/' or '%'"}
	}
	return nil
}

// names validates name, generateName and namespace. rule is that of names.
func (v *validator) names(metadata map[string]any, rule func(string) []string) {
	v.rule(metadata, "name", rule)
	v.rule(metadata, "generateName", func(prefix string) []string {
		if last := len(prefix) - 1; last > 0 && prefix[last] == '-' {
			prefix = prefix[:last-1] + "a" // as the server does: a generated suffix follows
		}
		return rule(prefix)
	})
	v.rule(metadata, "namespace", validation.IsDNS1123Label)
}

// rule validates a field of metadata, unless it is empty.
func (v *validator) rule(metadata map[string]any, name string, rule func(string) []string) {
	value, _ := metadata[name].(string)
	if value == "" {
		return
	}
	if problems := rule(value); len(problems) > 0 {
		v.push(name)
		v.reject("metadata", "is "+quoted(value)+": "+problems[0], "")
		v.pop()
	}
}

const maxAnnotations = 256 << 10 // bytes of all keys and values

// objectMeta validates labels, annotations, finalizers and owners, which have the same rules for all kinds.
func (v *validator) objectMeta(metadata map[string]any) {
	labels, _ := metadata["labels"].(map[string]any)
	for key, value := range labels {
		v.key("labels", key, key)
		if text, isText := value.(string); isText {
			if problems := validation.IsValidLabelValue(text); len(problems) > 0 {
				v.push("labels")
				v.push(key)
				v.reject("metadata", "is "+quoted(text)+": "+problems[0], "")
				v.pop()
				v.pop()
			}
		}
	}
	v.references(metadata)
	annotations, _ := metadata["annotations"].(map[string]any)
	size := 0
	for key, value := range annotations {
		v.key("annotations", key, strings.ToLower(key))
		text, _ := value.(string)
		size += len(key) + len(text)
	}
	if size > maxAnnotations {
		v.push("annotations")
		v.reject("metadata", "is longer than 256 KiB", "")
		v.pop()
	}
}

// references validates finalizers and ownerReferences.
func (v *validator) references(metadata map[string]any) {
	finalizers, _ := metadata["finalizers"].([]any)
	for i, finalizer := range finalizers {
		name, _ := finalizer.(string)
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			v.push("finalizers")
			v.pushIndex(i)
			v.reject("metadata", "is "+quoted(finalizer)+": "+problems[0], "")
			v.pop()
			v.pop()
		}
	}
	if slices.Contains(finalizers, any(metav1.FinalizerOrphanDependents)) && slices.Contains(finalizers, any(metav1.FinalizerDeleteDependents)) {
		v.push("finalizers")
		v.reject("metadata", "has both orphan and foregroundDeletion", "remove one")
		v.pop()
	}
	owners, _ := metadata["ownerReferences"].([]any)
	v.push("ownerReferences")
	hasController := false
	for i, owner := range owners {
		fields, _ := owner.(map[string]any)
		v.pushIndex(i)
		v.owner(fields)
		v.pop()
		if fields["controller"] == true {
			if hasController {
				v.reject("metadata", "has several controllers, the server accepts one", "set controller of one owner only")
			}
			hasController = true
		}
	}
	v.pop()
}

// owner validates an entry of ownerReferences.
func (v *validator) owner(fields map[string]any) {
	for _, name := range []string{"apiVersion", "kind", "name", "uid"} {
		if text(fields[name]) == "" {
			v.push(name)
			v.reject("required", "is missing, a reference to an owner requires it", "add it: a string")
			v.pop()
		}
	}
	apiVersion := text(fields["apiVersion"])
	if version, err := schema.ParseGroupVersion(apiVersion); apiVersion != "" && (err != nil || version.Version == "") {
		v.push("apiVersion")
		v.reject("metadata", "is "+quoted(apiVersion)+", not a group and version", "write v1 or apps/v1")
		v.pop()
	}
	if apiVersion == "v1" && fields["kind"] == "Event" {
		v.reject("metadata", "is an Event, which cannot be an owner", "")
	}
}

// key validates the key of a label or an annotation.
func (v *validator) key(name, key, checked string) {
	if problems := validation.IsQualifiedName(checked); len(problems) > 0 {
		v.push(name)
		v.push(key)
		v.reject("metadata", "its key is not valid: "+problems[0], "")
		v.pop()
		v.pop()
	}
}
