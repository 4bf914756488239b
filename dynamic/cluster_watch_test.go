package dynamic_test

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

func TestWatch_EventsOfOneObject(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	now, err := configMaps.ListPage(t.Context(), nil)
	require.NoError(t, err)
	next, stop := iter.Pull2(configMaps.Watch(t.Context(), &metav1.ListOptions{
		ResourceVersion: now.ResourceVersion, FieldSelector: "metadata.name=watched",
	}))
	defer stop()
	expect := func(kind, value string) {
		event, err, more := next()
		require.NoError(t, err)
		require.True(t, more)
		assert.Equal(t, kind, string(event.Type))
		assert.Equal(t, "ConfigMap", event.Object.GetKind())
		assert.Equal(t, value, field(t, event.Object, "data", "a"))
	}
	_, err = configMaps.Create(t.Context(), configMap("watched", map[string]any{"a": "1"}), nil)
	require.NoError(t, err)
	expect("ADDED", "1")
	_, err = configMaps.Patch(t.Context(), "watched", types.MergePatchType, []byte(`{"data":{"a":"2"}}`), nil)
	require.NoError(t, err)
	expect("MODIFIED", "2")
	_, err = configMaps.Delete(t.Context(), "watched", nil)
	require.NoError(t, err)
	expect("DELETED", "2")
}

func TestWatch_WithoutResourceVersionBeginsWithObjects(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	fill(t, configMaps, 2)
	var added []string
	for event, err := range configMaps.Watch(t.Context(), &metav1.ListOptions{LabelSelector: "app=many"}) {
		require.NoError(t, err)
		if added = append(added, event.Object.GetName()); len(added) == 2 {
			break
		}
	}
	assert.ElementsMatch(t, []string{"many-000", "many-001"}, added)
}

func TestWatch_InitialEventsEndWithBookmark(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	fill(t, configMaps, 2)
	var seen []string
	for event, err := range configMaps.Watch(t.Context(), &metav1.ListOptions{
		LabelSelector: "app=many", SendInitialEvents: new(true), AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}) {
		require.NoError(t, err)
		seen = append(seen, string(event.Type))
		if event.Object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			break
		}
	}
	assert.Equal(t, []string{"ADDED", "ADDED", "BOOKMARK"}, seen)
}

func TestWatch_ServerTimeoutIsNoError(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	require.NoError(t, drain(configMaps.Watch(t.Context(), &metav1.ListOptions{TimeoutSeconds: new(int64(1))})))
}

func TestWatch_ExpiredResourceVersion(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	old, err := configMaps.Create(t.Context(), configMap("old", nil), nil)
	require.NoError(t, err)
	compactAndRestart(t, configMaps)
	err = drain(configMaps.Watch(t.Context(), &metav1.ListOptions{ResourceVersion: old.GetResourceVersion()}))
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
}

func TestWatch_ServerCrash(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	fill(t, configMaps, 1)
	events, stop := iter.Pull2(configMaps.Watch(t.Context(), &metav1.ListOptions{LabelSelector: "app=many"}))
	defer stop()
	_, err, _ := events()
	require.NoError(t, err)

	cluster.RestartAPIServer(t, true)
	event, err, more := events()
	assert.True(t, !more || err != nil, "the stream broke, but the watch goes on with %v", event)
	read, err := configMaps.Get(t.Context(), "many-000", nil)
	require.NoError(t, err)
	assert.Equal(t, "0", field(t, read, "data", "n"))
}

func TestWatch_ContextCanceled(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	fill(t, configMaps, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for event, err := range configMaps.Watch(ctx, &metav1.ListOptions{LabelSelector: "app=many"}) {
		if err == nil {
			assert.Equal(t, unstructured.WatchEvent[unstructured.Object]{Type: "ADDED", Object: event.Object}, event)
			cancel()
		}
		last = err
	}
	require.ErrorIs(t, last, context.Canceled)
}
