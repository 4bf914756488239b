package clustercopy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/clustercopy"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// names returns the kinds and names of objects in a namespace.
func names(c *clustercopy.Copy, namespace string) (all []string) {
	for _, obj := range c.Objects {
		if obj.GetNamespace() == namespace {
			all = append(all, obj.GetKind()+" "+obj.GetName())
		}
	}
	slices.Sort(all)
	return all
}

func omissions(c *clustercopy.Copy) (all []string) {
	for _, o := range c.Omitted {
		all = append(all, o.String())
	}
	return all
}

func TestFrom_Selection(t *testing.T) {
	c := sandbox(t)
	rules := []string{"ResourceQuota pods", "Role reader"} // always copied
	for name, tc := range map[string]struct {
		opts *clustercopy.Options
		want []string
	}{
		"resources": {&clustercopy.Options{Resources: []string{"cm,wd", "leases"}}, []string{
			"ConfigMap leaving", "ConfigMap owned", "ConfigMap settings", "Lease leader", "Widget red",
		}},
		"labels":            {&clustercopy.Options{LabelSelector: "team=a"}, []string{"ConfigMap settings", "Widget red"}},
		"another namespace": {&clustercopy.Options{Namespaces: []string{"default"}}, nil},
		"nothing further":   {&clustercopy.Options{Resources: []string{}}, rules},
		"a namespace": {&clustercopy.Options{Namespaces: []string{"shop"}, Resources: []string{"all"}}, []string{
			"CronJob backup", "Deployment web", "HorizontalPodAutoscaler web", "Service web",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			taken, err := clustercopy.From(t.Context(), c, tc.opts)
			require.NoError(t, err)
			want := tc.want
			if want != nil && name != "nothing further" {
				want = append(slices.Clone(tc.want), rules...)
				slices.Sort(want)
			}
			assert.Equal(t, want, names(taken, "shop"))
			assert.Contains(t, names(taken, ""), "CustomResourceDefinition widgets.shop.example.com")
			assert.Contains(t, names(taken, ""), "Namespace kube-system")
			assert.Contains(t, names(taken, ""), "ClusterRole cluster-admin")
		})
	}
}

func TestFrom_SecretsAndDefaults(t *testing.T) {
	c := sandbox(t)
	const applied = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"password"},"stringData":{"password":"swordfish"}}`
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		"kubectl.kubernetes.io/last-applied-configuration": applied, "note": "kept",
	}}})
	require.NoError(t, err)
	_, err = client.Resource(t, c, "secrets").Namespace("shop").Patch(t.Context(), "password", "application/merge-patch+json", patch, nil)
	require.NoError(t, err)
	var last clustercopy.Progress
	taken, err := clustercopy.From(t.Context(), c, &clustercopy.Options{OnProgress: func(p clustercopy.Progress) {
		assert.LessOrEqual(t, last.Lists, p.Lists)
		last = p
	}})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"componentstatuses: component statuses are computed and not stored", "events: events are copied only if they are named",
		"events.events.k8s.io: events are copied only if they are named", "leases.coordination.k8s.io: leases are copied only if they are named",
		"secrets: the values of data are empty (Options.SecretData keeps them)",
	}, omissions(taken))
	assert.Equal(t, len(taken.Objects), last.Objects)
	assert.Equal(t, last.AllLists, last.Lists)
	for _, text := range texts(taken) {
		assert.NotContains(t, text, "swordfish")
		assert.NotContains(t, text, "c3dvcmRmaXNo")
	}
	i := slices.IndexFunc(taken.Objects, func(obj *unstructured.Lazy) bool { return obj.GetKind() == "Secret" && obj.GetName() == "password" })
	data, _, err := unstructured.Get[map[string]string](taken.Objects[i], "data")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"password": ""}, data)
	assert.Equal(t, "kept", taken.Objects[i].GetAnnotations()["note"])
	for _, r := range taken.Resources {
		assert.Equal(t, taken.ResourceVersion, r.ResourceVersion, r.Plural)
	}
}

func TestFrom_LimitedUser(t *testing.T) {
	ctx := t.Context()
	c := sandbox(t)
	apply(t, c, `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: bob, namespace: shop}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [list]}
- {apiGroups: [""], resources: [namespaces], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: bob, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: bob}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
`)
	bob, err := c.Impersonate(transport.Impersonation{User: "bob"})
	require.NoError(t, err)
	taken, err := clustercopy.From(ctx, bob, &clustercopy.Options{Namespaces: []string{"shop", "elsewhere"}})
	require.NoError(t, err)
	assert.Equal(t, []string{"ConfigMap leaving", "ConfigMap owned", "ConfigMap settings"}, names(taken, "shop"))
	assert.Equal(t, []string{"Namespace shop"}, names(taken, ""))
	assert.Len(t, taken.Objects, 4)
	all := strings.Join(omissions(taken), "\n")
	assert.Contains(t, all, `configmaps in namespace elsewhere: configmaps is forbidden: User "bob" cannot list resource "configmaps"`)
	assert.Contains(t, all, `secrets in namespace shop: `)
	assert.Contains(t, all, `namespaces in namespace elsewhere: `)
	assert.NotContains(t, all, `namespaces in namespace shop: `)
	assert.Contains(t, all, `User "bob" cannot list resource "nodes"`)
	server := apitest.NewServer(t, &apitest.Options{Copy: taken})
	_, err = client.Resource(t, server.Client(), "namespaces").Get(ctx, "shop", nil)
	require.NoError(t, err)
}

func TestFrom_ServedPermissions(t *testing.T) {
	ctx := t.Context()
	c := sandbox(t)
	apply(t, c, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: settings}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: bob-settings}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: settings}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
`)
	taken, err := clustercopy.From(ctx, c, nil)
	require.NoError(t, err)
	server := apitest.NewServer(t, &apitest.Options{Copy: taken, RBAC: true})
	for _, api := range []*dynamic.Client{c, server.Client()} {
		bob, err := api.Impersonate(transport.Impersonation{User: "bob"})
		require.NoError(t, err)
		maps := client.Resource(t, bob, "configmaps").Namespace("shop")
		require.Eventually(t, func() bool { // authorizers of a real server follow the bindings
			_, err := maps.Get(ctx, "settings", nil)
			return err == nil
		}, time.Minute, 10*time.Millisecond)
		_, err = client.Resource(t, bob, "secrets").Namespace("shop").Get(ctx, "password", nil)
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
	}
}

func apply(t *testing.T, c *dynamic.Client, text string) {
	t.Helper()
	for obj, err := range c.ForObjects(t.Context(), unstructured.NewYAMLDecoder(strings.NewReader(text)).All()) {
		require.NoError(t, err)
		_, err = obj.Resource.Apply(t.Context(), obj.Object, &metav1.ApplyOptions{FieldManager: "test", Force: true})
		require.NoError(t, err)
		client.DeleteAtEnd(t, obj.Resource, obj.Object.GetName())
	}
}

func TestFrom_Errors(t *testing.T) {
	c := client.Connect(t, "admin")
	_, err := clustercopy.From(t.Context(), c, &clustercopy.Options{Resources: []string{"missing-widgets"}})
	var noMatch *restmapper.NoMatchError
	require.ErrorAs(t, err, &noMatch)
	_, err = clustercopy.From(t.Context(), c, &clustercopy.Options{LabelSelector: "a=="})
	require.NoError(t, err)
	_, err = clustercopy.From(t.Context(), c, &clustercopy.Options{LabelSelector: "a b"})
	require.ErrorContains(t, err, "copy the cluster: Options.LabelSelector: ")
	_, err = clustercopy.From(t.Context(), c, &clustercopy.Options{Resources: []string{"tokenreviews"}})
	require.ErrorContains(t, err, "tokenreviews.authentication.k8s.io cannot be listed")
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	_, err = clustercopy.From(ctx, c, &clustercopy.Options{OnProgress: func(p clustercopy.Progress) {
		if p.Lists > 5 {
			cancel(reason)
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, reason)
	taken, err := clustercopy.From(t.Context(), c, &clustercopy.Options{Namespaces: []string{"missing"}, Resources: []string{}})
	require.NoError(t, err)
	assert.Contains(t, omissions(taken), "namespaces in namespace missing: there is no such namespace")
}

func TestFrom_UnavailableGroup(t *testing.T) {
	ctx := t.Context()
	c := client.Connect(t, "admin")
	apply(t, c, `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.broken.example.com}
spec:
  {group: broken.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: none, namespace: default}}
`)
	require.Eventually(t, func() bool {
		taken, err := clustercopy.From(ctx, c, &clustercopy.Options{Resources: []string{}})
		require.NoError(t, err)
		return slices.ContainsFunc(omissions(taken), func(text string) bool {
			return strings.HasPrefix(text, "broken.example.com/v1: the group version is unavailable")
		})
	}, time.Minute, 100*time.Millisecond)
}

// scriptedCluster has an aggregated API server, and has forgotten the revision of the first list.
func scriptedCluster() *scripted.Server {
	server := scripted.New(`
/v1 configmaps configmap ConfigMap
cluster apiregistration.k8s.io/v1 apiservices apiservice APIService
usages.example.com/v1 usages usage Usage
`)
	server.Handle("GET /version", scripted.JSON(`{"gitVersion":"v1.2.3"}`))
	server.Handle("GET /apis/apiregistration.k8s.io/v1/apiservices", scripted.JSON(list("APIService", "apiregistration.k8s.io/v1", "7", "",
		`{"metadata":{"name":"v1.usages.example.com","resourceVersion":"2"},"spec":{"group":"usages.example.com","version":"v1","service":{"name":"usages"}}}`)))
	server.Handle("GET /apis/usages.example.com/v1/usages", scripted.JSON(list("Usage", "usages.example.com/v1", "99", "",
		`{"metadata":{"name":"one","namespace":"default","resourceVersion":"1"},"usage":"7"}`)))
	return server
}

// list returns a page of a list.
func list(kind, apiVersion, resourceVersion, token string, items ...string) string {
	return fmt.Sprintf(`{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"%s","continue":"%s"},"items":[%s]}`,
		kind, apiVersion, resourceVersion, token, strings.Join(items, ","))
}

func TestFrom_RevisionsOfLists(t *testing.T) {
	server := scriptedCluster()
	var queries []string
	server.Handle("GET /api/v1/configmaps", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		queries = append(queries, query.Get("resourceVersion")+query.Get("resourceVersionMatch")+query.Get("continue"))
		switch len(queries) {
		case 1, 3: // the revision of the copy, and that of the second page
			scripted.Status(http.StatusGone, "Expired")(w, r)
		case 2:
			scripted.JSON(list("ConfigMap", "v1", "8", "more", `{"metadata":{"name":"lost","namespace":"default","resourceVersion":"3"}}`))(w, r)
		default:
			scripted.JSON(list("ConfigMap", "v1", "9", "", `{"metadata":{"name":"settings","namespace":"default","resourceVersion":"4"}}`))(w, r)
		}
	})
	c := dynamic.New(scripted.Connect(t, server, nil), nil)
	var last clustercopy.Progress
	taken, err := clustercopy.From(t.Context(), c, &clustercopy.Options{OnProgress: func(p clustercopy.Progress) { last = p }})
	require.NoError(t, err)
	assert.Equal(t, []string{"7Exact", "", "more", ""}, queries)
	assert.Equal(t, 3, last.Objects)
	assert.Equal(t, "v1.2.3", taken.Version.GitVersion)
	assert.Equal(t, "7", taken.ResourceVersion)
	require.Len(t, taken.Resources, 3)
	assert.Equal(t, "9", taken.Resources[1].ResourceVersion)
	assert.Equal(t, []string{"ConfigMap settings", "Usage one"}, names(taken, "default"))
	assert.Empty(t, taken.Omitted)
	assert.Equal(t, []bool{false, false, true}, []bool{taken.Resources[0].IsAggregated, taken.Resources[1].IsAggregated, taken.Resources[2].IsAggregated})

	served := apitest.NewServer(t, &apitest.Options{Copy: taken})
	usage, err := client.Resource(t, served.Client(), "usages").Namespace("default").Get(t.Context(), "one", nil)
	require.NoError(t, err)
	assert.Equal(t, "7", usage.Object["usage"])
	assert.NotEqual(t, "1", usage.GetResourceVersion())
	assert.Len(t, served.CopyDifferences(), 2)
}

func TestFrom_FailedLists(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		omitted string
		failure func(error) bool
	}{
		"unavailable":      {handler: scripted.Status(http.StatusServiceUnavailable, "ServiceUnavailable"), omitted: "configmaps: "},
		"failed webhook":   {handler: scripted.Status(http.StatusInternalServerError, "InternalError"), omitted: "configmaps: "},
		"rejected":         {handler: scripted.Status(http.StatusUnauthorized, "Unauthorized"), failure: apierrors.IsUnauthorized},
		"broken":           {handler: scripted.Break, failure: func(err error) bool { return err != nil }},
		"malformed object": {handler: scripted.JSON(`{"kind":"ConfigMapList","apiVersion":"v1","items":[7]}`), failure: func(err error) bool { return err != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			server := scriptedCluster()
			server.Handle("GET /api/v1/configmaps", tc.handler)
			taken, err := clustercopy.From(t.Context(), dynamic.New(scripted.Connect(t, server, nil), nil), nil)
			if tc.failure != nil {
				assert.True(t, tc.failure(err), "%v", err)
				return
			}
			require.NoError(t, err)
			require.Len(t, taken.Omitted, 1)
			assert.Contains(t, taken.Omitted[0].String(), tc.omitted)
			assert.Len(t, taken.Objects, 2)
		})
	}
}
