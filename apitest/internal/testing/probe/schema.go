package probe

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest/internal/recorded"
)

// openapi is the part of an OpenAPI schema that faults are drawn from.
type openapi struct {
	Type                 string              `json:"type"`
	Format               string              `json:"format"`
	Enum                 []any               `json:"enum"`
	Required             []string            `json:"required"`
	Properties           map[string]*openapi `json:"properties"`
	Items                *openapi            `json:"items"`
	AdditionalProperties *openapi            `json:"additionalProperties"`
	AllOf                []*openapi          `json:"allOf"`
	Ref                  string              `json:"$ref"`
	name                 string              // of a definition
}

// schemas reads definitions of the recorded OpenAPI documents.
type schemas struct {
	t         testing.TB
	documents *recorded.OpenAPI

	mu   sync.Mutex // guards read
	read map[string]*openapi
}

func newSchemas(t testing.TB) *schemas {
	t.Helper()
	documents, err := recorded.ReadOpenAPI()
	require.NoError(t, err)
	return &schemas{t: t, documents: documents, read: map[string]*openapi{}}
}

// ofKind returns the schema of a kind, nil if none is recorded.
func (s *schemas) ofKind(group, version, kind string) *openapi {
	name := s.documents.Kinds[group+"/"+version+"/"+kind]
	if name == "" {
		return nil
	}
	return s.definition(name)
}

func (s *schemas) definition(name string) *openapi {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.read[name]; known != nil {
		return known
	}
	text, err := s.documents.Definition(name)
	require.NoError(s.t, err)
	found := &openapi{}
	require.NoError(s.t, json.Unmarshal([]byte(text), found), name)
	found.name = name
	s.read[name] = found
	return found
}

// resolve follows references.
func (s *schemas) resolve(of *openapi) *openapi {
	for of != nil {
		switch {
		case of.Ref != "":
			of = s.definition(strings.TrimPrefix(of.Ref, recorded.ReferenceV3))
		case len(of.AllOf) == 1 && of.Type == "" && len(of.Properties) == 0:
			of = of.AllOf[0]
		default:
			return of
		}
	}
	return &openapi{}
}

// plausible returns a value of a schema with its required fields.
func (s *schemas) plausible(of *openapi) any {
	of = s.resolve(of)
	switch {
	case len(of.Enum) > 0:
		return of.Enum[0]
	case len(of.Properties) > 0:
		object := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
			if slices.Contains(of.Required, name) {
				object[name] = s.plausible(of.Properties[name])
			}
		}
		return object
	}
	switch of.Type {
	case "array":
		return []any{s.plausible(of.Items)}
	case "integer", "number":
		return int64(1)
	case "boolean":
		return true
	case "object":
		return map[string]any{}
	}
	switch {
	case of.Format == "date-time":
		return "2026-01-01T00:00:00Z"
	case of.Format == "byte":
		return "YQ=="
	case strings.HasSuffix(of.name, "Quantity"):
		return "1"
	}
	return "a"
}
