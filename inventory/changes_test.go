package inventory_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		assert.Equal(t, []string{"DELETED deployments a/web 5", "ADDED replicasets a/web-5 5"}, take()[:2])
		cancel()
		assert.Equal(t, []string{"end"}, take())
	})
}
