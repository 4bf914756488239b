package dynamic_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// zipped returns a handle on a server that responds with body, compressed.
func zipped(t *testing.T, limits transport.MemoryLimits, body string) *dynamic.Resource {
	t.Helper()
	var text strings.Builder
	writer := gzip.NewWriter(&text)
	_, _ = io.WriteString(writer, body)
	require.NoError(t, writer.Close())
	conn := scripted.Connect(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, text.String())
	}), &transport.Options{MemoryLimits: limits})
	return dynamic.New(conn, nil).ForGVR(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("home")
}

func itemsOf(kind, field, item string, count int) string {
	return `{"apiVersion":"v1","kind":"` + kind + `","metadata":{"resourceVersion":"1","name":"web"},"` + field + `":[` +
		item + strings.Repeat(","+item, count-1) + `]}`
}

const nestedItem = `{"a":{"b":{"c":[1]}},"metadata":{"name":"x"}}`

// allocated returns the bytes that f allocates, which are at least those that it holds at any time.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

func TestResource_MemoryLimits(t *testing.T) {
	type configMap struct {
		metav1.TypeMeta
		metav1.ObjectMeta `json:"metadata"`
	}
	limits := transport.MemoryLimits{Object: 4 << 20, Page: 16 << 20}
	list := zipped(t, limits, itemsOf("ConfigMapList", "items", nestedItem, 50000))
	table := zipped(t, limits, strings.Replace(itemsOf("Table", "rows", `{}`, 500000), `"v1"`, `"meta.k8s.io/v1"`, 1))
	ctx := t.Context()
	for name, c := range map[string]struct {
		isPage bool
		call   func() error
	}{
		"Get":           {false, func() error { _, err := list.Get(ctx, "web", nil); return err }},
		"Get, metadata": {false, func() error { _, err := list.Metadata().Get(ctx, "web", nil); return err }},
		"Get, typed":    {false, func() error { _, err := dynamic.As[configMap](list).Get(ctx, "web", nil); return err }},
		"Get, lazy":     {false, func() error { _, err := dynamic.As[unstructured.Lazy](list).Get(ctx, "web", nil); return err }},
		"Get, table":    {false, func() error { _, err := table.Tables("").Get(ctx, "web", nil); return err }},
		"Delete":        {false, func() error { _, err := list.Delete(ctx, "web", nil); return err }},
		"Create":        {false, func() error { _, err := list.Create(ctx, namedObject("web"), nil); return err }},
		"Watch": {false, func() error {
			for _, err := range list.Watch(ctx, nil) {
				return err
			}
			return nil
		}},
		"ListPage":         {true, func() error { _, err := list.ListPage(ctx, nil); return err }},
		"ListPage, typed":  {true, func() error { _, err := dynamic.As[configMap](list).ListPage(ctx, nil); return err }},
		"ListPage, lazy":   {true, func() error { _, err := dynamic.As[unstructured.Lazy](list).ListPage(ctx, nil); return err }},
		"DeleteCollection": {true, func() error { _, err := list.DeleteCollection(ctx, nil, nil); return err }},
		"ListPage, table":  {true, func() error { _, err := table.Tables("").ListPage(ctx, nil); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			limit := limits.Object
			if c.isPage {
				limit = limits.Page
			}
			allocated := allocated(func() { err = c.call() })
			tooLarge := &unstructured.LimitError{}
			require.ErrorAs(t, err, &tooLarge)
			assert.Equal(t, limit, tooLarge.Limit)
			assert.Less(t, allocated, 4*limit+1<<20)
		})
	}
	t.Run("List", func(t *testing.T) {
		count := 0
		for _, err := range list.List(ctx, nil) {
			require.NoError(t, err)
			count++
		}
		assert.Equal(t, 50000, count)
	})
}

func namedObject(name string) *unstructured.Object {
	obj := &unstructured.Object{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	obj.SetName(name)
	return obj
}

// The server has stored an object that the client cannot hold.
func TestResource_OnWriteOverTheLimit(t *testing.T) {
	configMaps := zipped(t, transport.MemoryLimits{Object: 1 << 20},
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"home","uid":"u","resourceVersion":"7"},"a":[{}`+strings.Repeat(",{}", 20000)+`]}`)
	var writes []dynamic.Write
	_, err := configMaps.OnWrite(func(context.Context, string, string) func(dynamic.Write) {
		return func(w dynamic.Write) { writes = append(writes, w) }
	}).Update(t.Context(), namedObject("web"), nil)
	tooLarge := &unstructured.LimitError{}
	require.ErrorAs(t, err, &tooLarge)
	assert.Equal(t, []dynamic.Write{{Namespace: "home", Name: "web", UID: "u", ResourceVersion: "7"}}, writes)
}
