package table

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/apitest/internal/kinds"
)

func TestOf_BuiltinKindsEqualServer(t *testing.T) {
	server := connect(t)
	for _, obj := range readObjects(t, "testdata/objects.yaml") {
		server.create(t, obj)
	}
	_, err := server.send(t.Context(), http.MethodDelete, "/api/v1/namespaces/default/pods/deleted", "", nil)
	require.NoError(t, err)
	compared := 0
	rows := 0
	for _, resource := range server.registry.Resources() {
		if !resource.HasVerb("list") || resource.Plural == "componentstatuses" {
			continue
		}
		count := server.compareTables(t, resource, pathOf(resource, ""), tableV1, Options{Version: "v1"})
		if count == 0 {
			t.Logf("no object of %s", resource.GroupVersionResource())
		}
		compared = compared + 1
		rows = rows + count
	}
	t.Logf("%d tables with %d rows", compared, rows)
	pods := server.registry.Lookup("", "v1", "pods")
	path := pathOf(pods, "default")
	server.compareTables(t, pods, path+"/running", tableV1, Options{Version: "v1"})
	server.compareTables(t, pods, path+"/succeeded", tableV1, Options{Version: "v1", Include: metav1.IncludeObject})
	server.compareTables(t, pods, path, tableV1, Options{Version: "v1", Include: metav1.IncludeNone})
	server.compareTables(t, pods, path+"/running", "application/json;as=Table;v=v1beta1;g=meta.k8s.io", Options{Version: "v1beta1"})
}

func TestOf_CustomResourcesEqualServer(t *testing.T) {
	server := connect(t)
	definition := readObjects(t, "testdata/definition.yaml")[0]
	server.create(t, definition)
	require.NoError(t, server.registry.SetDefinition(definition))
	gadgets := server.registry.Lookup("tables.example.com", "v1", "gadgets")
	plain := server.registry.Lookup("tables.example.com", "v2", "gadgets")
	require.Eventually(t, func() bool {
		_, err := server.send(t.Context(), http.MethodGet, pathOf(gadgets, ""), "", nil)
		return err == nil
	}, time.Minute, 100*time.Millisecond)
	assert.Zero(t, server.compareTables(t, gadgets, pathOf(gadgets, ""), tableV1, Options{Version: "v1"}))
	for _, obj := range readObjects(t, "testdata/gadgets.yaml") {
		server.create(t, obj)
	}
	assert.Equal(t, 3, server.compareTables(t, gadgets, pathOf(gadgets, ""), tableV1, Options{Version: "v1"}))
	assert.Equal(t, 3, server.compareTables(t, plain, pathOf(plain, ""), tableV1, Options{Version: "v1"}))
	server.compareTables(t, gadgets, pathOf(gadgets, "default")+"/full", tableV1, Options{Version: "v1", Include: metav1.IncludeObject})
}

func TestPartialMetadata_EqualsServer(t *testing.T) {
	server := connect(t)
	services := server.registry.Lookup("", "v1", "services")
	for path, as := range map[string]string{
		pathOf(services, ""): "PartialObjectMetadataList", pathOf(services, "default") + "/kubernetes": "PartialObjectMetadata",
	} {
		for _, version := range []string{"v1", "v1beta1"} {
			obj, err := server.send(t.Context(), http.MethodGet, path, "", nil)
			require.NoError(t, err)
			want, err := server.send(t.Context(), http.MethodGet, path, "application/json;as="+as+";v="+version+";g=meta.k8s.io", nil)
			require.NoError(t, err)
			assert.Equal(t, normalize(t, want), normalize(t, PartialMetadata(services, obj, version)))
		}
	}
}

func TestOf_EveryKindHasCells(t *testing.T) {
	now := time.Now()
	for _, resource := range kinds.New(nil).Resources() {
		columns, err := resource.Columns()
		require.NoError(t, err)
		if len(columns) == 0 {
			continue
		}
		p, warning, err := newPrinter(resource, now)
		require.NoError(t, err)
		assert.Empty(t, warning)
		cells := p.cells(object{map[string]any{"metadata": map[string]any{"name": "one"}}, now})
		if resource.Plural == "ipaddresses" {
			columns = append(columns, kinds.Column{Name: "Age"}) // a cell without a column, as on the real server
		}
		assert.Len(t, cells, len(columns), resource.Plural)
	}
}

func TestOf_UnknownColumns(t *testing.T) {
	p := &printer{now: time.Now(), columns: []kinds.Column{{Name: "Name"}, {Name: "Size"}, {Name: "Age"}}}
	assert.Equal(t, []any{"one", "<unknown>", "<unknown>"}, p.fallbackCells(object{map[string]any{"metadata": map[string]any{"name": "one"}}, p.now}))
}

func TestOf_Rejects(t *testing.T) {
	_, _, err := Of(kinds.New(nil).Lookup("", "v1", "pods"), map[string]any{}, Options{Version: "v1", Include: "All"})
	assert.ErrorContains(t, err, `unrecognized includeObject value: "All"`)
}

func TestOf_NoColumns(t *testing.T) {
	table, warning, err := Of(kinds.New(nil).Lookup("", "v1", "pods"), map[string]any{}, Options{Version: "v1", NoColumns: true})
	require.NoError(t, err)
	assert.Empty(t, warning)
	assert.Nil(t, table["columnDefinitions"])
	assert.Len(t, table["rows"], 1)
}
