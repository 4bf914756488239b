package builtin_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/apitest/internal/testing/realserver"
	"github.com/anykind/anykind/internal/testing/corpus"
)

func TestCreate_DefinitionsAsRealServer(t *testing.T) {
	server := newRealServer(t)
	gvk := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	r := server.resources[gvk]
	files := append(corpus.Definitions(t, 25), corpus.Synthetic(t)...)
	rejected := 0
	for i, file := range files {
		random := rand.New(rand.NewPCG(2, uint64(i)))
		for n := range 12 {
			var definition map[string]any
			require.NoError(t, utiljson.Unmarshal(file.JSON, &definition))
			delete(definition, "status")
			fault := ""
			if n > 0 {
				fault = breakDefinition(random, definition)
			}
			want := withoutVersions(normalize(server.create(t, r, definition)))
			got := withoutVersions(normalize(create(t, r, gvk, "", definition)))
			if strings.Contains(want.Message, "INTERNAL_ERROR") {
				continue // the real server panics
			}
			if hasRuleCause(want.Causes) {
				continue // package cel compiles rules
			}
			assert.Empty(t, realserver.Differences(want, got), "%s: %s", file.Source, fault)
			if want.Object == nil {
				rejected++
			}
		}
	}
	assert.Greater(t, rejected, 100)
}

// withoutVersions removes versions and schemas from causes: the server prints them as internal Go structs.
func withoutVersions(response realserver.Response) realserver.Response {
	for i, cause := range response.Causes {
		field, _, _ := strings.Cut(cause, ": Invalid value: ")
		if strings.HasSuffix(field, "spec.versions") || strings.HasSuffix(field, "openAPIV3Schema") || strings.HasSuffix(field, ".deprecationWarning") ||
			strings.HasSuffix(field, ".items") || strings.Contains(field, "selectableFields") {
			response.Causes[i] = field
		}
	}
	return response
}

func hasRuleCause(causes []string) bool {
	return slices.ContainsFunc(causes, func(cause string) bool {
		return strings.Contains(cause, "x-kubernetes-validations") && !strings.Contains(cause, "must be empty to be structural")
	})
}

// breakDefinition makes a random change to a definition and returns its description.
func breakDefinition(random *rand.Rand, definition map[string]any) string {
	spec := definition["spec"].(map[string]any)
	versions := spec["versions"].([]any)
	version := versions[random.IntN(len(versions))].(map[string]any)
	if random.IntN(5) > 0 {
		levels := []map[string]any{}
		collectLevels(version["schema"].(map[string]any)["openAPIV3Schema"], &levels)
		level := levels[random.IntN(len(levels))]
		return breakSchema(random, level)
	}
	faults := []func(){
		func() { spec["scope"] = "World" },
		func() { spec["group"] = "nodots" },
		func() { delete(spec["names"].(map[string]any), "kind") },
		func() { spec["names"].(map[string]any)["shortNames"] = []any{"Not_A_Label"} },
		func() { version["name"] = "V1" },
		func() { version["storage"] = version["storage"] != true },
		func() {
			version["subresources"] = map[string]any{"scale": map[string]any{"specReplicasPath": "spec.replicas", "statusReplicasPath": ".spec.replicas"}}
		},
		func() {
			version["additionalPrinterColumns"] = []any{map[string]any{"name": "", "type": "text", "jsonPath": "spec", "format": "x"}}
		},
		func() { delete(version, "schema") },
		func() { version["deprecationWarning"] = "old" },
		func() { version["deprecated"], version["deprecationWarning"] = true, "" },
		func() { version["selectableFields"] = []any{map[string]any{"jsonPath": "spec"}} },
		func() { spec["preserveUnknownFields"] = true },
		func() { spec["conversion"] = map[string]any{"strategy": "Webhook"} },
		func() { spec["names"].(map[string]any)["plural"] = 5 },
	}
	n := random.IntN(len(faults))
	faults[n]()
	return fmt.Sprint("fault of the definition ", n)
}

func breakSchema(random *rand.Rand, level map[string]any) string {
	faults := []struct {
		key   string
		value any
	}{
		{"type", "text"}, {"type", nil}, {"type", "array"}, {"additionalProperties", map[string]any{"type": "string"}}, {"uniqueItems", true}, {"pattern", "("},
		{"default", map[string]any{"unknownField": int64(1)}}, {"default", "text"}, {"nullable", true}, {"x-kubernetes-list-type", "map"},
		{"x-kubernetes-map-type", "other"}, {"x-kubernetes-int-or-string", true}, {"x-kubernetes-embedded-resource", true},
		{"x-kubernetes-preserve-unknown-fields", false}, {"$ref", "#/x"}, {"anyOf", []any{map[string]any{"type": "string", "description": "x"}}},
		{"oneOf", []any{map[string]any{"properties": map[string]any{"undefined": map[string]any{"minLength": int64(1)}}}}},
		{"not", map[string]any{"default": "x"}}, {"x-kubernetes-list-map-keys", []any{"name"}}, {"enum", []any{"a", "b"}}, {"items", map[string]any{}},
		{"x-kubernetes-validations", []any{map[string]any{"rule": " ", "fieldPath": ".undefined"}}}, {"maxProperties", int64(5)}, {"default", false},
		{"id", "x"}, {"$schema", "x"}, {"additionalItems", true}, {"dependencies", map[string]any{"a": []any{"b"}}},
		{"items", []any{map[string]any{"$ref": "x"}}}, {"additionalProperties", "text"}, {"x-kubernetes-list-type", ""},
		{"patternProperties", map[string]any{"a": map[string]any{"type": "text"}}}, {"definitions", map[string]any{"a": map[string]any{"type": "text"}}},
		{"properties", map[string]any{"metadata": map[string]any{"type": "object", "description": "x"}}},
	}
	fault := faults[random.IntN(len(faults))]
	if fault.value == nil {
		delete(level, fault.key)
	} else {
		level[fault.key] = fault.value
	}
	return fmt.Sprintf("%s: %v", fault.key, fault.value)
}

// collectLevels collects the levels of a schema, its root first.
func collectLevels(value any, levels *[]map[string]any) {
	level, ok := value.(map[string]any)
	if !ok || len(*levels) > 60 {
		return
	}
	*levels = append(*levels, level)
	if properties, ok := level["properties"].(map[string]any); ok {
		names := []string{}
		for name := range properties {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			collectLevels(properties[name], levels)
		}
	}
	collectLevels(level["items"], levels)
	collectLevels(level["additionalProperties"], levels)
}
