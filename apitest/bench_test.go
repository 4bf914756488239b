package apitest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/unstructured"
)

// BenchmarkStart is the time from nothing to the first response.
func BenchmarkStart(b *testing.B) {
	definitions := make([]*unstructured.Object, 100)
	for i := range definitions {
		obj := object(b, widgetDefinition)
		plural := fmt.Sprint("widgets", i)
		obj.SetName(plural + ".shop.example.com")
		require.NoError(b, unstructured.Set(obj, plural, "spec", "names", "plural"))
		require.NoError(b, unstructured.Set(obj, fmt.Sprint("Widget", i), "spec", "names", "kind"))
		require.NoError(b, unstructured.Set(obj, []any{}, "spec", "names", "shortNames"))
		definitions[i] = obj
	}
	for name, opts := range map[string]apitest.Options{
		"built-in": {}, "memory": {InMemory: true}, "100 definitions": {Objects: definitions},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				server, err := apitest.Start(&opts)
				require.NoError(b, err)
				server.Close()
			}
		})
	}
}

func BenchmarkRequests(b *testing.B) {
	server := apitest.NewServer(b, nil)
	createConfigMaps(b, server, "a")
	maps := handle(b, server.Client(), "configmaps")
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			_, err := maps.Get(b.Context(), "a", nil)
			require.NoError(b, err)
		}
	})
	b.Run("create", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			obj := object(b, configMap)
			obj.SetName(fmt.Sprint("m", b.N, "-", i))
			_, err := maps.Create(b.Context(), obj, nil)
			require.NoError(b, err)
		}
	})
}

// BenchmarkListPages reads 50,000 objects in 100 pages.
func BenchmarkListPages(b *testing.B) {
	objects := make([]*unstructured.Object, 50_000)
	for i := range objects {
		objects[i] = object(b, configMap)
		objects[i].SetName(fmt.Sprintf("m%05d", i))
	}
	server := apitest.NewServer(b, &apitest.Options{Objects: objects})
	for b.Loop() {
		n := 0
		for query := "?limit=500"; query != ""; {
			page := do(b, server, "GET", configMapsPath+query, "")
			n += len(page.names())
			query = ""
			if token := page.metadata()["continue"]; token != nil {
				query = fmt.Sprint("?limit=500&continue=", token)
			}
		}
		if n != len(objects) {
			b.Fatal(n, "objects")
		}
	}
}
