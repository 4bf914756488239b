package kinds

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/corpus"
)

// BenchmarkNew measures a registry of built-in kinds with its first look-up, after the first of the process.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if New(nil).Lookup("", "v1", "pods") == nil {
			b.Fatal("no pods")
		}
	}
}

// BenchmarkRegistry_SetDefinition measures 100 small definitions and the look-up after them.
func BenchmarkRegistry_SetDefinition(b *testing.B) {
	var definitions []map[string]any
	for i := range 100 {
		definition := widgets("v1")
		names := definition["spec"].(map[string]any)["names"].(map[string]any)
		plural := string(rune('a'+i/26)) + string(rune('a'+i%26))
		names["plural"] = plural
		names["kind"] = "Kind" + plural
		definition["metadata"].(map[string]any)["name"] = plural + ".example.com"
		definitions = append(definitions, definition)
	}
	b.ReportAllocs()
	for b.Loop() {
		setAll(b, definitions)
	}
}

// BenchmarkRegistry_SetDefinitionCorpus is the same with every definition of the corpus.
func BenchmarkRegistry_SetDefinitionCorpus(b *testing.B) {
	var definitions []map[string]any
	for _, file := range corpus.Definitions(b, 400) {
		var definition map[string]any
		require.NoError(b, json.Unmarshal(file.JSON, &definition))
		definitions = append(definitions, definition)
	}
	b.ReportAllocs()
	for b.Loop() {
		setAll(b, definitions)
	}
}

func setAll(b *testing.B, definitions []map[string]any) {
	b.Helper()
	registry := New(nil)
	for _, definition := range definitions {
		if err := registry.SetDefinition(definition); err != nil {
			b.Fatal(err)
		}
	}
	if len(registry.Resources()) < len(definitions) {
		b.Fatal("definitions are missing")
	}
}
