package controller_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/unstructured"
)

var lampV1 = schema.GroupVersionKind{Group: "none.example.com", Version: "v1", Kind: "Lamp"}

func discard(context.Context, cache.Change[unstructured.Object]) error { return nil }

func TestOperator_WatchKindWaitsUntilRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := controllertest.New(t)
		text := &lines{}
		operator := controller.NewOperator(&controller.Options{Logger: slog.New(slog.NewTextHandler(text, nil))})
		operator.WatchKind(client, lampV1, "", discard)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := operator.Run(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.True(t, text.contain("level=INFO", "the kind is not served yet: its watch waits", "kind=Lamp.none.example.com", "serves no resource or kind"))
	})
}

// deleteLeases removes leases from the server's discovery documents with the first request for leases.
func deleteLeases(server *scripted.Server) {
	server.Handle("", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/leases") {
			server.Serve("")
		}
		scripted.NotServed(w, r)
	})
}

func TestOperator_WatchKindWaitsForDeletedKind(t *testing.T) {
	lease := schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}
	for name, isListed := range map[string]bool{"deleted before Run": false, "deleted after its lookup": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := scripted.New(controllertest.Resources)
				deleteLeases(server)
				client := controllertest.Serve(t, server)
				_, err := client.ForKind(t.Context(), lease)
				require.NoError(t, err)
				if !isListed {
					server.Serve("")
				}
				time.AfterFunc(time.Hour, func() {
					server.Handle("WATCH /apis/coordination.k8s.io/v1/leases", scripted.Watch(scripted.Event("ADDED",
						`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"a","namespace":"shop","uid":"u","resourceVersion":"1"}}`)))
					server.Serve(controllertest.Resources)
				})
				text := &lines{}
				var added []string
				operator := controller.NewOperator(&controller.Options{
					Logger: slog.New(slog.NewTextHandler(text, nil)),
					QueueMetrics: func(resource *dynamic.Resource) workqueue.Metrics {
						return workqueue.Metrics{OnAdd: func() { added = append(added, resource.APIResource().GVK.Kind) }}
					},
				})
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
				defer cancel()
				operator.WatchKind(client, lease, "", func(_ context.Context, change cache.Change[unstructured.Object]) error {
					assert.Equal(t, "a", change.Object.GetName())
					cancel()
					return nil
				})
				require.ErrorIs(t, operator.Run(ctx), context.Canceled)
				assert.True(t, text.contain("its watch waits", "kind=Lease.coordination.k8s.io"))
				assert.Equal(t, []string{"Lease"}, added)
			})
		})
	}
}

// TestOperator_WatchKindDeletedInFirstList deletes a kind after the first object of the first list.
func TestOperator_WatchKindDeletedInFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const route = "WATCH /apis/coordination.k8s.io/v1/leases"
		server := scripted.New(controllertest.Resources)
		client := controllertest.Serve(t, server)
		deleteLeases(server)
		server.Handle(route, scripted.JSON(scripted.Event("ADDED",
			`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"a","namespace":"shop","uid":"u","resourceVersion":"1"}}`)),
			scripted.NotServed)
		time.AfterFunc(time.Hour, func() {
			server.Handle(route, scripted.Watch(scripted.InitialEventsEnd("coordination.k8s.io/v1", "Lease", "9")))
			server.Serve(controllertest.Resources)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		var got []string
		operator := controller.NewOperator(&controller.Options{Logger: slog.New(slog.DiscardHandler)})
		operator.WatchKind(client, schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, "",
			func(_ context.Context, change cache.Change[unstructured.Object]) error {
				if got = append(got, changeText(change)); change.Type == watch.Deleted {
					cancel()
				}
				return nil
			})
		require.ErrorIs(t, operator.Run(ctx), context.Canceled)
		assert.Equal(t, []string{"ADDED u 1", "DELETED u 1 was 1 final state unknown"}, got)
	})
}

func TestOperator_WatchKindErrorEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := controllertest.Serve(t, scripted.Status(http.StatusForbidden, "Forbidden"))
		operator := controller.NewOperator(&controller.Options{Logger: slog.New(slog.DiscardHandler)})
		operator.WatchKind(client, lampV1, "", discard)
		err := operator.Run(t.Context())
		assert.True(t, apierrors.IsForbidden(err), err)
	})
}

// TestOperator_WatchKindStartsWithItsDefinition defines a kind while the operator runs, and deletes it again.
func TestOperator_WatchKindStartsWithItsDefinition(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	log := logged(t)
	events := make(chan cache.Change[unstructured.Object], 100)
	configMaps := make(chan string, 100)
	operator := controller.NewOperator(nil)
	group := namespace + ".example.com"
	handle := func(_ context.Context, event cache.Change[unstructured.Object]) error {
		events <- event
		return nil
	}
	operator.WatchKind(client, schema.GroupVersionKind{Group: group, Kind: "Gizmo"}, namespace, handle)
	operator.Watch(controllertest.Resource(t, client, "cm").Namespace(namespace), func(_ context.Context, event cache.Change[unstructured.Object]) error {
		configMaps <- event.Object.GetName()
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- operator.Run(ctx) }()
	_, err := controllertest.Resource(t, client, "cm").Namespace(namespace).Create(t.Context(), object("ConfigMap", "web"), nil)
	require.NoError(t, err)
	for receive(t, configMaps) != "web" { // there may be the cluster's own
	}
	require.Eventually(t, func() bool { return log.contain("its watch waits", "kind=Gizmo."+group) }, controllertest.Timeout, 10*time.Millisecond)
	stable, _, _, _ := twoVersions(t, client, namespace)
	_, err = stable.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}, nil)
	require.NoError(t, err)
	event := receive(t, events)
	assert.Equal(t, watch.Added, event.Type)
	assert.Equal(t, "a", event.Object.GetName())
	cancel()
	require.ErrorIs(t, receive(t, ended), context.Canceled)
}
