package kinds

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/anykind/anykind/apitest/internal/nested"
)

func compareOpenAPI(t *testing.T, server *realServer, registry *Registry, sameHashes bool) {
	t.Helper()
	got := readIndex(t, registry.getText(t, "/openapi/v3", ""))
	server.waitForOpenAPI(t, len(got))
	want := readIndex(t, server.get(t, "/openapi/v3", ""))
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
	if sameHashes {
		assert.Equal(t, want, got)
	}
	d := &documents{server: server, registry: registry}
	var equal atomic.Int32
	var all sync.WaitGroup
	paths := make(chan string, len(want))
	for path := range want {
		paths <- path
	}
	close(paths)
	for range 4 {
		all.Go(func() {
			for path := range paths {
				if d.assertSame(t, path, want[path], got[path]) {
					equal.Add(1)
				}
			}
		})
	}
	d.assertSame(t, "v2", "/openapi/v2", "/openapi/v2")
	all.Wait()
	t.Logf("%d of %d documents of OpenAPI v3 are equal", equal.Load(), len(want))
}

// waitForOpenAPI waits until the server, which publishes definitions some time after their discovery, has count documents
// that do not change for a second.
func (s *realServer) waitForOpenAPI(t *testing.T, count int) {
	t.Helper()
	previous := ""
	require.Eventually(t, func() bool {
		index := s.get(t, "/openapi/v3", "")
		settled := index == previous && len(readIndex(t, index)) == count
		previous = index
		return settled
	}, time.Minute, time.Second)
}

func readIndex(t *testing.T, text string) map[string]string {
	t.Helper()
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &index))
	paths := map[string]string{}
	for path, entry := range index.Paths {
		paths[path] = entry.ServerRelativeURL
	}
	return paths
}

// documents compares the OpenAPI documents of a server and a registry. Most definitions are in many documents and are compared once.
type documents struct {
	server   *realServer
	registry *Registry
	compared sync.Map // pairs of texts
}

// assertSame compares two documents part by part, so that a difference can be read.
func (d *documents) assertSame(t *testing.T, name, serverPath, registryPath string) bool {
	t.Helper()
	want := map[string]json.RawMessage{}
	addParts(want, name, json.RawMessage(d.server.get(t, serverPath, "")), 3)
	got := map[string]json.RawMessage{}
	addParts(got, name, json.RawMessage(d.registry.getText(t, registryPath, "")), 3)
	same := assert.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)), name)
	for key := range want {
		pair := [2]string{string(want[key]), string(got[key])}
		if _, isKnown := d.compared.LoadOrStore(pair, true); !isKnown {
			same = assert.JSONEq(t, pair[0], pair[1], key) && same
		}
	}
	return same
}

// addParts adds the values of a JSON document down to a depth by their keys, such as "paths /api/v1 get".
func addParts(parts map[string]json.RawMessage, keys string, value json.RawMessage, depth int) {
	var fields map[string]json.RawMessage
	if depth == 0 || json.Unmarshal(value, &fields) != nil || len(fields) == 0 {
		parts[keys] = value
		return
	}
	for name, field := range fields {
		addParts(parts, keys+" "+name, field, depth-1)
	}
}

func TestServeHTTP_OpenAPIProtobuf(t *testing.T) {
	registry := New(nil)
	require.NoError(t, registry.SetDefinition(widgets("v1")))
	text := registry.getText(t, "/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
	v2 := &openapi_v2.Document{}
	require.NoError(t, proto.Unmarshal([]byte(text), v2))
	assert.Greater(t, len(v2.Definitions.AdditionalProperties), 500)

	text = registry.getText(t, "/openapi/v3/apis/example.com/v1", protobufType("v3"))
	v3 := &openapi_v3.Document{}
	require.NoError(t, proto.Unmarshal([]byte(text), v3))
	assert.NotEmpty(t, v3.Components.Schemas.AdditionalProperties)
}

func TestServeHTTP_OpenAPIHash(t *testing.T) {
	registry := New(nil)
	require.NoError(t, registry.SetDefinition(widgets("v1")))
	path := readIndex(t, registry.getText(t, "/openapi/v3", ""))["apis/example.com/v1"]
	response := registry.get(t, path, "")
	require.NoError(t, response.Body.Close())
	assert.Equal(t, "public, immutable", response.Header.Get("Cache-Control"))

	changed := widgets("v1", "v2")
	require.NoError(t, registry.SetDefinition(changed))
	response = registry.get(t, path, "")
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusMovedPermanently, response.StatusCode)
	location, err := url.Parse(response.Header.Get("Location"))
	require.NoError(t, err)
	assert.Equal(t, readIndex(t, registry.getText(t, "/openapi/v3", ""))["apis/example.com/v1"], location.String())

	response = registry.get(t, "/openapi/v3/apis/example.com/v9", "")
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusNotFound, response.StatusCode)
	response = registry.get(t, "/openapi/v3/api/v1", "text/html")
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusNotAcceptable, response.StatusCode)
}

func TestResource_TypeConverter(t *testing.T) {
	registry := New(nil)
	require.NoError(t, registry.SetDefinition(widgets("v1")))
	for _, resource := range registry.Resources() {
		if resource.StorageVersion == "" {
			continue
		}
		converter, err := resource.TypeConverter()
		require.NoError(t, err, resource.Plural)
		obj := &unstructuredv1.Unstructured{Object: map[string]any{
			"apiVersion": resource.APIVersion(), "kind": resource.Kind,
			"metadata": map[string]any{"name": "one", "labels": map[string]any{"a": "b"}},
		}}
		typed, err := converter.ObjectToTyped(obj)
		require.NoError(t, err, resource.Plural)
		set, err := typed.ToFieldSet()
		require.NoError(t, err)
		assert.Contains(t, set.String(), ".metadata.labels.a", resource.Plural)
		_, err = converter.ObjectToTyped(&unstructuredv1.Unstructured{Object: map[string]any{
			"apiVersion": resource.APIVersion(), "kind": resource.Kind, "metadata": "wrong",
		}})
		assert.Error(t, err, resource.Plural)
	}
	pods := registry.Lookup("", "v1", "pods")
	converter, err := pods.TypeConverter()
	require.NoError(t, err)
	typed, err := converter.ObjectToTyped(&unstructuredv1.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "nginx"}}},
	}})
	require.NoError(t, err)
	set, err := typed.ToFieldSet()
	require.NoError(t, err)
	assert.Contains(t, set.String(), `.spec.containers[name="web"].image`)
}

func TestResource_OpenAPI(t *testing.T) {
	registry := New(nil)
	require.NoError(t, registry.SetDefinition(widgets("v1")))
	for _, resource := range registry.Resources() {
		schema, err := resource.OpenAPI()
		require.NoError(t, err, resource.Plural)
		require.NotNil(t, schema, resource.Plural)
		text, err := json.Marshal(schema)
		require.NoError(t, err)
		assert.Zero(t, strings.Count(string(text), `"$ref":"#`), resource.Plural)
	}
	widget := mustOpenAPI(t, registry.Lookup("example.com", "v1", "widgets"))
	assert.Equal(t, "integer", nested.String(widget, "properties", "spec", "properties", "size", "type"))
	deployment := mustOpenAPI(t, registry.Lookup("apps", "v1", "deployments"))
	containers := nested.Map(deployment, "properties", "spec", "properties", "template", "properties", "spec", "properties", "containers")
	assert.Equal(t, []string{"name"}, nested.Strings(containers, "x-kubernetes-list-map-keys"))
	assert.Equal(t, "string", nested.String(containers, "items", "properties", "image", "type"))
	assert.NotEmpty(t, nested.String(containers, "description"))
}

func mustOpenAPI(t *testing.T, resource *Resource) map[string]any {
	t.Helper()
	require.NotNil(t, resource)
	schema, err := resource.OpenAPI()
	require.NoError(t, err)
	return schema
}

func TestResource_Definitions(t *testing.T) {
	definitions, object, err := New(nil).Lookup("apps", "v1", "deployments").Definitions()
	require.NoError(t, err)
	assert.Contains(t, object.Properties, "spec")
	assert.Contains(t, definitions, "io.k8s.api.core.v1.Container")
}

func TestResource_Schema(t *testing.T) {
	registry := New(nil)
	require.NoError(t, registry.SetDefinition(widgets("v1")))
	assert.Nil(t, registry.Lookup("", "v1", "pods").Schema())
	schema := registry.Lookup("example.com", "v1", "widgets").Schema()
	require.NotNil(t, schema)
	unknown, err := schema.Prune(map[string]any{"spec": map[string]any{"x": "y"}})
	require.NoError(t, err)
	assert.Equal(t, []string{"spec.x"}, unknown)
}
