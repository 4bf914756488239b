package inventory_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
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

const shopResources = `
	/v1 configmaps configmap ConfigMap
	cluster /v1 namespaces namespace Namespace
	/v1 pods pod Pod
	apps/v1 deployments deployment Deployment
	apps/v1 replicasets replicaset ReplicaSet
	shop.example/v1 carts cart Cart
	store.example/v1 carts cart Cart
	cluster authorization.k8s.io/v1 selfsubjectaccessreviews selfsubjectaccessreview SelfSubjectAccessReview - - create
	cluster authorization.k8s.io/v1 selfsubjectrulesreviews selfsubjectrulesreview SelfSubjectRulesReview - - create
	cluster authentication.k8s.io/v1 tokenreviews tokenreview TokenReview - - create
`

// owned returns owner references.
func owned(uids ...string) string {
	references := make([]string, len(uids))
	for i, uid := range uids {
		references[i] = fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Owner","name":"owner","uid":%q}`, uid)
	}
	return `"ownerReferences":[` + strings.Join(references, ",") + `]`
}

// shop is a server with a Deployment, its ReplicaSet and pods, and Carts that are served under two groups.
func shop() *scripted.Server {
	server := scripted.New(shopResources)
	server.Handle("WATCH /api/v1/configmaps", stream("v1", "ConfigMap",
		metadata("a/colors/c1", `"labels":{"app":"web"}`)+`,"data":{"sky":"Dark \"Blue\"","Gray":"x"}`, metadata("b/colors/c2")))
	server.Handle("WATCH /api/v1/namespaces", stream("v1", "Namespace", metadata("/a/n1")))
	server.Handle("WATCH /api/v1/pods", stream("v1", "Pod",
		metadata("a/web-1/p1", `"labels":{"app":"web"}`, owned("r1"))+`,"spec":{"nodeName":"one"},"status":{"phase":"Failed"}`,
		metadata("a/web-2/p2", `"labels":{"app":"web"}`, owned("r1"))+`,"spec":{"nodeName":"two"},"status":{"phase":"Pending"}`,
		metadata("b/cycle/p3", owned("p3"))))
	server.Handle("WATCH /apis/apps/v1/deployments", stream("apps/v1", "Deployment", metadata("a/web/d1", `"labels":{"app":"web"}`)+`,"spec":{"replicas":2}`))
	server.Handle("WATCH /apis/apps/v1/replicasets", stream("apps/v1", "ReplicaSet", metadata("a/web-5/r1", owned("d1"))))
	server.Handle("WATCH /apis/shop.example/v1/carts", stream("shop.example/v1", "Cart", metadata("a/full/8")))
	server.Handle("WATCH /apis/store.example/v1/carts", stream("store.example/v1", "Cart", metadata("a/full/8"), metadata("a/empty/9")))
	return server
}

var everything = []string{
	"v1/configmaps a/colors", "v1/configmaps b/colors", "v1/namespaces /a", "v1/pods a/web-1", "v1/pods a/web-2", "v1/pods b/cycle",
	"apps/v1/deployments a/web", "apps/v1/replicasets a/web-5", "shop.example/v1/carts a/full", "store.example/v1/carts a/empty",
}

func TestCache_Query(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := start(t, shop(), nil)
		require.NoError(t, c.WaitForSync(t.Context()))
		for name, test := range map[string]struct {
			query *inventory.Query
			want  []string
		}{
			"all": {nil, everything},
			"kind": {&inventory.Query{Select: func(r *discovery.Resource) bool { return r.GVK.Kind == "Cart" }},
				[]string{"shop.example/v1/carts a/full", "store.example/v1/carts a/empty"}},
			"second group": {&inventory.Query{Select: func(r *discovery.Resource) bool { return r.GVR.Group == "store.example" }},
				[]string{"store.example/v1/carts a/empty", "store.example/v1/carts a/full"}},
			"namespace":      {&inventory.Query{Namespace: "b"}, []string{"v1/configmaps b/colors", "v1/pods b/cycle"}},
			"name":           {&inventory.Query{Name: "colors", Namespace: "b"}, []string{"v1/configmaps b/colors"}},
			"uid":            {&inventory.Query{UID: "r1"}, []string{"apps/v1/replicasets a/web-5"}},
			"labels":         {&inventory.Query{LabelSelector: "app=web", Namespace: "a"}, []string{"v1/configmaps a/colors", "v1/pods a/web-1", "v1/pods a/web-2", "apps/v1/deployments a/web"}},
			"fields":         {&inventory.Query{FieldSelector: "spec.nodeName!=two,status.phase=Failed"}, []string{"v1/pods a/web-1"}},
			"number":         {&inventory.Query{FieldSelector: "spec.replicas=2"}, []string{"apps/v1/deployments a/web"}},
			"missing field":  {&inventory.Query{FieldSelector: "spec.nodeName=", Name: "cycle"}, []string{"v1/pods b/cycle"}},
			"owner":          {&inventory.Query{Owner: "r1"}, []string{"v1/pods a/web-1", "v1/pods a/web-2"}},
			"owner and more": {&inventory.Query{Owner: "r1", Readiness: readiness.Failed, LabelSelector: "app"}, []string{"v1/pods a/web-1"}},
			"descendants":    {&inventory.Query{Owner: "d1", Descendants: true}, []string{"v1/pods a/web-1", "v1/pods a/web-2", "apps/v1/replicasets a/web-5"}},
			"cycle":          {&inventory.Query{Owner: "p3", Descendants: true}, []string{}},
			"roots":          {&inventory.Query{Roots: true, LabelSelector: "app"}, []string{"v1/configmaps a/colors", "apps/v1/deployments a/web"}},
			"readiness":      {&inventory.Query{Readiness: readiness.Failed}, []string{"v1/pods a/web-1"}},
			"text":           {&inventory.Query{Text: `DARK "blue`}, []string{"v1/configmaps a/colors"}},
			"field name":     {&inventory.Query{Text: "gray"}, []string{}},
			"negative limit": {&inventory.Query{Name: "web", Limit: -1}, []string{"apps/v1/deployments a/web"}},
			"no owner":       {&inventory.Query{Owner: "none", Descendants: true}, []string{}},
		} {
			page, err := c.Query(t.Context(), test.query) // a bubble has no subtests
			require.NoError(t, err, name)
			assert.Equal(t, test.want, namesOf(t, page), name)
			assert.Empty(t, page.Continue, name)
			for _, searched := range page.ResourceVersions {
				assert.Equal(t, "7", searched.Version, searched.Resource.GVR)
			}
		}
		page, err := c.Query(t.Context(), &inventory.Query{Select: func(r *discovery.Resource) bool { return r.GVR.Group == "apps" }})
		require.NoError(t, err)
		assert.Len(t, page.ResourceVersions, 2)
		assert.Equal(t, "replicasets", page.ResourceVersions[1].Resource.GVR.Resource)
		path, err := page.Entries[0].Handle().Path(page.Entries[0].Name)
		require.NoError(t, err)
		assert.Equal(t, "/apis/apps/v1/namespaces/a/deployments/web", path)
	})
}

func TestCache_QueryPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := start(t, shop(), nil)
		require.NoError(t, c.WaitForSync(t.Context()))
		for limit := 1; limit <= len(everything)+1; limit++ {
			var found []string
			q := &inventory.Query{Limit: limit}
			for pages := 1; ; pages++ {
				page, err := c.Query(t.Context(), q)
				require.NoError(t, err)
				found = append(found, namesOf(t, page)...)
				if q.Continue = page.Continue; q.Continue == "" {
					assert.Equal(t, (len(everything)+limit-1)/limit, pages)
					break
				}
				assert.Len(t, page.Entries, limit)
			}
			assert.Equal(t, everything, found)
		}
	})
}

func TestCache_QueryErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := start(t, shop(), &inventory.ListOptions{Metadata: true})
		for text, query := range map[string]*inventory.Query{
			"label selector":        {LabelSelector: "a in"},
			"field selector":        {FieldSelector: "a"},
			"invalid Continue":      {Continue: "?"},
			"metadata only":         {Readiness: readiness.Current},
			"without an Owner":      {Descendants: true},
			"field selector: parse": {FieldSelector: "a[=b"},
		} {
			_, err := c.Query(t.Context(), query)
			assert.ErrorContains(t, err, strings.Split(text, ":")[0], text)
		}
		require.NoError(t, c.WaitForSync(t.Context()))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(io.ErrNoProgress)
		_, err := c.Query(ctx, nil)
		assert.ErrorIs(t, err, io.ErrNoProgress)
	})
}

// review responds to an access review of a cluster-scoped resource, or to a rules review.
func review(status string) http.HandlerFunc {
	return scripted.JSON(`{"apiVersion":"authorization.k8s.io/v1","kind":"Review","status":` + status + `}`)
}

func TestCache_For(t *testing.T) {
	const reviews = "POST /apis/authorization.k8s.io/v1/selfsubject"
	const rules = `{"resourceRules":[{"verbs":["list"],"apiGroups":[""],"resources":["pods","configmaps"]},{"verbs":["get"],"apiGroups":["*"],"resources":["*"]},
		{"verbs":["*"],"apiGroups":["apps"],"resources":["deployments"]},{"verbs":["list"],"apiGroups":["apps"],"resources":["replicasets"],"resourceNames":["web-5"]}]`
	synctest.Test(t, func(t *testing.T) {
		c, _ := start(t, shop(), nil)
		require.NoError(t, c.WaitForSync(t.Context()))
		server := scripted.New(shopResources)
		view := c.For(connect(t, server))
		query := func(q *inventory.Query) []string {
			page, err := view.Query(t.Context(), q)
			require.NoError(t, err)
			return namesOf(t, page)
		}
		server.Handle(reviews+"rulesreviews", review(rules+"}"))
		server.Handle(reviews+"accessreviews", review(`{"allowed":true}`))
		namespaced := slices.Concat(everything[:2], everything[3:7])
		assert.Equal(t, everything[:7], query(nil))
		assert.Empty(t, query(&inventory.Query{Owner: "d1", Descendants: true}), "the pods are below an object that the user may not list")
		assert.Equal(t, []string{"v1/pods a/web-1", "v1/pods a/web-2"}, query(&inventory.Query{Owner: "r1"}))
		assert.Len(t, server.Requests(), 3, "two namespaces and a cluster-scoped resource")

		// The user may list the Carts of the second group alone.
		time.Sleep(61 * time.Second)
		server.Handle(reviews+"rulesreviews", review(`{"resourceRules":[{"verbs":["list"],"apiGroups":["store.example"],"resources":["*"]}]}`))
		assert.Equal(t, []string{"store.example/v1/carts a/empty", "store.example/v1/carts a/full"}, query(&inventory.Query{Namespace: "a"}))

		// Permissions are read again after a minute. Incomplete rules are not trusted.
		time.Sleep(61 * time.Second)
		server.Handle(reviews+"rulesreviews", review(rules+"}"))
		server.Handle(reviews+"accessreviews", review(`{"allowed":false}`))
		assert.Equal(t, namespaced, query(nil))
		time.Sleep(61 * time.Second)
		server.Handle(reviews+"rulesreviews", review(rules+`,"incomplete":true}`))
		assert.Empty(t, query(nil))
		time.Sleep(61 * time.Second)
		server.Handle(reviews+"rulesreviews", scripted.Status(http.StatusForbidden, "Forbidden"))
		_, err := view.Query(t.Context(), nil)
		require.Error(t, err)
		server.Handle(reviews+"rulesreviews", review(rules+"}"))
		server.Handle(reviews+"accessreviews", scripted.Status(http.StatusForbidden, "Forbidden"))
		_, err = view.Query(t.Context(), nil)
		require.ErrorContains(t, err, "read the permission to list namespaces")
	})
}

// TestCache_ReadinessChangesWithTime has a pod that nothing changes while it stays unschedulable.
func TestCache_ReadinessChangesWithTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := shop()
		created := fmt.Sprintf(`"creationTimestamp":%q`, time.Now().UTC().Format(time.RFC3339))
		const unschedulable = `,"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}`
		server.Handle("WATCH /api/v1/pods", stream("v1", "Pod", metadata("a/web-1/p1", created)+unschedulable))
		c, _ := start(t, server, nil)
		require.NoError(t, c.WaitForSync(t.Context()))
		failed := collectChanges(t, t.Context(), c.View, &inventory.Query{Readiness: readiness.Failed})
		assert.Empty(t, failed())
		for _, want := range []readiness.Status{readiness.InProgress, readiness.Failed} {
			page, err := c.Query(t.Context(), &inventory.Query{UID: "p1", Readiness: want})
			require.NoError(t, err)
			require.Len(t, page.Entries, 1, want)
			assert.Equal(t, want, page.Entries[0].Readiness())
			assert.Equal(t, want, page.Entries[0].Handle().Readiness(page.Entries[0].Object()).Status)
			time.Sleep(time.Minute)
		}
		assert.Equal(t, []string{"ADDED pods a/web-1 5"}, failed())
	})
}

// TestCache_ReadinessAfterNewSubresource has a definition that gets the subresource status.
func TestCache_ReadinessAfterNewSubresource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const carts = "shop.example/v1 carts cart Cart\n"
		server := scripted.New(carts)
		server.Handle("WATCH /apis/shop.example/v1/carts", stream("shop.example/v1", "Cart", metadata("a/full/8")))
		c, _ := start(t, server, nil)
		require.NoError(t, c.WaitForSync(t.Context()))
		for _, want := range []readiness.Status{readiness.Current, readiness.InProgress, readiness.Current} {
			page, err := c.Query(t.Context(), &inventory.Query{Readiness: want})
			require.NoError(t, err)
			assert.Len(t, page.Entries, 1, want)
			assert.Len(t, all(t, c), 1)
			if want == readiness.Current {
				server.Serve(carts + "shop.example/v1 carts/status Cart get,patch,update")
			} else {
				server.Serve(carts)
			}
			time.Sleep(untilRefreshed)
		}
		assert.Equal(t, 4, watches(server, "/apis/shop.example/v1/carts"), "at the start and after each change")
	})
}

// TestCache_SubresourceComesAndGoes has a definition that loses the subresource status before the list with it has ended.
func TestCache_SubresourceComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const carts = "shop.example/v1 carts cart Cart\n"
		server := scripted.New(carts)
		var isSlow atomic.Bool
		release := make(chan struct{})
		respond := stream("shop.example/v1", "Cart", metadata("a/full/8"))
		server.Handle("WATCH /apis/shop.example/v1/carts", func(w http.ResponseWriter, r *http.Request) {
			if isSlow.Load() {
				select {
				case <-release:
				case <-r.Context().Done():
				}
			}
			respond(w, r)
		})
		c, _ := start(t, server, nil)
		require.NoError(t, c.WaitForSync(t.Context()))
		isSlow.Store(true)
		server.Serve(carts + "shop.example/v1 carts/status Cart get,patch,update")
		time.Sleep(untilRefreshed)
		require.Equal(t, 2, watches(server, "/apis/shop.example/v1/carts"))
		server.Serve(carts)
		time.Sleep(untilRefreshed)
		close(release)
		time.Sleep(time.Second)
		page, err := c.Query(t.Context(), &inventory.Query{Readiness: readiness.Current})
		require.NoError(t, err)
		assert.Len(t, page.Entries, 1)
	})
}
