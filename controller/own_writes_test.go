package controller_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// leaseState is a state of the Lease "web", in JSON.
type leaseState struct {
	resourceVersion, uid   string
	hasFinalizer, deleting bool
}

func (s leaseState) String() string {
	metadata := fmt.Sprintf(`"namespace":"shop","name":"web","uid":%q,"resourceVersion":%q`, s.uid, s.resourceVersion)
	if s.hasFinalizer {
		metadata += `,"finalizers":["` + finalizer + `"]`
	}
	if s.deleting {
		metadata += `,"deletionTimestamp":"2026-01-01T00:00:00Z"`
	}
	return `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{` + metadata + `}}`
}

const (
	leasesPath      = "/apis/coordination.k8s.io/v1/namespaces/shop/leases"
	definitionRoute = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/leases.coordination.k8s.io"
)

// lateServer is a server whose watch events arrive when a test sends them. The first patch finds another object than it tests,
// the read after that returns live, and later patches return patched.
type lateServer struct {
	events        chan string
	live, patched leaseState
	losesResponse bool // of the first patch that is executed
}

func (s *lateServer) connect(t *testing.T) *dynamic.Client {
	t.Helper()
	server := scripted.New(controllertest.Resources)
	patches := []http.HandlerFunc{scripted.Status(http.StatusUnprocessableEntity, "Invalid")}
	if s.losesResponse {
		patches = append(patches, scripted.Break)
	}
	server.Handle("PATCH "+leasesPath+"/web", append(patches, scripted.JSON(s.patched.String()))...)
	server.Handle("GET "+leasesPath+"/web", scripted.JSON(s.live.String()))
	server.Handle("WATCH "+leasesPath, scripted.WatchChannel(s.events))
	server.Handle(definitionRoute, scripted.Status(http.StatusForbidden, "Forbidden"))
	return controllertest.Serve(t, server)
}

func (s *lateServer) emit(eventType string, state leaseState) {
	s.events <- scripted.Event(eventType, state.String())
}

func (s *lateServer) sync(resourceVersion string) {
	s.events <- scripted.InitialEventsEnd("coordination.k8s.io/v1", "Lease", resourceVersion)
}

// The states of a Lease to which Finalize adds the finalizer, and which is deleted before the events of that arrive.
var (
	createdState   = leaseState{"1", "a", false, false}
	finalizedState = leaseState{"2", "a", true, false}
	deletingState  = leaseState{"3", "a", true, true}
	removedState   = leaseState{"3", "a", false, true}
)

// finalizeLease calls Finalize, and returns what it has found.
func finalizeLease(ctx context.Context, leases *dynamic.Resource, obj *unstructured.Object) (string, error) {
	clean := func(context.Context, *unstructured.Object) error { return nil }
	live, deleted, err := controller.Finalize(ctx, leases, obj, finalizer, clean)
	switch {
	case err != nil:
		return obj.GetResourceVersion() + " fails", err
	case deleted:
		return obj.GetResourceVersion() + " is deleted", nil
	}
	return obj.GetResourceVersion() + " is live, version " + live.GetResourceVersion(), nil
}

// runners run a controller that calls Finalize for each state that it finds, and adds what that returns to the log.
var runners = map[string]func(ctx context.Context, leases *dynamic.Resource, log *[]string) error{
	"Operator": func(ctx context.Context, leases *dynamic.Resource, log *[]string) error {
		operator := controller.NewOperator(nil)
		operator.Watch(leases, func(ctx context.Context, change cache.Change[unstructured.Object]) error {
			text := "the deletion"
			err := error(nil)
			if change.Type != "DELETED" {
				text, err = finalizeLease(ctx, leases, change.Object)
			}
			*log = append(*log, text)
			return err
		})
		return operator.Run(ctx)
	},
	"Run": func(ctx context.Context, leases *dynamic.Resource, log *[]string) error {
		objects := cache.New(leases, nil)
		go func() { _ = objects.Run(ctx) }()
		return controller.Run(ctx, objects, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
			text := "the deletion"
			err := error(nil)
			if obj, found := objects.Get(key.Namespace, key.Name); found {
				text, err = finalizeLease(ctx, leases, obj)
			}
			*log = append(*log, text)
			return 0, err
		}, nil)
	},
}

// TestFinalize_LateEventsAreNoState has Finalize read the latest state, and then the events of earlier ones arrive.
func TestFinalize_LateEventsAreNoState(t *testing.T) {
	for name, tc := range map[string]struct {
		server lateServer
		late   func(s *lateServer)
		want   []string
	}{
		"removed by this process": {
			lateServer{live: deletingState, patched: removedState},
			func(s *lateServer) {
				s.emit("MODIFIED", finalizedState)
				time.Sleep(time.Minute)
				s.emit("DELETED", removedState)
			},
			[]string{"1 is deleted", "the deletion"},
		},
		"removed, and the response lost": {
			lateServer{live: deletingState, patched: removedState, losesResponse: true},
			func(s *lateServer) {
				s.emit("MODIFIED", finalizedState)
				time.Sleep(time.Minute)
				s.emit("MODIFIED", deletingState)
				time.Sleep(time.Minute)
				s.emit("DELETED", removedState)
			},
			[]string{"1 fails", "3 is deleted", "the deletion"},
		},
		"a later object of the name": {
			lateServer{live: deletingState, patched: removedState},
			func(s *lateServer) {
				s.emit("DELETED", removedState)
				time.Sleep(time.Minute)
				s.emit("ADDED", leaseState{"5", "b", true, false})
			},
			[]string{"1 is deleted", "the deletion", "5 is live, version 5"},
		},
		"a version that is never reached": {
			lateServer{live: leaseState{"3", "a", true, false}},
			func(s *lateServer) { s.emit("MODIFIED", finalizedState); time.Sleep(10 * time.Minute) },
			[]string{"1 is live, version 3", "2 is live, version 2"},
		},
		"versions without an order": {
			lateServer{live: leaseState{"x", "a", true, false}},
			func(s *lateServer) { s.emit("MODIFIED", finalizedState); time.Sleep(time.Second) },
			[]string{"1 is live, version x", "2 is live, version 2"},
		},
	} {
		for runner, run := range runners {
			t.Run(runner+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := tc.server
					server.events = make(chan string)
					leases := controllertest.Resource(t, server.connect(t), "leases").Namespace("shop")
					ctx, cancel := context.WithCancel(t.Context())
					var log []string
					ended := make(chan error, 1)
					go func() { ended <- run(ctx, leases, &log) }()
					server.emit("ADDED", createdState)
					server.sync("1")
					time.Sleep(time.Second)
					tc.late(&server)
					synctest.Wait()
					cancel()
					require.ErrorIs(t, <-ended, context.Canceled)
					assert.Equal(t, tc.want, slices.Compact(log), "events and waits may trigger a reconcile each")
				})
			})
		}
	}
}

// TestSetStatus_ObjectOfAnotherCluster has a reconcile write to an object of the same name in another cluster, whose resourceVersions are
// higher.
func TestSetStatus_ObjectOfAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect := func(url string, state leaseState) *dynamic.Resource {
			server := scripted.New(controllertest.Resources + "\ncoordination.k8s.io/v1 leases/status Lease get,patch,update")
			server.Handle("WATCH "+leasesPath, scripted.Watch(scripted.Event("ADDED", state.String()),
				scripted.InitialEventsEnd("coordination.k8s.io/v1", "Lease", state.resourceVersion)))
			server.Handle("PATCH "+leasesPath+"/web/status", scripted.JSON(state.String()))
			server.Handle(definitionRoute, scripted.Status(http.StatusForbidden, "Forbidden"))
			conn, err := transport.New(url, &http.Client{Transport: scripted.RoundTripper(t, server)}, nil)
			require.NoError(t, err)
			client := dynamic.New(conn, nil)
			t.Cleanup(client.Close)
			return controllertest.Resource(t, client, "leases").Namespace("shop")
		}
		member := connect("http://member", leaseState{"1", "a", false, false})
		hub := connect("http://hub", leaseState{"1000", "b", false, false})
		ctx, cancel := context.WithCancel(t.Context())
		objects := cache.New(member, nil)
		go func() { _ = objects.Run(ctx) }()
		var reconciled []time.Time
		err := controller.Run(ctx, objects, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
			if reconciled = append(reconciled, time.Now()); len(reconciled) == 2 {
				cancel()
			}
			obj := &unstructured.Object{Object: map[string]any{}}
			obj.SetNamespace(key.Namespace)
			obj.SetName(key.Name)
			obj.SetUID("b")
			_, err := controller.SetStatus(ctx, hub, obj, map[string]any{"ready": true})
			assert.NoError(t, err)
			return time.Second, nil
		}, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, reconciled, 2)
		assert.Equal(t, time.Second, reconciled[1].Sub(reconciled[0]))
	})
}
