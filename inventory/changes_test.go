package inventory_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/readiness"
)

// collectChanges returns the yielded changes so far, in the form TYPE RESOURCE NAMESPACE/NAME VERSION.
func collectChanges(t *testing.T, ctx context.Context, view *inventory.View, q *inventory.Query) (take func() []string) { //nolint:revive // as helpers of testing
	t.Helper()
	changes := make(chan string, 100)
	go func() {
		for change, err := range view.Changes(ctx, q) {
			if err != nil {
				changes <- err.Error()
				continue
			}
			e := change.Entry
			changes <- fmt.Sprintf("%s %s %s/%s %s", change.Type, e.APIResource().GVR.Resource, e.Namespace, e.Name, e.ResourceVersion())
		}
		close(changes)
	}()
	return func() []string {
		time.Sleep(time.Second)
		synctest.Wait()
		texts := []string{}
		for {
			select {
			case text, isOpen := <-changes:
				if !isOpen {
					return append(texts, "end")
				}
				texts = append(texts, text)
			default:
				return texts
			}
		}
	}
}

func TestView_Changes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := shop()
		pods := make(chan string)
		server.Handle("WATCH /api/v1/pods", scripted.WatchChannel(pods))
		c, stop := start(t, server, nil)
		pod := func(eventType, object, version, phase string, owners ...string) string {
			fields := metadata(object, owned(owners...))
			fields = fields[:len(fields)-1] + fmt.Sprintf(`,"resourceVersion":%q},"status":{"phase":%q}`, version, phase)
			return scripted.Event(eventType, `{"apiVersion":"v1","kind":"Pod",`+fields+`}`)
		}
		pods <- pod("ADDED", "a/web-1/p1", "11", "Failed", "r1")
		pods <- scripted.InitialEventsEnd("v1", "Pod", "11")
		require.NoError(t, c.WaitForSync(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		below := collectChanges(t, ctx, c.View, &inventory.Query{Owner: "d1", Descendants: true})
		failed := collectChanges(t, ctx, c.View, &inventory.Query{Readiness: readiness.Failed})
		assert.Equal(t, []string{"ADDED pods a/web-1 11", "ADDED replicasets a/web-5 5"}, below())
		assert.Equal(t, []string{"ADDED pods a/web-1 11"}, failed())

		pods <- pod("MODIFIED", "a/web-1/p1", "12", "Running", "r1")
		pods <- pod("ADDED", "a/web-2/p2", "13", "Failed", "r1")
		assert.Equal(t, []string{"MODIFIED pods a/web-1 12", "ADDED pods a/web-2 13"}, below())
		assert.Equal(t, []string{"DELETED pods a/web-1 11", "ADDED pods a/web-2 13"}, failed())

		pods <- pod("MODIFIED", "a/web-1/p1", "14", "Running")
		pods <- pod("DELETED", "a/web-2/p2", "15", "Failed", "r1")
		pods <- pod("ADDED", "a/web-2/p2b", "16", "Failed", "r1")
		assert.Equal(t, []string{"DELETED pods a/web-1 12", "DELETED pods a/web-2 13", "ADDED pods a/web-2 16"}, below())
		assert.Equal(t, []string{"DELETED pods a/web-2 13", "ADDED pods a/web-2 16"}, failed())

		pods <- pod("MODIFIED", "b/else/p9", "17", "Running")
		assert.Empty(t, below())
		assert.Empty(t, failed())

		// The definition of pods is deleted.
		server.Serve("/v1 configmaps configmap ConfigMap\n apps/v1 replicasets replicaset ReplicaSet\n apps/v1 deployments deployment Deployment")
		time.Sleep(untilRefreshed)
		assert.Equal(t, []string{"DELETED pods a/web-2 16"}, failed())
		cancel()
		assert.Equal(t, []string{"end"}, failed())
		assert.Equal(t, []string{"DELETED pods a/web-2 16", "end"}, below())
		require.ErrorIs(t, stop(), context.Canceled)
		assert.Equal(t, []string{"ADDED deployments a/web 5", "end"}, collectChanges(t, t.Context(), c.View, &inventory.Query{UID: "d1"})(), "after the end of Run")
	})
}

// The changed object is searched, and the object of the same name of a further group.
func TestView_ChangesSearchChangedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := shop()
		events := make(chan string)
		server.Handle("WATCH /apis/shop.example/v1/carts", scripted.WatchChannel(events))
		c, _ := start(t, server, nil)
		events <- streamEvents("shop.example/v1", "Cart", metadata("a/full/8"))
		require.NoError(t, c.WaitForSync(t.Context()))
		var selects atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		changes := collectChanges(t, ctx, c.View, &inventory.Query{Namespace: "a", Select: func(*discovery.Resource) bool { selects.Add(1); return true }})
		assert.Contains(t, changes(), "ADDED carts a/full 5")

		for i := range 3 {
			selects.Store(0)
			events <- scripted.Event("MODIFIED", `{"apiVersion":"shop.example/v1","kind":"Cart",`+strings.Replace(metadata("a/full/8"), `"5"`, fmt.Sprintf(`"1%d"`, i), 1)+`}`)
			assert.Equal(t, []string{fmt.Sprintf("MODIFIED carts a/full 1%d", i)}, changes())
			assert.LessOrEqual(t, selects.Load(), int32(3), "the group, the further group, and its duplicate")
		}
		events <- scripted.Event("DELETED", `{"apiVersion":"shop.example/v1","kind":"Cart",`+strings.Replace(metadata("a/full/8"), `"5"`, `"20"`, 1)+`}`)
		assert.Equal(t, []string{"DELETED carts a/full 12", "ADDED carts a/full 5"}, changes(), "the object of the further group is no duplicate now")

		// Many changes between two searches are found by a whole query.
		var many strings.Builder
		for i := range 10_010 {
			many.WriteString(scripted.Event("ADDED", `{"apiVersion":"shop.example/v1","kind":"Cart",`+metadata(fmt.Sprintf("b/cart-%d/u%d", i, i))+`}`))
		}
		many.WriteString(scripted.Event("ADDED", `{"apiVersion":"shop.example/v1","kind":"Cart",`+metadata("a/last/u")+`}`))
		events <- many.String()
		assert.Equal(t, []string{"ADDED carts a/last 5"}, changes())
		cancel()
		assert.Equal(t, []string{"end"}, changes())
	})
}

func TestView_ChangesErrors(t *testing.T) {
	const reviews = "POST /apis/authorization.k8s.io/v1/selfsubject"
	synctest.Test(t, func(t *testing.T) {
		c, _ := start(t, shop(), nil)
		require.NoError(t, c.WaitForSync(t.Context()))
		for text, query := range map[string]*inventory.Query{"Limit": {Limit: 1}, "label selector": {LabelSelector: "a in"}} {
			found := collectChanges(t, t.Context(), c.View, query)()
			require.Len(t, found, 2)
			assert.Contains(t, found[0], text)
			assert.Equal(t, "end", found[1])
		}
		for _, err := range c.Changes(t.Context(), nil) {
			require.NoError(t, err)
			break // ends the sequence
		}

		// A view of a user repeats the reviews, also after a failure.
		server := scripted.New(shopResources)
		view := c.For(connect(t, server))
		allow := func(resource string) http.HandlerFunc {
			return review(`{"resourceRules":[{"verbs":["list"],"apiGroups":["apps"],"resources":["` + resource + `"]}]}`)
		}
		server.Handle(reviews+"accessreviews", review(`{"allowed":false}`))
		server.Handle(reviews+"rulesreviews", allow("deployments"))
		ctx, cancel := context.WithCancel(t.Context())
		take := collectChanges(t, ctx, view, &inventory.Query{Namespace: "a"})
		assert.Equal(t, []string{"ADDED deployments a/web 5"}, take())
		server.Handle(reviews+"rulesreviews", scripted.Status(http.StatusForbidden, "Forbidden"))
		time.Sleep(5 * time.Minute)
		assert.Empty(t, take())
		server.Handle(reviews+"rulesreviews", allow("replicasets"))
		time.Sleep(2 * time.Second) // until the next attempt
		assert.Equal(t, []string{"DELETED deployments a/web 5", "ADDED replicasets a/web-5 5"}, take()[:2])
		cancel()
		assert.Equal(t, []string{"end"}, take())
	})
}
