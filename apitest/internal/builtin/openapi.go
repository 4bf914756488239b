package builtin

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/anykind/anykind/apitest/internal/recorded"
)

// schemaField has the rules of a field in the recorded OpenAPI documents.
type schemaField struct {
	Enum        []string
	ListMapKeys []string `json:"x-kubernetes-list-map-keys"`
	Items       struct{ Enum []string }
}

// schemas has the decoded definitions of Go types: map[string]func() map[string]schemaField. They are decoded at first use.
var schemas sync.Map

// schemaOf returns the recorded OpenAPI rules of a field of a Go type.
func schemaOf(typ, name string) schemaField {
	read, _ := schemas.LoadOrStore(typ, sync.OnceValue(func() map[string]schemaField { return readSchema(typ) }))
	return read.(func() map[string]schemaField)()[name]
}

func readSchema(typ string) map[string]schemaField {
	documents, err := recorded.ReadOpenAPI()
	if err != nil {
		return nil
	}
	text, err := documents.Definition("io.k8s." + strings.ReplaceAll(typ, "/", "."))
	if err != nil {
		return nil
	}
	var definition struct{ Properties map[string]schemaField }
	if err := json.Unmarshal([]byte(text), &definition); err != nil {
		return nil
	}
	return definition.Properties
}

// withSchema returns a rule with the values of an enum or the keys of a list from OpenAPI, unless rules.txt has them.
func (r rule) withSchema(typ, name string) rule {
	if len(r.args) > 0 || r.name != "enum" && r.name != "keys" {
		return r
	}
	schema := schemaOf(typ, name)
	switch {
	case r.name == "keys":
		r.args = schema.ListMapKeys
	case len(schema.Items.Enum) > 0:
		r.args = schema.Items.Enum
	default:
		r.args = schema.Enum
	}
	return r
}
