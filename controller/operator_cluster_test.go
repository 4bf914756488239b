package controller_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) contain(parts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		found := true
		for _, part := range parts {
			found = found && strings.Contains(line, part)
		}
		if found {
			return true
		}
	}
	return false
}

// logged collects the lines of slog's default logger until the test ends.
func logged(t *testing.T) *lines {
	t.Helper()
	l := &lines{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(l, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return l
}

// twoVersions registers gizmos with the versions v1 and v1beta1, and returns a handle on each and on definitions.
func twoVersions(t *testing.T, client *dynamic.Client, namespace string) (stable, beta, crds *dynamic.Resource, name string) {
	t.Helper()
	group := namespace + ".example.com"
	_, err := controller.RegisterCRDs(t.Context(), client, []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.`+group+`}
spec:
  group: `+group+`
  scope: Namespaced
  names: {plural: gizmos, singular: gizmo, kind: Gizmo}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`), nil)
	require.NoError(t, err)
	controllertest.DeleteCRDAfter(t, client, "gizmos."+group)
	return controllertest.Resource(t, client, "gizmos.v1."+group).Namespace(namespace), controllertest.Resource(t, client, "gizmos.v1beta1."+group).Namespace(namespace),
		controllertest.Resource(t, client, "crd"), "gizmos." + group
}

func TestOperator_KeepsStateWhileNotServed(t *testing.T) {
	log := logged(t)
	client, namespace := controllertest.NewNamespace(t)
	stable, beta, crds, definition := twoVersions(t, client, namespace)
	_, err := stable.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}, nil)
	require.NoError(t, err)
	events := make(chan cache.Change[unstructured.Object], 100)
	operator := controller.NewOperator(nil)
	operator.Watch(beta, func(_ context.Context, event cache.Change[unstructured.Object]) error {
		events <- event
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- operator.Run(ctx) }()
	keys := make(chan types.NamespacedName, 100)
	startRun(t, following(t, beta), func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
		keys <- key
		return 0, nil
	}, nil)
	assert.Equal(t, watch.Added, receive(t, events).Type)
	receive(t, keys)

	serve := func(served string) {
		_, err := crds.Patch(t.Context(), definition, types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/versions/1/served","value":`+served+`}]`), nil)
		require.NoError(t, err)
	}
	path, err := beta.Path("")
	require.NoError(t, err)
	serve("false")
	require.Eventually(t, func() bool { return log.contain("level=WARN", "its objects are kept", "resource="+path) }, controllertest.Timeout, 10*time.Millisecond)
	serve("true")
	require.Eventually(t, func() bool { return log.contain("level=INFO", "serves the resource again", "resource="+path) }, controllertest.Timeout, 10*time.Millisecond)
	assert.Empty(t, events, "nothing has changed")
	_, err = stable.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"x":1}}`), nil)
	require.NoError(t, err)
	assert.Equal(t, watch.Modified, receive(t, events).Type)
	receive(t, keys)

	_, err = crds.Delete(t.Context(), definition, nil)
	require.NoError(t, err)
	for event := receive(t, events); ; event = receive(t, events) { // the server may set a deletionTimestamp first
		if event.Type == watch.Deleted {
			assert.False(t, event.FinalStateUnknown, "the server reports the deletion of the objects first")
			break
		}
	}
	cancel()
	require.ErrorIs(t, receive(t, ended), context.Canceled)
}
