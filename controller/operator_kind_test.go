package controller_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
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

// leaseServer serves leases once isServed is set. Before, the first request for leases removes them from discovery.
type leaseServer struct{ isServed, isListed atomic.Bool }

func (s *leaseServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	switch isLease := strings.HasSuffix(r.URL.Path, "/leases"); {
	case r.URL.Path == "/api" || r.URL.Path == "/apis":
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		if r.URL.Path == "/apis" && s.isListed.Load() {
			_, _ = io.WriteString(w, controllertest.Index)
		} else {
			_, _ = io.WriteString(w, `{"kind":"APIGroupDiscoveryList","items":[]}`)
		}
	case isLease && s.isServed.Load():
		_, _ = io.WriteString(w, `{"type":"ADDED","object":{"kind":"Lease","apiVersion":"coordination.k8s.io/v1",`+
			`"metadata":{"name":"a","namespace":"shop","uid":"u","resourceVersion":"1"}}}`)
	default:
		s.isListed.Store(s.isListed.Load() && !isLease)
		controllertest.NotServed(w)
	}
	response := w.Result()
	response.Request = r
	return response, nil
}

func TestOperator_WatchKindWaitsForDeletedKind(t *testing.T) {
	lease := schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}
	for name, isListed := range map[string]bool{"deleted before Run": false, "deleted after its lookup": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &leaseServer{}
				conn, err := transport.New("http://memory", &http.Client{Transport: server}, nil)
				require.NoError(t, err)
				client := dynamic.New(conn, nil)
				server.isListed.Store(true)
				_, err = client.ForKind(t.Context(), lease)
				require.NoError(t, err)
				server.isListed.Store(isListed)
				time.AfterFunc(time.Hour, func() {
					server.isServed.Store(true)
					server.isListed.Store(true)
				})
				text := &lines{}
				operator := controller.NewOperator(&controller.Options{Logger: slog.New(slog.NewTextHandler(text, nil))})
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
				defer cancel()
				operator.WatchKind(client, lease, "", func(_ context.Context, change cache.Change[unstructured.Object]) error {
					assert.Equal(t, "a", change.Object.GetName())
					cancel()
					return nil
				})
				require.ErrorIs(t, operator.Run(ctx), context.Canceled)
				assert.True(t, text.contain("its watch waits", "kind=Lease.coordination.k8s.io"))
			})
		})
	}
}

func TestOperator_WatchKindErrorEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, err := transport.New("http://memory", &http.Client{Transport: denyingServer{}}, nil)
		require.NoError(t, err)
		operator := controller.NewOperator(&controller.Options{Logger: slog.New(slog.DiscardHandler)})
		operator.WatchKind(dynamic.New(conn, nil), lampV1, "", discard)
		err = operator.Run(t.Context())
		assert.True(t, apierrors.IsForbidden(err), err)
	})
}

// denyingServer answers every request with 403.
type denyingServer struct{}

func (denyingServer) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	controllertest.Reject(w, http.StatusForbidden, "Forbidden")
	response := w.Result()
	response.Request = r
	return response, nil
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
