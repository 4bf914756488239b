package schema

import (
	_ "embed" // required.txt
	"strings"
	"sync"
)

// required validates that no required field is missing. A null in a Go type counts as missing.
func (v *validator) required(obj map[string]any, s *Schema) {
	for _, name := range s.Required {
		child, found := obj[name]
		if found && (child != nil || !v.isTyped) {
			continue
		}
		field := s.properties[name].resolve()
		v.push(name)
		switch {
		case !v.isTyped || isRequired()[s.Name+" "+name]:
			v.reject("required", "is missing, the schema requires it", requiredHint(field))
		case !field.hasGoDefault() && v.path[0].name != "status":
			v.warn("required", "is missing, the schema requires it", requiredHint(field))
		}
		v.pop()
	}
}

// requiredText lists the fields of Go types that the server requires, by the names of schemas.
//
//go:embed required.txt
var requiredText string

// isRequired has the fields of requiredText, as "io.k8s.api.core.v1.Container name".
var isRequired = sync.OnceValue(func() map[string]bool {
	required := map[string]bool{}
	for line := range strings.Lines(requiredText) {
		if words := strings.Fields(line); !strings.HasPrefix(line, "#") {
			for _, field := range words[1:] {
				required[words[0]+" "+field] = true
			}
		}
	}
	return required
})

// hasGoDefault reports whether a missing field of a Go type gets a value. The published default of most fields is Go's zero value.
func (s *Schema) hasGoDefault() bool {
	return s != nil && s.Default != nil && !isZero(s.Default)
}

// requiredHint names the type of a missing field.
func requiredHint(field *Schema) string {
	switch {
	case field == nil:
		return ""
	case len(field.Enum) > 0:
		return "set it to one of " + enumText(field.Enum)
	}
	return "add it: " + field.typeText()
}
