package inventory_test

import (
	"context"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// patience bounds the wait for the API server.
const patience = 30 * time.Second

// kubectl returns the output of kubectl as the administrator.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), cluster.Kubectl(t), append([]string{"--kubeconfig", cluster.Kubeconfig(t), "--context", "admin"}, args...)...)
	out, err := command.Output()
	require.NoError(t, err, "kubectl %s", strings.Join(args, " "))
	return string(out)
}

// volatile are resources that change while the test runs.
func volatile(resource string) bool {
	return strings.HasPrefix(resource, "events") || strings.HasPrefix(resource, "leases.")
}

// kubectlObjects returns the UIDs of the objects of all resources, with their kinds.
func kubectlObjects(t *testing.T) map[string]string {
	t.Helper()
	resources := slices.DeleteFunc(strings.Fields(kubectl(t, "api-resources", "--verbs", "list", "-o", "name")), func(name string) bool {
		return volatile(name) || name == "componentstatuses" || name == "endpoints"
	})
	objects := map[string]string{}
	format := `jsonpath={range .items[*]}{.metadata.uid} {.kind}{"\n"}{end}`
	for line := range strings.Lines(kubectl(t, "get", strings.Join(resources, ","), "-A", "-o", format)) {
		uid, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		objects[uid] = kind
	}
	return objects
}

// TestList_AsKubectl compares the UIDs of all objects with kubectl's lists before and after: controllers remove objects of earlier
// tests meanwhile.
func TestList_AsKubectl(t *testing.T) {
	admin := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, admin)
	create(t, admin, "v1", "ConfigMap", namespace, "settings", nil)

	before := kubectlObjects(t)
	listed := map[bool]map[string]string{}
	for _, metadata := range []bool{false, true} {
		found := map[string]string{}
		for item, err := range inventory.List[unstructured.Lazy](t.Context(), admin, &inventory.ListOptions{Metadata: metadata}) {
			require.NoError(t, err)
			resource := item.Resource.APIResource()
			if volatile(resource.GVR.GroupResource().String()) {
				continue
			}
			uid := string(item.Object.GetUID())
			assert.Empty(t, found[uid], "%s %s is yielded twice", resource.GVK.Kind, item.Object.GetName())
			found[uid] = resource.GVK.Kind
		}
		listed[metadata] = found
	}
	after := kubectlObjects(t)

	lasting := maps.Clone(before)
	maps.DeleteFunc(lasting, func(uid, _ string) bool { return after[uid] == "" })
	require.NotEmpty(t, lasting)
	for metadata, found := range listed {
		changing := maps.Clone(found)
		maps.DeleteFunc(changing, func(uid, _ string) bool { return lasting[uid] != "" })
		for uid, kind := range changing {
			assert.True(t, before[uid] != "" || after[uid] != "", "metadata %t: kubectl lists no %s %s", metadata, kind, uid)
			delete(found, uid)
		}
		assert.Equal(t, lasting, found, "metadata %t", metadata)
	}
}

// TestList_Permissions compares what a user is yielded with the namespaces and kinds of the user's roles.
func TestList_Permissions(t *testing.T) {
	admin := client.Connect(t, "admin")
	shop := client.NewNamespace(t, admin)
	depot := client.NewNamespace(t, admin)
	for _, namespace := range []string{shop, depot} {
		create(t, admin, "v1", "ConfigMap", namespace, "settings", nil)
		create(t, admin, "v1", "Secret", namespace, "password", nil)
	}
	grant := func(namespace string, resources ...any) {
		create(t, admin, "rbac.authorization.k8s.io/v1", "Role", namespace, "reader", map[string]any{
			"rules": []any{map[string]any{"verbs": []any{"list", "watch"}, "apiGroups": []any{""}, "resources": resources}},
		})
		create(t, admin, "rbac.authorization.k8s.io/v1", "RoleBinding", namespace, "reader", map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
			"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "inventory-reader"}},
		})
	}
	grant(shop, "configmaps", "secrets")
	grant(depot, "configmaps")
	reader, err := admin.Impersonate(transport.Impersonation{User: "inventory-reader"})
	require.NoError(t, err)
	t.Cleanup(reader.Close)

	opts := &inventory.ListOptions{Namespaces: []string{shop, depot, "default"}}
	want := []string{"configmaps " + depot + "/settings", "configmaps " + shop + "/settings", "secrets " + shop + "/password"}
	slices.Sort(want)
	var found []string
	require.Eventually(t, func() bool { // the API server's authorizer learns of roles by a watch
		found, err = collect(t.Context(), reader, opts)
		found = slices.DeleteFunc(found, func(line string) bool { return strings.HasSuffix(line, "/kube-root-ca.crt") })
		return len(found) == 3
	}, patience, patience/100)
	assert.Equal(t, want, found)
	var incomplete *inventory.IncompleteError
	require.ErrorAs(t, err, &incomplete)
	for _, failed := range incomplete.Resources {
		assert.True(t, apierrors.IsForbidden(failed), "%v", failed)
		switch failed.GroupResource().String() {
		case "configmaps":
			assert.ElementsMatch(t, []string{shop, depot}, failed.Namespaces)
		case "secrets":
			assert.Equal(t, []string{shop}, failed.Namespaces)
		default:
			assert.Empty(t, failed.Namespaces, "%v", failed)
		}
	}
	_, err = collect(t.Context(), reader, nil)
	assert.ErrorContains(t, err, "ListOptions.Namespaces", "the user may not list namespaces")

	// A user who may list the namespaces does not name them.
	create(t, admin, "rbac.authorization.k8s.io/v1", "ClusterRole", "", shop, map[string]any{
		"rules": []any{map[string]any{"verbs": []any{"list"}, "apiGroups": []any{""}, "resources": []any{"namespaces"}}},
	})
	create(t, admin, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", shop, map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": shop},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "inventory-reader"}},
	})
	client.DeleteAtEnd(t, client.Resource(t, admin, "clusterroles"), shop)
	client.DeleteAtEnd(t, client.Resource(t, admin, "clusterrolebindings"), shop)
	require.Eventually(t, func() bool {
		_, err := client.Resource(t, reader, "namespaces").ListPage(t.Context(), nil)
		return err == nil
	}, patience, patience/100)
	c := inventory.NewCache(reader, &inventory.ListOptions{Select: func(r *discovery.Resource) bool {
		return r.GVR.Group == "" && (r.GVR.Resource == "configmaps" || r.GVR.Resource == "secrets")
	}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.ErrorIs(t, <-ended, context.Canceled)
	})
	assert.True(t, apierrors.IsForbidden(c.WaitForSync(t.Context())))
	page, err := c.Query(t.Context(), nil)
	require.NoError(t, err)
	found = nil
	for _, entry := range page.Entries {
		if entry.Name != "kube-root-ca.crt" {
			found = append(found, entry.APIResource().GVR.Resource+" "+entry.Namespace+"/"+entry.Name)
		}
	}
	slices.Sort(found)
	assert.Equal(t, want, found)
}

func create(t *testing.T, admin *dynamic.Client, apiVersion, kind, namespace, name string, fields map[string]any) {
	t.Helper()
	obj := &unstructured.Object{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	maps.Copy(obj.Object, fields)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	resource, err := admin.ForObject(t.Context(), obj)
	require.NoError(t, err)
	_, err = resource.Create(t.Context(), obj, nil)
	require.NoError(t, err)
}

// TestCache_AsList compares a cache with List while definitions and permissions come and go.
func TestCache_AsList(t *testing.T) {
	admin := client.Connect(t, "admin")
	shop := client.NewNamespace(t, admin)
	hasWatch := &inventory.ListOptions{Select: func(r *discovery.Resource) bool {
		return r.Supports("watch") && !volatile(r.GVR.GroupResource().String())
	}}
	c := inventory.NewCache(admin, hasWatch)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.ErrorIs(t, <-ended, context.Canceled)
	})
	require.NoError(t, c.WaitForSync(t.Context()))

	listed := func(by *dynamic.Client, opts *inventory.ListOptions) map[string]string {
		found := map[string]string{}
		for item, err := range inventory.List[unstructured.Lazy](t.Context(), by, opts) {
			var incomplete *inventory.IncompleteError
			if err != nil {
				require.ErrorAs(t, err, &incomplete)
				continue
			}
			found[string(item.Object.GetUID())] = item.Resource.APIResource().GVR.String() + " " + item.Object.GetNamespace() + "/" + item.Object.GetName()
		}
		return found
	}
	type querier interface {
		Query(ctx context.Context, q *inventory.Query) (*inventory.Page, error)
	}
	cached := func(in querier, q *inventory.Query) map[string]string {
		page, err := in.Query(t.Context(), q)
		require.NoError(t, err)
		found := map[string]string{}
		for _, entry := range page.Entries {
			found[string(entry.UID())] = entry.APIResource().GVR.String() + " " + entry.Namespace + "/" + entry.Name
		}
		return found
	}
	equal := func(message string) {
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			assert.Equal(t, listed(admin, hasWatch), cached(c, nil))
		}, patience, patience/100, message)
	}
	equal("at first")

	plural := "boxes" + shop
	definition := plural + ".inventory.example"
	versions := func(all ...string) (list []any) {
		for i, name := range all {
			list = append(list, map[string]any{"name": name, "served": true, "storage": i == 0, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}})
		}
		return list
	}
	definitions, err := admin.Resource(t.Context(), "customresourcedefinitions")
	require.NoError(t, err)
	create(t, admin, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", definition, map[string]any{"spec": map[string]any{
		"group": "inventory.example", "scope": "Namespaced", "names": map[string]any{"plural": plural, "kind": "Box"}, "versions": versions("v1"),
	}})
	t.Cleanup(func() { _, _ = definitions.Delete(context.WithoutCancel(t.Context()), definition, nil) })
	_, err = admin.WaitForResources(t.Context(), plural)
	require.NoError(t, err)
	create(t, admin, "inventory.example/v1", "Box", shop, "big", nil)
	isBox := func(r *discovery.Resource) bool { return r.GVR.Resource == plural }
	boxVersion := func() (version string) {
		page, err := c.Query(t.Context(), &inventory.Query{Select: isBox})
		require.NoError(t, err)
		for _, entry := range page.Entries {
			version = entry.APIResource().GVR.Version
		}
		return version
	}
	require.Eventually(t, func() bool { return boxVersion() == "v1" }, patience, patience/100)
	equal("with a new definition")
	_, _, err = definitions.Upsert(t.Context(), definition, func(obj *unstructured.Object) error {
		return unstructured.Set(obj, versions("v1", "v2"), "spec", "versions")
	}, nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return boxVersion() == "v2" }, patience, patience/100, "the preferred version")
	equal("with a new version")

	create(t, admin, "rbac.authorization.k8s.io/v1", "Role", shop, "reader", map[string]any{
		"rules": []any{map[string]any{"verbs": []any{"list"}, "apiGroups": []any{"", "inventory.example"}, "resources": []any{"configmaps", plural}}},
	})
	create(t, admin, "rbac.authorization.k8s.io/v1", "RoleBinding", shop, "reader", map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "inventory-viewer"}},
	})
	viewer, err := admin.Impersonate(transport.Impersonation{User: "inventory-viewer"})
	require.NoError(t, err)
	t.Cleanup(viewer.Close)
	require.EventuallyWithT(t, func(t *assert.CollectT) { // a view remembers its permissions
		found := cached(c.For(viewer), nil)
		assert.NotEmpty(t, found)
		assert.Equal(t, listed(viewer, &inventory.ListOptions{Namespaces: []string{shop}, Select: hasWatch.Select}), found)
	}, patience, patience/100)

	_, err = definitions.Delete(t.Context(), definition, nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return boxVersion() == "" }, patience, patience/100)
	equal("without the definition")
	require.NoError(t, c.Health())
}
