package controllerruntime

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// limited returns a client of a server that responds with body.
func limited(t *testing.T, limits transport.MemoryLimits, body string) *cachingClient {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	conn, err := transport.New(server.URL, server.Client(), &transport.Options{MemoryLimits: limits})
	require.NoError(t, err)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	return &cachingClient{api: newAPIClient(conn, scheme.Scheme, mapper, &warningForwarder{})}
}

func TestClient_MemoryLimits(t *testing.T) {
	limits := transport.MemoryLimits{Object: 8 << 20, Page: 32 << 20}
	list := limited(t, limits, `{"apiVersion":"v1","kind":"PodList","items":[{}`+strings.Repeat(`,{}`, 400000)+`]}`)
	object := limited(t, limits, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","managedFields":[{}`+strings.Repeat(`,{}`, 100000)+
		`]},"spec":{"containers":[{}`+strings.Repeat(`,{}`, 100000)+`]}}`)
	yaml := limited(t, limits, `{apiVersion: v1, kind: Pod, spec: {containers: [{}`+strings.Repeat(`,{}`, 100000)+`]}}`)
	ctx := t.Context()
	key := ctrlclient.ObjectKey{Namespace: "home", Name: "web"}
	pod := func() *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "web"}} }
	untyped := &unstructuredv1.Unstructured{}
	untyped.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	untypedList := &unstructuredv1.UnstructuredList{}
	untypedList.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	listObject := &unstructuredv1.Unstructured{}
	listObject.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	listObject.Object["items"] = []any{} // a list that is no UnstructuredList
	metadata := &metav1.PartialObjectMetadata{}
	metadataList := &metav1.PartialObjectMetadataList{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	metadataList.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	for name, c := range map[string]struct {
		limit int64
		call  func(context.Context) error
	}{
		"Get, typed":         {limits.Object, func(ctx context.Context) error { return object.Get(ctx, key, pod()) }},
		"Get, unstructured":  {limits.Object, func(ctx context.Context) error { return object.Get(ctx, key, untyped) }},
		"Get, metadata":      {limits.Object, func(ctx context.Context) error { return object.Get(ctx, key, metadata) }},
		"Update":             {limits.Object, func(ctx context.Context) error { return object.Update(ctx, pod()) }},
		"Delete":             {limits.Object, func(ctx context.Context) error { return object.Delete(ctx, pod()) }},
		"List, typed":        {limits.Page, func(ctx context.Context) error { return list.List(ctx, &corev1.PodList{}) }},
		"List, unstructured": {limits.Page, func(ctx context.Context) error { return list.List(ctx, untypedList) }},
		"List, metadata":     {limits.Page, func(ctx context.Context) error { return list.List(ctx, metadataList) }},
		"List, one object":   {limits.Page, func(ctx context.Context) error { return list.List(ctx, listObject) }},
		"YAML":               {0, func(ctx context.Context) error { return yaml.Get(ctx, key, pod()) }},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := c.call(ctx)
			runtime.ReadMemStats(&after)
			require.Error(t, err)
			if tooLarge := (&unstructured.LimitError{}); c.limit > 0 && assert.ErrorAs(t, err, &tooLarge) {
				assert.Equal(t, c.limit, tooLarge.Limit)
			}
			assert.Less(t, int64(after.TotalAlloc-before.TotalAlloc), 4*max(c.limit, limits.Object))
		})
	}
	assert.NoError(t, list.DeleteAllOf(ctx, pod(), ctrlclient.InNamespace("home")))
}
