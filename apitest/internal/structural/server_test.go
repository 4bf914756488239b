package structural_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/apitest/internal/structural"
	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/apitest/internal/testing/realserver"
	"github.com/anykind/anykind/internal/testing/corpus"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

func TestSchema_CorpusAsRealServer(t *testing.T) {
	sandbox := compare.Sandbox(t)
	server := sandbox.Requests
	namespace := sandbox.Namespace
	kinds := map[string]definedKind{}
	files := corpus.Definitions(t, 25)
	for i, file := range files {
		var definition map[string]any
		require.NoError(t, utiljson.Unmarshal(file.JSON, &definition))
		k := prepare(definition, i)
		if result := server.Write(t, http.MethodPost, definitionsPath, nil, definition); result.Object != nil {
			kinds[file.Name] = k // the server rejects some: TestValidateDefinition_CorpusAsRealServer
		}
	}
	t.Cleanup(func() {
		for _, k := range kinds {
			server.Delete(t, definitionsPath+"/"+k.name)
		}
	})
	var compared, rejected atomic.Int32
	var all sync.WaitGroup
	for i, file := range files {
		k, ok := kinds[file.Name]
		if !ok {
			continue
		}
		all.Go(func() { // a new kind is served after a second or two
			path := k.path(namespace)
			waitServed(t, server, path)
			compiled := structural.Compile(k.schema, nil)
			g := &generator{rand.New(rand.NewPCG(1, uint64(i)))}
			for n := range 30 {
				obj := g.object(k.schema, 6)
				obj["apiVersion"] = k.group + "/" + k.version
				obj["kind"] = k.kind
				obj["metadata"] = map[string]any{"name": fmt.Sprintf("object-%d", n), "labels": map[string]any{"a": "b"}}
				want := realserver.Normalize(server.Write(t, http.MethodPost, path, url.Values{"dryRun": {"All"}, "fieldValidation": {"Warn"}}, obj))
				got := realserver.Normalize(create(t, compiled, k, namespace, obj))
				content, _ := utiljson.Marshal(obj)
				assert.Empty(t, realserver.Differences(want, got), "%s %s", file.Source, content)
				compared.Add(1)
				if want.Object == nil {
					rejected.Add(1)
				}
			}
		})
	}
	all.Wait()
	assert.Greater(t, compared.Load(), int32(400))
	assert.Greater(t, rejected.Load(), int32(100))
	assert.Greater(t, compared.Load()-rejected.Load(), int32(100))
	t.Logf("compared %d objects, of which %d are invalid", compared.Load(), rejected.Load())
}

// definedKind is a kind of a definition.
type definedKind struct {
	name, group, version, plural, kind string
	namespaced                         bool
	schema                             map[string]any
}

// path returns the path of the kind's objects.
func (k definedKind) path(namespace string) string {
	path := "/apis/" + k.group + "/" + k.version
	if k.namespaced {
		path += "/namespaces/" + namespace
	}
	return path + "/" + k.plural
}

// prepare makes a definition one of a group of its own, without CEL rules and conversion webhooks, and returns its kind.
func prepare(definition map[string]any, i int) definedKind {
	spec := definition["spec"].(map[string]any)
	names := spec["names"].(map[string]any)
	k := definedKind{
		group: fmt.Sprintf("g%d.example.com", i), plural: names["plural"].(string), kind: names["kind"].(string),
		namespaced: spec["scope"] == "Namespaced",
	}
	k.name = k.plural + "." + k.group
	spec["group"] = k.group
	definition["metadata"] = map[string]any{"name": k.name}
	delete(definition, "status")
	delete(spec, "conversion")
	for _, version := range spec["versions"].([]any) {
		version := version.(map[string]any)
		corpus.RemoveRules(version["schema"])
		for _, name := range []string{"subresources", "deprecated", "deprecationWarning"} {
			delete(version, name)
		}
		if version["storage"] == true {
			version["served"] = true
			k.version = version["name"].(string)
			k.schema = version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		}
	}
	return k
}

func waitServed(t *testing.T, server *realserver.Server, path string) {
	require.Eventually(t, func() bool {
		return server.Write(t, http.MethodGet, path, nil, nil).Object != nil
	}, time.Minute, 20*time.Millisecond, path)
}

// create returns this package's result.
func create(t *testing.T, compiled *structural.Schema, k definedKind, namespace string, given map[string]any) realserver.Response {
	obj := runtime.DeepCopyJSON(given)
	unknown, err := compiled.Prune(obj)
	if err != nil {
		return realserver.Response{Message: err.Error()}
	}
	result := realserver.Response{}
	for _, path := range unknown {
		result.Warnings = append(result.Warnings, fmt.Sprintf("unknown field %q", path))
	}
	compiled.Default(obj)
	metadata := obj["metadata"].(map[string]any)
	metadata["generation"] = int64(1)
	if k.namespaced {
		metadata["namespace"] = namespace
	}
	if errs := compiled.Validate(obj, nil); len(errs) > 0 {
		return realserver.ResponseOf(t, apierrors.NewInvalid(schema.GroupKind{Group: k.group, Kind: k.kind}, "", errs))
	}
	result.Object = obj
	return result
}
