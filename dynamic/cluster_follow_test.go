package dynamic_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// mirror applies the changes of a Follow to a map.
type mirror struct {
	t       *testing.T
	objects map[string]string // name → resourceVersion
	next    func() (dynamic.Change[unstructured.Object], error, bool)
}

func newMirror(t *testing.T, r *dynamic.Resource, opts *dynamic.FollowOptions) *mirror {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	next, stop := iter.Pull2(r.Follow(ctx, opts))
	t.Cleanup(stop)
	return &mirror{t: t, objects: map[string]string{}, next: next}
}

// read applies one change and checks that it fits the state.
func (m *mirror) read() watch.EventType {
	m.t.Helper()
	change, err, more := m.next()
	require.NoError(m.t, err)
	require.True(m.t, more)
	if change.Object == nil {
		return change.Type
	}
	name := change.Object.GetName()
	version := change.Object.GetResourceVersion()
	was, known := m.objects[name]
	switch change.Type {
	case watch.Added:
		assert.False(m.t, known, "%s is added again", name)
		m.objects[name] = version
	case watch.Modified:
		assert.True(m.t, known, "%s is modified before it is added", name)
		assert.NotEqual(m.t, was, version, "%s is repeated", name)
		m.objects[name] = version
	case watch.Deleted:
		assert.True(m.t, known, "%s is deleted before it is added", name)
		delete(m.objects, name)
	default:
		assert.Fail(m.t, "an object with the type "+string(change.Type))
	}
	return change.Type
}

// readUntilEqual reads until the mirror has the state of the server.
func (m *mirror) readUntilEqual(of *dynamic.Resource) {
	m.t.Helper()
	want := map[string]string{}
	for obj, err := range of.List(m.t.Context(), nil) {
		require.NoError(m.t, err)
		want[obj.GetName()] = obj.GetResourceVersion()
	}
	for deadline := time.Now().Add(2 * patience); !assert.ObjectsAreEqual(want, m.objects); {
		require.True(m.t, time.Now().Before(deadline), "want %v, have %v", want, m.objects)
		m.read()
	}
}

// churn creates, changes and deletes objects.
func churn(t *testing.T, of *dynamic.Resource, round string) {
	t.Helper()
	for i := range 20 {
		name := fmt.Sprintf("churn-%02d", i)
		_, err := of.Create(t.Context(), configMap(name+"-"+round, nil), nil)
		require.NoError(t, err)
		if i%2 == 0 {
			_, err = of.Patch(t.Context(), name+"-"+round, types.MergePatchType, []byte(`{"data":{"a":"`+round+`"}}`), nil)
			require.NoError(t, err)
		}
		if i%3 == 0 {
			_, err = of.Delete(t.Context(), name+"-"+round, nil)
			require.NoError(t, err)
		}
	}
}

func TestFollow_RecoversFromServerFaults(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	fill(t, configMaps, 3)
	followed := newMirror(t, configMaps, nil)
	assert.Equal(t, dynamic.Started, followed.read())
	for followed.read() != dynamic.Synced {
	}
	followed.readUntilEqual(configMaps)

	churn(t, configMaps, "quiet")
	followed.readUntilEqual(configMaps)

	cluster.RestartAPIServer(t, true)
	churn(t, configMaps, "crash")
	followed.readUntilEqual(configMaps)

	cluster.RestartAPIServer(t, false)
	churn(t, configMaps, "restart")
	followed.readUntilEqual(configMaps)

	// Nothing is read while etcd is compacted, so a relist must follow.
	churn(t, configMaps, "compacted")
	compactAndRestart(t, configMaps)
	followed.readUntilEqual(configMaps)
}

func TestFollow_DefinitionDeletedAndRecreated(t *testing.T) {
	t.Parallel() // after the tests that restart the server
	client, namespace := newNamespace(t)
	first := widgets(t, client, namespace)
	create := func(of *dynamic.Resource) {
		_, err := of.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "w"}}}, nil)
		require.NoError(t, err)
	}
	create(first)
	followed := newMirror(t, first, nil)
	for _, want := range []watch.EventType{dynamic.Started, watch.Added, dynamic.Synced} {
		require.Equal(t, want, followed.read())
	}
	crds := resource(t, client, "crd")
	crd, err := crds.Get(t.Context(), "widgets."+namespace+".example.com", nil)
	require.NoError(t, err)
	_, err = crds.Delete(t.Context(), crd.GetName(), nil)
	require.NoError(t, err)
	// The server deletes the objects before it stops serving the resource, and may report that as a change, too.
	for kind := followed.read(); kind != dynamic.NotServed; kind = followed.read() {
		assert.Contains(t, []watch.EventType{watch.Modified, watch.Deleted}, kind)
	}
	assert.Empty(t, followed.objects)

	crd.SetResourceVersion("")
	crd.SetUID("")
	_, err = crds.Create(t.Context(), crd, nil)
	require.NoError(t, err)
	assert.Equal(t, dynamic.Started, followed.read())
	assert.Equal(t, dynamic.Synced, followed.read())
	create(first)
	assert.Equal(t, watch.Added, followed.read())
}

func TestFollow_Forbidden(t *testing.T) {
	for _, err := range resource(t, connect(t, "limited"), "secrets").Namespace("default").Follow(t.Context(), nil) {
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		assert.ErrorContains(t, err, `cannot watch resource "secrets"`)
	}
}
