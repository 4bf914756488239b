package table

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
)

// realServer is the sandbox's API server.
type realServer struct {
	conn     *transport.Conn
	registry *kinds.Registry
}

func connect(t *testing.T) *realServer {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return &realServer{conn, kinds.New(nil)}
}

func (s *realServer) send(ctx context.Context, method, path, accept string, body any) (map[string]any, error) {
	req := &transport.Request{Method: method, Path: path, Header: http.Header{"Content-Type": {"application/json"}}}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		req.Body = text
	}
	response, err := s.conn.Do(ctx, req)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var decoded map[string]any
	err = utiljson.Unmarshal(text, &decoded)
	return decoded, err
}

// create creates an object with its status, and deletes it when the test ends.
func (s *realServer) create(t *testing.T, obj map[string]any) *kinds.Resource {
	t.Helper()
	o := object{content: obj}
	resource := s.registry.OfKind(schema.FromAPIVersionAndKind(o.text("apiVersion"), o.text("kind")))
	require.NotNil(t, resource, o.text("kind"))
	path := pathOf(resource, o.text("metadata", "namespace"))
	created, err := s.send(t.Context(), http.MethodPost, path, "", obj)
	require.NoError(t, err)
	path += "/" + o.name()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		_, err := s.send(ctx, http.MethodDelete, path+"?gracePeriodSeconds=0", "", nil)
		assert.NoError(t, err)
		s.removeFinalizers(ctx, path)
	})
	if o.has("status") {
		created["status"] = o.value("status")
		_, err := s.send(t.Context(), http.MethodPut, path+"/status", "", created)
		require.NoError(t, err, o.name())
	}
	return resource
}

func (s *realServer) removeFinalizers(ctx context.Context, path string) {
	left, err := s.send(ctx, http.MethodGet, path, "", nil)
	if metadata, is := left["metadata"].(map[string]any); err == nil && is {
		delete(metadata, "finalizers")
		_, _ = s.send(ctx, http.MethodPut, path, "", left)
	}
}

func pathOf(resource *kinds.Resource, namespace string) string {
	path := "/apis/" + resource.APIVersion()
	if resource.Group == "" {
		path = "/api/v1"
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + resource.Plural
}

// readObjects returns the documents of a YAML file.
func readObjects(t *testing.T, name string) []map[string]any {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var objects []map[string]any
	for decoder := utilyaml.NewYAMLToJSONDecoder(bytes.NewReader(text)); ; {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return objects
		} else {
			require.NoError(t, err)
		}
		var obj map[string]any
		require.NoError(t, utiljson.Unmarshal(raw, &obj))
		objects = append(objects, obj)
	}
}

const tableV1 = "application/json;as=Table;v=v1;g=meta.k8s.io"

// compareTables compares the table of a path with that of its objects as JSON. Ages are those before or after the request.
func (s *realServer) compareTables(t *testing.T, resource *kinds.Resource, path, accept string, opts Options) (rows int) {
	t.Helper()
	obj, err := s.send(t.Context(), http.MethodGet, path, "", nil)
	require.NoError(t, err)
	setKinds(resource, obj)
	var got [2]map[string]any
	opts.Now = time.Now()
	got[0], _, err = Of(resource, obj, opts)
	require.NoError(t, err)
	want, err := s.send(t.Context(), http.MethodGet, path+includeQuery(opts), accept, nil)
	require.NoError(t, err)
	opts.Now = time.Now()
	got[1], _, err = Of(resource, obj, opts)
	require.NoError(t, err)
	list, _ := want["rows"].([]any)
	if assert.ObjectsAreEqual(normalize(t, want), normalize(t, got[0])) {
		return len(list)
	}
	assert.Equal(t, normalize(t, want), normalize(t, got[1]), path)
	return len(list)
}

func includeQuery(opts Options) string {
	if opts.Include == "" {
		return ""
	}
	return "?includeObject=" + string(opts.Include)
}

// setKinds adds kind and apiVersion to the items of a list, as a server has them that keeps objects with both.
func setKinds(resource *kinds.Resource, obj map[string]any) {
	items, _ := obj["items"].([]any)
	for _, item := range items {
		one, _ := item.(map[string]any)
		one["kind"] = resource.Kind
		one["apiVersion"] = resource.APIVersion()
	}
}

// normalize returns a decoded table without values that change between requests.
func normalize(t *testing.T, table map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(table)
	require.NoError(t, err)
	var decoded map[string]any
	require.NoError(t, utiljson.Unmarshal(text, &decoded))
	metadata, _ := decoded["metadata"].(map[string]any)
	require.NotEmpty(t, metadata["resourceVersion"])
	delete(metadata, "resourceVersion")
	return decoded
}
