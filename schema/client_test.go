package schema

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/unstructured"
)

var widgets = schema.GroupVersion{Group: "example.com", Version: "v1"}

// widgetDocument describes kind Widget with a field of the given name.
func widgetDocument(field string) string {
	return fmt.Sprintf(`{"openapi":"3.0.0","paths":{},"components":{"schemas":{"com.example.v1.Widget":{"type":"object",
		"properties":{"spec":{"type":"object","properties":{%q:{"type":"string"}}}},
		"x-kubernetes-group-version-kind":[{"group":"example.com","kind":"Widget","version":"v1"}]}}}}`, field)
}

// openAPIServer serves the document of widgets, and counts its requests.
type openAPIServer struct {
	*scripted.Server
	hash, field string
}

func newOpenAPIServer() *openAPIServer {
	s := &openAPIServer{Server: scripted.New(""), hash: "A", field: "color"}
	s.Handle("GET /openapi/v3", func(w http.ResponseWriter, r *http.Request) {
		etag := `"index-` + s.hash + `"`
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		scripted.JSON(fmt.Sprintf(`{"paths":{
			"version":{"serverRelativeURL":"/openapi/v3/version?hash=1"},
			"apis/example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/example.com/v1?hash=%s"}}}`, s.hash))(w, r)
	})
	s.Handle("GET /openapi/v3/apis/example.com/v1", func(w http.ResponseWriter, r *http.Request) {
		scripted.JSON(widgetDocument(s.field))(w, r)
	})
	return s
}

func (s *openAPIServer) requests() []string {
	var all []string
	for _, request := range s.Requests() {
		all = append(all, request.URI)
	}
	return all
}

func fieldsOf(t *testing.T, c *Client, kind string) []string {
	t.Helper()
	widget, err := c.Kind(t.Context(), widgets.WithKind(kind))
	require.NoError(t, err)
	var names []string
	for name := range widget.Field("spec").Fields() {
		names = append(names, name)
	}
	return names
}

const (
	indexURI    = "/openapi/v3"
	documentURI = "/openapi/v3/apis/example.com/v1?hash=A"
)

func TestClient_Kind_ReadsEachDocumentOnce(t *testing.T) {
	server := newOpenAPIServer()
	c := New(scripted.Connect(t, server, nil), nil)
	for range 2 {
		assert.Equal(t, []string{"color"}, fieldsOf(t, c, "Widget"))
	}
	assert.Equal(t, []string{indexURI, documentURI}, server.requests())
}

func TestClient_Kind_UnknownKindReadsTheIndexAgain(t *testing.T) {
	server := newOpenAPIServer()
	c := New(scripted.Connect(t, server, nil), nil)
	fieldsOf(t, c, "Widget")
	_, err := c.Kind(t.Context(), widgets.WithKind("Gadget"))
	var noMatch *meta.NoKindMatchError
	require.ErrorAs(t, err, &noMatch)
	assert.Contains(t, err.Error(), `schema of Gadget of example.com/v1: no matches for kind "Gadget"`)
	assert.Equal(t, []string{indexURI, documentURI, indexURI}, server.requests())
}

func TestClient_Kind_GroupVersionNoLongerServed(t *testing.T) {
	server := newOpenAPIServer()
	c := New(scripted.Connect(t, server, nil), nil)
	require.NoError(t, c.Refresh(t.Context()))
	server.Handle("GET /openapi/v3", scripted.JSON(`{"paths":{}}`))
	server.Handle("GET /openapi/v3/apis/example.com/v1", http.NotFound)
	_, err := c.Kind(t.Context(), widgets.WithKind("Widget"))
	var noMatch *meta.NoKindMatchError
	require.ErrorAs(t, err, &noMatch)
	assert.Equal(t, []string{indexURI, documentURI, indexURI}, server.requests())
}

func TestClient_Refresh_ReadsChangedDocumentsOnly(t *testing.T) {
	server := newOpenAPIServer()
	c := New(scripted.Connect(t, server, nil), nil)
	fieldsOf(t, c, "Widget")
	require.NoError(t, c.Refresh(t.Context()))
	assert.Equal(t, []string{"color"}, fieldsOf(t, c, "Widget"))
	server.hash, server.field = "B", "size"
	assert.Equal(t, []string{"color"}, fieldsOf(t, c, "Widget"), "until the index is read again")
	require.NoError(t, c.Refresh(t.Context()))
	assert.Equal(t, []string{"size"}, fieldsOf(t, c, "Widget"))
	assert.Equal(t, []string{indexURI, documentURI, indexURI, indexURI, strings.ReplaceAll(documentURI, "A", "B")}, server.requests())
}

func TestClient_Kind_WarmDiskCostsOneConditionalRequest(t *testing.T) {
	server := newOpenAPIServer()
	dir := t.TempDir()
	connect := func() *Client { return New(scripted.Connect(t, server, nil), &Options{Dir: dir}) }
	fieldsOf(t, connect(), "Widget")
	assert.Equal(t, []string{"color"}, fieldsOf(t, connect(), "Widget"))
	assert.Equal(t, []string{indexURI, documentURI, indexURI}, server.requests())

	server.hash, server.field = "B", "size"
	assert.Equal(t, []string{"size"}, fieldsOf(t, connect(), "Widget"))
	files, err := filepath.Glob(filepath.Join(dir, "openapi", "*", "apis_*"))
	require.NoError(t, err)
	require.Len(t, files, 1, "the outdated document is removed")

	require.NoError(t, os.WriteFile(files[0], []byte(`{"components":`), 0o600))
	assert.Equal(t, []string{"size"}, fieldsOf(t, connect(), "Widget"), "a damaged file is read from the server")
}

// TestClient_Kind_ChangedDocument has a definition that changes after the read of the list, and changes back. As kube-apiserver does, the
// server redirects a request with the previous hash.
func TestClient_Kind_ChangedDocument(t *testing.T) {
	server := newOpenAPIServer()
	server.Handle("GET /openapi/v3/apis/example.com/v1", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("hash") != server.hash {
			http.Redirect(w, r, r.URL.Path+"?hash="+server.hash, http.StatusMovedPermanently)
			return
		}
		scripted.JSON(widgetDocument(server.field))(w, r)
	})
	c := New(scripted.Connect(t, server, nil), &Options{Dir: t.TempDir()})
	require.NoError(t, c.Refresh(t.Context()))
	server.hash, server.field = "B", "size"
	assert.Equal(t, []string{"size"}, fieldsOf(t, c, "Widget"))
	assert.Equal(t, []string{"size"}, fieldsOf(t, c, "Widget"))
	server.hash, server.field = "A", "color"
	require.NoError(t, c.Refresh(t.Context()))
	assert.Equal(t, []string{"color"}, fieldsOf(t, c, "Widget"))
}

func TestClient_Save_OpensOffline(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "saved")
	require.NoError(t, New(scripted.Connect(t, newOpenAPIServer(), nil), nil).Save(t.Context(), dir))
	c, err := NewOffline(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"color"}, fieldsOf(t, c, "Widget"))
	kinds, err := c.Kinds(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []schema.GroupVersionKind{widgets.WithKind("Widget")}, kinds)

	_, err = NewOffline(filepath.Join(dir, "missing"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestClient_Kind_EndsWithItsContext(t *testing.T) {
	c := New(scripted.Connect(t, http.HandlerFunc(scripted.Hang), nil), nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := c.Kind(ctx, widgets.WithKind("Widget"))
		done <- err
	}()
	waiting, stop := context.WithCancelCause(t.Context())
	stop(assert.AnError)
	require.Eventually(t, func() bool { return len(c.busy) == 1 }, time.Minute, time.Millisecond, "the first call begins")
	_, err := c.Kind(waiting, widgets.WithKind("Widget"))
	assert.ErrorIs(t, err, assert.AnError, "behind another call")
	assert.ErrorIs(t, err, context.Canceled)
	cancel()
	assert.ErrorIs(t, <-done, context.Canceled)
}

func TestClient_Kind_ServerErrors(t *testing.T) {
	for name, test := range map[string]struct {
		index, document http.HandlerFunc
		want            string
	}{
		"forbidden":          {index: scripted.Status(http.StatusForbidden, "Forbidden"), want: "as scripted"},
		"not served":         {index: scripted.NotServed, want: "the response is 404 Not Found"},
		"index no JSON":      {index: scripted.JSON(`[`), want: "GET /openapi/v3: unexpected end"},
		"document no JSON":   {document: scripted.JSON(`{"components":[]}`), want: "GET /openapi/v3/apis/example.com/v1: parse OpenAPI document: components is not a JSON object"},
		"document is gone":   {document: scripted.NotServed, want: "the response is 404 Not Found"},
		"document truncated": {document: scripted.JSON(widgetDocument("a")[:90]), want: "unexpected"},
	} {
		t.Run(name, func(t *testing.T) {
			server := newOpenAPIServer()
			if test.index != nil {
				server.Handle("GET /openapi/v3", test.index)
			}
			if test.document != nil {
				server.Handle("GET /openapi/v3/apis/example.com/v1", test.document)
			}
			_, err := New(scripted.Connect(t, server, nil), nil).Kind(t.Context(), widgets.WithKind("Widget"))
			require.Error(t, err)
			assert.Contains(t, err.Error(), "schema of Widget of example.com/v1: ")
			assert.Contains(t, err.Error(), test.want)
		})
	}
}

const widgetDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
	"spec":{"group":"example.com","names":{"kind":"Widget"},"versions":[
		{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","properties":{
			"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":5}}},
			"spec":{"type":"object","properties":{"weight":{"type":"integer"}}}}}}},
		{"name":"v2","schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

func TestClient_WithDefinitions(t *testing.T) {
	definition, err := unstructured.Decode([]byte(widgetDefinition))
	require.NoError(t, err)
	offline, err := NewOffline("")
	require.NoError(t, err)
	c, err := offline.WithDefinitions(definition)
	require.NoError(t, err)
	assert.Equal(t, []string{"weight"}, fieldsOf(t, c, "Widget"))
	widget, err := c.Kind(t.Context(), widgets.WithKind("Widget"))
	require.NoError(t, err)
	assert.Equal(t, "string", widget.Field("apiVersion").Type)
	metadata := widget.Field("metadata")
	assert.Equal(t, "object", metadata.Field("labels").Type)
	require.Len(t, metadata.AllOf, 1)
	assert.Equal(t, int64(5), *metadata.AllOf[0].Field("name").MaxLength)
	second, err := c.Kind(t.Context(), schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Widget"})
	require.NoError(t, err)
	assert.True(t, second.PreserveUnknownFields)

	_, err = offline.Kind(t.Context(), widgets.WithKind("Widget"))
	assert.Error(t, err, "the client without definitions is unchanged")
	_, err = c.WithDefinitions(&unstructured.Object{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}})
	assert.ErrorContains(t, err, "kind is Pod of v1, not CustomResourceDefinition")
}
