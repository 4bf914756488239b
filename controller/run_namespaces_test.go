package controller_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
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
	"github.com/anykind/anykind/unstructured"
)

// namespacedSource has a source for each namespace.
type namespacedSource map[string]cache.Source[unstructured.Object]

func (namespacedSource) Path(string) (string, error) { return "/api/v1/pods", nil }

func (namespacedSource) Follow(context.Context, *dynamic.FollowOptions) iter.Seq2[dynamic.Change[unstructured.Object], error] {
	panic("all namespaces")
}

func (s namespacedSource) Namespace(name string) cache.Source[unstructured.Object] { return s[name] }

// rejectedSource is a source that the server rejects.
type rejectedSource struct{ err error }

func (rejectedSource) Path(string) (string, error) { return "/api/v1/pods", nil }

func (r rejectedSource) Follow(context.Context, *dynamic.FollowOptions) iter.Seq2[dynamic.Change[unstructured.Object], error] {
	return func(yield func(dynamic.Change[unstructured.Object], error) bool) {
		yield(dynamic.Change[unstructured.Object]{}, r.err)
	}
}

func TestRun_RejectedNamespaces(t *testing.T) {
	rejected := rejectedSource{errors.New("pods is forbidden")}
	one := namespacedSource{"shop": staticSource{"web"}, "home": rejected}
	both := namespacedSource{"shop": rejected, "home": rejected}
	for name, tc := range map[string]struct {
		own, trigger cache.Source[unstructured.Object]
		error        string // "" for the end of ctx
	}{
		"one of its own cache":      {one, staticSource{}, ""},
		"one of a trigger's cache":  {staticSource{"web"}, one, ""},
		"all of its own cache":      {both, staticSource{}, "every namespace is rejected"},
		"all of a trigger's cache":  {staticSource{"web"}, both, "every namespace is rejected"},
		"one of each of the caches": {one, one, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				running := func(source cache.Source[unstructured.Object]) *cache.Cache[unstructured.Object] {
					opts := &cache.Options[unstructured.Object]{}
					if _, isNamespaced := source.(namespacedSource); isNamespaced {
						opts.Namespaces = []string{"shop", "home"}
					}
					c := cache.New(source, opts)
					go func() { _ = c.Run(t.Context()) }()
					return c
				}
				log, lines := controllertest.Logger()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				var keys []string
				err := controller.Run(ctx, running(tc.own), func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
					keys = append(keys, key.String())
					return 0, nil
				}, &controller.Options{Logger: log, Triggers: []controller.Trigger{
					controller.Watches(running(tc.trigger), func(*unstructured.Object) []types.NamespacedName { return nil }),
				}})
				if tc.error != "" {
					require.ErrorContains(t, err, tc.error)
					assert.Empty(t, keys)
					return
				}
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, []string{"shop/web"}, keys)
				for _, line := range lines() {
					assert.Equal(t, `level=WARN msg="the objects of some namespaces are not known yet: the server rejects requests" `+
						`error="cache /api/v1/pods: rejected: namespace \"home\": pods is forbidden"`, line)
				}
			})
		})
	}
}

// namespacesServer has the Lease "web" in each of two namespaces. Its watches receive what a test sends.
type namespacesServer struct {
	*scripted.Server
	events map[string]chan string // by namespace
}

func newNamespacesServer() *namespacesServer {
	s := &namespacesServer{scripted.New(controllertest.Resources), map[string]chan string{"shop": make(chan string), "home": make(chan string)}}
	for namespace, events := range s.events {
		s.Handle("WATCH "+leasesIn(namespace), scripted.WatchChannel(events))
		s.Handle("PATCH "+leasesIn(namespace)+"/web", scripted.JSON(leaseIn(namespace, 50)))
	}
	s.Handle(definitionRoute, scripted.Status(http.StatusForbidden, "Forbidden"))
	return s
}

func leasesIn(namespace string) string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases"
}

func leaseIn(namespace string, version int) string {
	return fmt.Sprintf(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"web","namespace":%q,"uid":%q,"resourceVersion":"%d"}}`, namespace, namespace, version)
}

func (s *namespacesServer) sync() {
	for namespace, events := range s.events {
		events <- scripted.Event("ADDED", leaseIn(namespace, 1)) + scripted.InitialEventsEnd("coordination.k8s.io/v1", "Lease", "9")
	}
}

// forbid rejects reads of home, and ends its watch.
func (s *namespacesServer) forbid() {
	for _, method := range []string{"GET ", "WATCH "} {
		s.Handle(method+leasesIn("home"), scripted.Status(http.StatusForbidden, "Forbidden"))
	}
	close(s.events["home"])
}

// TestRun_ForbiddenNamespaceDelaysItsKeyAlone has one worker, and a namespace whose events end after the sync.
func TestRun_ForbiddenNamespaceDelaysItsKeyAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newNamespacesServer()
		leases := controllertest.Resource(t, controllertest.Serve(t, server), "leases")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		objects := cache.New(leases, &cache.Options[unstructured.Object]{Namespaces: []string{"shop", "home"}})
		var others sync.WaitGroup
		others.Go(func() { _ = objects.Run(ctx) })
		server.sync()
		require.NoError(t, objects.WaitForSync(ctx))
		server.forbid()
		others.Go(func() {
			for version := 100; ctx.Err() == nil; version++ {
				select {
				case server.events["shop"] <- scripted.Event("MODIFIED", leaseIn("shop", version)):
				case <-ctx.Done():
				}
				time.Sleep(time.Second)
			}
		})
		log, lines := controllertest.Logger()
		start := time.Now()
		reconciles := map[string][]time.Duration{}
		err := controller.Run(ctx, objects, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
			reconciles[key.String()] = append(reconciles[key.String()], time.Since(start))
			if key.Namespace == "home" && len(reconciles["home/web"]) == 1 {
				_, err := objects.TrackWrites(leases.Namespace("home")).Patch(ctx, "web", types.MergePatchType, []byte(`{}`), nil)
				assert.NoError(t, err)
			}
			return 20 * time.Second, nil
		}, &controller.Options{Logger: log})
		others.Wait()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.GreaterOrEqual(t, len(reconciles["shop/web"]), 58, "each second")
		require.GreaterOrEqual(t, len(reconciles["home/web"]), 2)
		assert.Less(t, reconciles["home/web"][1], 21*time.Second)
		assert.Contains(t, strings.Join(lines(), "\n"), `msg="the next reconcile may find an older state than was written" kind=Lease.coordination.k8s.io key=home/web error=`)
	})
}
