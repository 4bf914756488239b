package apitest_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

func object(t testing.TB, text string) *unstructured.Object {
	t.Helper()
	for obj, err := range unstructured.NewYAMLDecoder(strings.NewReader(text)).All() {
		require.NoError(t, err)
		return obj
	}
	t.Fatal("no object")
	return nil
}

const widgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    selectableFields: [{jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              color: {type: string, default: red}
              size: {type: integer, minimum: 1}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

const widget = `{apiVersion: shop.example.com/v1, kind: Widget, metadata: {name: one, namespace: default}, spec: {size: 3}}`

const configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default}, data: {a: "1"}}`

// eachConnection runs a test on loopback and in memory inside a synctest bubble.
func eachConnection(t *testing.T, test func(t *testing.T, opts apitest.Options)) {
	t.Helper()
	t.Run("loopback", func(t *testing.T) { test(t, apitest.Options{}) })
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, apitest.Options{InMemory: true}) })
	})
}

func handle(t testing.TB, client *dynamic.Client, name string) *dynamic.Resource {
	t.Helper()
	resource, err := client.Resource(t.Context(), name)
	require.NoError(t, err)
	return resource.Namespace("default")
}

func TestServer_VerbsOfBuiltinKinds(t *testing.T) {
	eachConnection(t, func(t *testing.T, opts apitest.Options) {
		server := apitest.NewServer(t, &opts)
		testVerbs(t, handle(t, server.Client(), "configmaps"), object(t, configMap), "data", "a")
	})
}

func TestServer_VerbsOfCustomResources(t *testing.T) {
	eachConnection(t, func(t *testing.T, opts apitest.Options) {
		server := apitest.NewServer(t, &opts)
		ctx := t.Context()
		client := server.Client()
		definitions, err := client.Resource(ctx, "crd")
		require.NoError(t, err)
		_, err = definitions.Create(ctx, object(t, widgetDefinition), nil)
		require.NoError(t, err)
		testVerbs(t, handle(t, client, "wd"), object(t, widget), "spec", "color")
		_, err = definitions.Delete(ctx, "widgets.shop.example.com", nil)
		require.NoError(t, err)
		_, err = definitions.Get(ctx, "widgets.shop.example.com", nil)
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	})
}

// testVerbs creates, reads, changes and deletes an object, and compares it with what a watch reports.
func testVerbs(t *testing.T, resource *dynamic.Resource, obj *unstructured.Object, path ...string) {
	t.Helper()
	ctx := t.Context()
	stream, err := resource.OpenWatch(ctx, nil)
	require.NoError(t, err)
	events := make(chan string, 10)
	go func() {
		defer close(events)
		for event, err := stream.Next(); err == nil; event, err = stream.Next() {
			if event.Object.GetName() == obj.GetName() {
				events <- string(event.Type) + " " + event.Object.GetResourceVersion()
			}
		}
	}()
	created, err := resource.Create(ctx, obj, nil)
	require.NoError(t, err)
	assert.NotEmpty(t, created.GetUID())
	assert.NotEmpty(t, created.GetCreationTimestamp())
	assert.Equal(t, string(watch.Added)+" "+created.GetResourceVersion(), <-events)
	_, err = resource.Create(ctx, obj, nil)
	assert.True(t, apierrors.IsAlreadyExists(err), "%v", err)

	got, err := resource.Get(ctx, obj.GetName(), nil)
	require.NoError(t, err)
	assert.Equal(t, created.Object, got.Object)
	require.NoError(t, unstructured.Set(got, "blue", path...))
	updated, err := resource.Update(ctx, got, nil)
	require.NoError(t, err)
	assert.Equal(t, string(watch.Modified)+" "+updated.GetResourceVersion(), <-events)
	_, err = resource.Update(ctx, got, nil)
	assert.True(t, apierrors.IsConflict(err), "%v", err)
	patched, err := resource.Patch(ctx, obj.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), nil)
	require.NoError(t, err)
	assert.Equal(t, string(watch.Modified)+" "+patched.GetResourceVersion(), <-events)

	var names []string
	for item, err := range resource.List(ctx, &metav1.ListOptions{LabelSelector: "a=b"}) {
		require.NoError(t, err)
		names = append(names, item.GetName())
	}
	assert.Equal(t, []string{obj.GetName()}, names)
	_, err = resource.Delete(ctx, obj.GetName(), nil)
	require.NoError(t, err)
	assert.Contains(t, <-events, "DELETED ")
	_, err = resource.Get(ctx, obj.GetName(), nil)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	stream.Close()
	for range events {
		assert.Fail(t, "more events than writes")
	}
}

func TestServer_WatchWaitsInSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apitest.NewServer(t, &apitest.Options{InMemory: true})
		start := time.Now()
		maps := handle(t, server.Client(), "configmaps")
		var created sync.WaitGroup
		created.Go(func() {
			time.Sleep(time.Hour)
			_, err := maps.Create(t.Context(), object(t, configMap), nil)
			assert.NoError(t, err)
		})
		for event, err := range maps.Follow(t.Context(), nil) {
			require.NoError(t, err)
			if event.Object != nil && event.Object.GetName() == "settings" {
				break
			}
		}
		created.Wait()
		assert.Equal(t, time.Hour, time.Since(start).Round(time.Second))
	})
}
