package inventory_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/inventory"
)

const (
	untilRetried   = 20 * time.Second // longer than the first delays of rejected streams
	untilRefreshed = time.Minute      // longer than the interval of discovery
)

// stream is the response to a watch with initial objects in JSON, without kind and apiVersion.
func stream(apiVersion, kind string, all ...string) http.HandlerFunc {
	return scripted.Watch(streamEvents(apiVersion, kind, all...))
}

func streamEvents(apiVersion, kind string, all ...string) string {
	var events strings.Builder
	for _, fields := range all {
		events.WriteString(scripted.Event("ADDED", fmt.Sprintf(`{"apiVersion":%q,"kind":%q,%s}`, apiVersion, kind, fields)))
	}
	events.WriteString(scripted.InitialEventsEnd(apiVersion, kind, "7"))
	return events.String()
}

// metadata returns the metadata of an object NAMESPACE/NAME/UID with labels and owners.
func metadata(object string, more ...string) string {
	fields := strings.Split(object, "/")
	text := fmt.Sprintf(`"metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":"5"`, fields[0], fields[1], fields[2])
	for _, m := range more {
		text += "," + m
	}
	return text + "}"
}

// start runs a cache until the test ends.
func start(t *testing.T, server *scripted.Server, opts *inventory.ListOptions) (c *inventory.Cache, stop func() error) {
	t.Helper()
	c = inventory.NewCache(connect(t, server), opts)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	var err error
	go func() { defer close(ended); err = c.Run(ctx) }()
	stop = func() error { cancel(); <-ended; return err }
	t.Cleanup(func() { _ = stop() })
	return c, stop
}

// namesOf returns the results of a query in the form GROUP/RESOURCE NAMESPACE/NAME.
func namesOf(t *testing.T, page *inventory.Page) []string {
	t.Helper()
	names := []string{}
	for _, entry := range page.Entries {
		gvr := entry.APIResource().GVR
		names = append(names, gvr.GroupVersion().String()+"/"+gvr.Resource+" "+entry.Namespace+"/"+entry.Name)
	}
	return names
}

func all(t *testing.T, c *inventory.Cache) []string {
	t.Helper()
	page, err := c.Query(t.Context(), nil)
	require.NoError(t, err)
	return namesOf(t, page)
}

// watches returns the number of watches of a path.
func watches(server *scripted.Server, path string) (count int) {
	for _, request := range server.Requests() {
		if strings.HasPrefix(request.URI, path+"?") && strings.Contains(request.URI, "watch=") {
			count++
		}
	}
	return count
}

func TestCache_FollowsKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const core = "/v1 configmaps configmap ConfigMap\n /v1 secrets secret Secret\n"
		const carts = "shop.example/v1 carts cart Cart\n"
		const boxes = "depot.example/v1 boxes box Box\n"
		server := scripted.New(core + carts)
		broken := make(chan struct{})
		server.Handle("WATCH /api/v1/configmaps", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, streamEvents("v1", "ConfigMap", metadata("a/one/1")))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-broken:
				panic(http.ErrAbortHandler)
			case <-r.Context().Done():
			}
		}, scripted.Status(http.StatusForbidden, "Forbidden"))
		forbidden := scripted.Status(http.StatusForbidden, "Forbidden")
		server.Handle("WATCH /api/v1/secrets", forbidden)
		server.Handle("WATCH /apis/shop.example/v1/carts", stream("shop.example/v1", "Cart", metadata("a/full/2")))
		c, stop := start(t, server, nil)
		assert.ErrorContains(t, c.Health(), "not synced")

		err := c.WaitForSync(t.Context())
		var incomplete *inventory.IncompleteError
		require.ErrorAs(t, err, &incomplete)
		require.Len(t, incomplete.Resources, 1)
		assert.Equal(t, "secrets", incomplete.Resources[0].Resource)
		assert.True(t, apierrors.IsForbidden(err))
		assert.Equal(t, []string{"v1/configmaps a/one", "shop.example/v1/carts a/full"}, all(t, c))

		// The right to list secrets is granted.
		server.Handle("WATCH /api/v1/secrets", stream("v1", "Secret", metadata("a/password/3")))
		time.Sleep(untilRetried)
		require.NoError(t, c.Health())
		assert.Equal(t, []string{"v1/configmaps a/one", "v1/secrets a/password", "shop.example/v1/carts a/full"}, all(t, c))

		// A definition is created.
		server.Handle("WATCH /apis/depot.example/v1/boxes", stream("depot.example/v1", "Box", metadata("a/big/4")))
		server.Serve(core + carts + boxes)
		time.Sleep(untilRefreshed)
		require.NoError(t, c.WaitForSync(t.Context()))
		assert.Contains(t, all(t, c), "depot.example/v1/boxes a/big")

		// The preferred version changes. The objects of the previous version stay until the next version has synced.
		events := make(chan string)
		server.Handle("WATCH /apis/shop.example/v2/carts", scripted.WatchChannel(events))
		server.Serve(core + boxes + strings.Replace(carts, "v1", "v2", 1) + carts)
		time.Sleep(untilRefreshed)
		assert.Contains(t, all(t, c), "shop.example/v1/carts a/full")
		events <- streamEvents("shop.example/v2", "Cart", metadata("a/full/2"), metadata("a/new/5"))
		synctest.Wait()
		assert.Subset(t, all(t, c), []string{"shop.example/v2/carts a/full", "shop.example/v2/carts a/new"})
		assert.NotContains(t, all(t, c), "shop.example/v1/carts a/full")

		// A definition is deleted, and a definition gets a new scope.
		server.Handle("WATCH /apis/depot.example/v1/boxes", stream("depot.example/v1", "Box", metadata("/huge/6")))
		server.Serve(core + "cluster " + boxes)
		time.Sleep(untilRefreshed)
		assert.Equal(t, []string{"v1/configmaps a/one", "v1/secrets a/password", "depot.example/v1/boxes /huge"}, all(t, c))
		require.NoError(t, c.Health())
		assert.Equal(t, 1, watches(server, "/api/v1/configmaps"), "the remaining kinds are not restarted")

		// The right to list config maps is taken away.
		close(broken)
		time.Sleep(untilRefreshed)
		require.ErrorAs(t, c.Health(), &incomplete)
		require.Len(t, incomplete.Resources, 1)
		assert.Equal(t, "configmaps", incomplete.Resources[0].Resource)
		assert.Contains(t, all(t, c), "v1/configmaps a/one", "last known objects stay")

		require.ErrorIs(t, stop(), context.Canceled)
		require.ErrorIs(t, c.Health(), context.Canceled)
		require.ErrorContains(t, c.Run(t.Context()), "it runs already")
	})
}

func TestCache_BoundsConcurrentLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var resources strings.Builder
		for i := range 10 {
			fmt.Fprintf(&resources, "/v1 kind%ds kind%d Kind%d\n", i, i, i)
		}
		server := scripted.New(resources.String())
		server.Handle("", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		_, _ = start(t, server, &inventory.ListOptions{Workers: 3})
		lists := func() (count int) {
			for _, request := range server.Requests() {
				if strings.HasPrefix(request.URI, "/api/v1/kind") {
					count++
				}
			}
			return count
		}
		synctest.Wait()
		assert.Equal(t, 3, lists())
		time.Sleep(6 * time.Second)
		assert.Equal(t, 6, lists(), "slow lists do not delay the rest")
	})
}

func TestCache_Namespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := scripted.New("/v1 configmaps configmap ConfigMap\n cluster /v1 nodes node Node")
		server.Handle("WATCH /api/v1/namespaces/a/configmaps", stream("v1", "ConfigMap", metadata("a/one/1")))
		server.Handle("WATCH /api/v1/namespaces/b/configmaps", scripted.Status(http.StatusForbidden, "Forbidden"))
		c, _ := start(t, server, &inventory.ListOptions{Namespaces: []string{"a", "b", "a"}})
		var incomplete *inventory.IncompleteError
		require.ErrorAs(t, c.WaitForSync(t.Context()), &incomplete)
		require.Len(t, incomplete.Resources, 1)
		assert.Equal(t, []string{"a"}, incomplete.Resources[0].Namespaces)
		assert.Equal(t, []string{"v1/configmaps a/one"}, all(t, c))
		server.Handle("WATCH /api/v1/namespaces/b/configmaps", stream("v1", "ConfigMap", metadata("b/two/2")))
		time.Sleep(untilRetried)
		require.NoError(t, c.WaitForSync(t.Context()))
		assert.Equal(t, []string{"v1/configmaps a/one", "v1/configmaps b/two"}, all(t, c))
	})
}

// A namespace in which the user may not list a kind does not keep the objects of the others in the previous version.
func TestCache_VersionChangesWithForbiddenNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := scripted.New("shop.example/v1 carts cart Cart")
		server.Handle("WATCH /apis/shop.example/v1/namespaces/a/carts", stream("shop.example/v1", "Cart", metadata("a/full/1")))
		server.Handle("WATCH /apis/shop.example/v2/namespaces/a/carts", stream("shop.example/v2", "Cart", metadata("a/full/1"), metadata("a/new/2")))
		server.Handle("", scripted.Status(http.StatusForbidden, "Forbidden"))
		c, _ := start(t, server, &inventory.ListOptions{Namespaces: []string{"a", "b"}})
		var incomplete *inventory.IncompleteError
		require.ErrorAs(t, c.WaitForSync(t.Context()), &incomplete)
		assert.Equal(t, []string{"shop.example/v1/carts a/full"}, all(t, c))
		server.Serve("shop.example/v2 carts cart Cart")
		time.Sleep(10 * untilRefreshed)
		assert.Equal(t, []string{"shop.example/v2/carts a/full", "shop.example/v2/carts a/new"}, all(t, c))
	})
}
