package rbac_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/rbac"
	"github.com/anykind/anykind/unstructured"
)

// patience bounds how long the test waits for the server to see new roles.
const patience = 30 * time.Second

func config(t *testing.T) *transport.Config {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: "admin"})
	require.NoError(t, err)
	return cfg
}

// user returns a client of a user who has no other roles than everybody. admin's discovery spares it its own.
func user(t *testing.T, name string, admin *dynamic.Client) *dynamic.Client {
	t.Helper()
	cfg := config(t)
	cfg.Impersonate.User = name
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return dynamic.New(conn, admin.Discovery())
}

func resource(t *testing.T, client *dynamic.Client, name string) *dynamic.Resource {
	t.Helper()
	found, err := client.Resource(t.Context(), name)
	require.NoError(t, err)
	return found
}

func create(t *testing.T, client *dynamic.Client, objects ...map[string]any) (created *unstructured.Object) {
	t.Helper()
	for _, fields := range objects {
		obj := &unstructured.Object{Object: fields}
		of, err := client.ForObject(t.Context(), obj)
		require.NoError(t, err)
		created, err = of.Create(t.Context(), obj, nil)
		require.NoError(t, err)
	}
	return created
}

func newNamespace(t *testing.T, admin *dynamic.Client) string {
	t.Helper()
	name := create(t, admin, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "rbac-"}}).GetName()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := resource(t, admin, "namespaces").Delete(ctx, name, nil)
		assert.NoError(t, err)
	})
	return name
}

// request is a call on a resource in the first namespace.
type request struct {
	name, resource string
	send           func(context.Context, *dynamic.Resource) error
}

// raw sends a request that no verb sends.
func raw(method, path string) func(context.Context, *dynamic.Resource) error {
	return func(ctx context.Context, r *dynamic.Resource) error {
		response, err := r.Conn().Do(ctx, &transport.Request{Method: method, Path: path})
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
}

// websocket opens a stream.
func websocket(path string) func(context.Context, *dynamic.Resource) error {
	return func(ctx context.Context, r *dynamic.Resource) error {
		conn, _, err := r.Conn().Upgrade(ctx, &transport.Request{Path: path, Header: http.Header{
			"Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="},
		}})
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

func list(opts *metav1.ListOptions) func(context.Context, *dynamic.Resource) error {
	return func(ctx context.Context, r *dynamic.Resource) error {
		_, err := r.ListPage(ctx, opts)
		return err
	}
}

func get(name string) func(context.Context, *dynamic.Resource) error {
	return func(ctx context.Context, r *dynamic.Resource) error {
		_, err := r.Get(ctx, name, nil)
		return err
	}
}

func named(name string) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}}}
}

func write(name string) func(context.Context, *dynamic.Resource) error {
	return func(ctx context.Context, r *dynamic.Resource) error {
		_, err := r.Create(ctx, named(name), nil)
		return err
	}
}

func update(name string) func(context.Context, *dynamic.Resource) error {
	return func(ctx context.Context, r *dynamic.Resource) error {
		_, err := r.Update(ctx, named(name), nil)
		return err
	}
}

// requests are one of each kind: every verb, names, subresources, streams, cluster-wide ones and other paths.
func requests(one, two string) []request {
	prefix := "/api/v1/namespaces/" + one
	type r = dynamic.Resource
	return []request{
		{"create", "configmaps", write("created")},
		{"get", "configmaps", get("created")},
		{"HEAD", "pods", raw(http.MethodHead, prefix+"/serviceaccounts/robot")},
		{"update", "configmaps", update("missing")},
		{"patch", "configmaps", func(ctx context.Context, in *r) error {
			_, err := in.Patch(ctx, "created", types.MergePatchType, []byte(`{"data":{"a":"1"}}`), nil)
			return err
		}},
		{"apply that creates", "secrets", func(ctx context.Context, in *r) error {
			_, err := in.Apply(ctx, named("applied"), &metav1.ApplyOptions{FieldManager: "test"})
			return err
		}},
		{"update that creates", "leases", update("updated")},
		{"delete", "services", func(ctx context.Context, in *r) error {
			_, err := in.Delete(ctx, "web", nil)
			return err
		}},
		{"deletecollection", "pods", func(ctx context.Context, in *r) error {
			_, err := in.DeleteCollection(ctx, nil, nil)
			return err
		}},
		{"list", "configmaps", list(nil)},
		{"list of one name", "endpointslices", list(&metav1.ListOptions{FieldSelector: "metadata.name=web"})},
		{"watch of one name", "secrets", func(ctx context.Context, in *r) error {
			for _, err := range in.Watch(ctx, &metav1.ListOptions{FieldSelector: "metadata.name=web"}) {
				return err
			}
			return nil
		}},
		{"list of all namespaces", "deployments", func(ctx context.Context, in *r) error { return list(nil)(ctx, in.AllNamespaces()) }},
		{"list of one of all namespaces", "deployments", list(nil)},
		{"another namespace", "secrets", func(ctx context.Context, in *r) error { return get("key")(ctx, in.Namespace(two)) }},
		{"cluster-scoped", "nodes", list(nil)},
		{"a namespace", "namespaces", get(one)},
		{"subresource", "deployments", func(ctx context.Context, in *r) error { return get("web")(ctx, in.Subresource("scale")) }},
		{"token", "serviceaccounts", func(ctx context.Context, in *r) error {
			_, err := in.CreateToken(ctx, "robot", nil)
			return err
		}},
		{"eviction", "pods", func(ctx context.Context, in *r) error { return write("web")(ctx, in.Subresource("eviction")) }},
		{"log", "pods", raw(http.MethodGet, prefix+"/pods/web/log")},
		{"exec", "pods", websocket(prefix + "/pods/web/exec?command=ls&stdout=true")},
		{"port-forward", "pods", websocket(prefix + "/pods/web/portforward")},
		{"service proxy", "services", raw(http.MethodOptions, prefix+"/services/web/proxy/")},
		{"another path", "pods", raw(http.MethodGet, "/metrics")},
		{"discovery", "pods", raw(http.MethodGet, "/apis/apps/v1")},
		{"own permissions", "selfsubjectaccessreviews", func(ctx context.Context, in *r) error {
			_, err := in.Create(ctx, access("", "pods", ""), nil)
			return err
		}},
	}
}

func access(group, resource, namespace string) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{"spec": map[string]any{"resourceAttributes": map[string]any{
		"group": group, "resource": resource, "namespace": namespace, "verb": "get",
	}}}}
}

// forbidden sends the requests and returns the names of those that are forbidden. Before, admin deletes what they create.
func forbidden(t *testing.T, admin, as *dynamic.Client, namespace string, all []request) (names []string) {
	t.Helper()
	for kind, name := range map[string]string{"configmaps": "created", "secrets": "applied", "leases": "updated"} {
		_, err := resource(t, admin, kind).Namespace(namespace).Delete(t.Context(), name, nil)
		require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	}
	for _, one := range all {
		of := resource(t, as, one.resource)
		if of.APIResource().Namespaced {
			of = of.Namespace(namespace)
		}
		if err := one.send(t.Context(), of); apierrors.IsForbidden(err) {
			names = append(names, one.name)
		}
	}
	return names
}

// sentinel is the group of the resources that grant adds to roles, one to each, to see when the server has it.
const sentinel = "sentinel.example.com"

// grant creates roles under a name, and binds a user of that name to them. It returns when the server uses them.
func grant(t *testing.T, admin *dynamic.Client, name string, roles []*unstructured.Object) *dynamic.Client {
	t.Helper()
	for i, role := range roles {
		version := role.GetAPIVersion()
		kind := role.GetKind()
		namespace := role.GetNamespace()
		metadata := func() map[string]any {
			fields := map[string]any{"name": name, "labels": map[string]any{"test": "rbac"}}
			if namespace != "" {
				fields["namespace"] = namespace
			}
			return fields
		}
		rules, _ := role.Object["rules"].([]any)
		rules = append(slices.Clone(rules), map[string]any{"apiGroups": []any{sentinel}, "resources": []any{fmt.Sprint("r", i)}, "verbs": []any{"get"}})
		subject := map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}
		reference := map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
		create(t, admin, map[string]any{"apiVersion": version, "kind": kind, "metadata": metadata(), "rules": rules},
			map[string]any{"apiVersion": version, "kind": kind + "Binding", "metadata": metadata(), "subjects": []any{subject}, "roleRef": reference})
	}
	reviews := resource(t, admin, "subjectaccessreviews")
	deadline := time.Now().Add(patience)
	for i, role := range roles {
		review := access(sentinel, fmt.Sprint("r", i), role.GetNamespace())
		require.NoError(t, unstructured.Set(review, name, "spec", "user"))
		for allowed := false; !allowed; {
			require.True(t, time.Now().Before(deadline), "%s %s is not used", role.GetKind(), name)
			response, err := reviews.Create(t.Context(), review, nil)
			require.NoError(t, err)
			allowed, _, err = unstructured.Get[bool](response, "status", "allowed")
			require.NoError(t, err)
		}
	}
	return user(t, name, admin)
}

// reduction is a set of roles from which one element of one rule is removed.
type reduction struct {
	removed string
	roles   []*unstructured.Object
}

// reductions returns one for each verb, resource, name and path.
func reductions(roles []*unstructured.Object) (all []reduction) {
	for i, role := range roles {
		rules, _ := role.Object["rules"].([]any)
		for j, one := range rules {
			fields, _ := one.(map[string]any)
			for field, value := range fields {
				elements, _ := value.([]any)
				for k, element := range elements {
					changed := role.DeepCopy()
					rules, _ := changed.Object["rules"].([]any)
					rule, _ := rules[j].(map[string]any)
					if rule[field] = slices.Delete(slices.Clone(elements), k, k+1); len(elements) == 1 {
						changed.Object["rules"] = slices.Delete(rules, j, j+1) // an empty list may mean all
					}
					reduced := slices.Clone(roles)
					reduced[i] = changed
					all = append(all, reduction{fmt.Sprintf("%s %v of rule %v", field, element, fields), reduced})
				}
			}
		}
	}
	return all
}

// isUnneeded reports whether servers before 1.35 do not check an element of a rule: WebSockets of pods only need get there
// (https://github.com/kubernetes/kubernetes/issues/133515).
func isUnneeded(t *testing.T, removed string) bool {
	t.Helper()
	return strings.HasPrefix(removed, "verbs create of") && strings.Contains(removed, "pods/exec") && cluster.Version(t).Minor() < 35
}

func TestRoles_AreSufficientAndSmallest(t *testing.T) {
	recorder := rbac.NewRecorder(nil)
	cfg := config(t)
	admin, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(admin.Close)
	one := newNamespace(t, admin)
	two := newNamespace(t, admin)
	create(t, admin, map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "web", "namespace": one}})
	cfg.OnAttempt = recorder.OnAttempt
	recorded, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(recorded.Close)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for _, kind := range []string{"clusterroles", "clusterrolebindings"} {
			of, err := admin.Resource(ctx, kind)
			if assert.NoError(t, err) {
				_, err = of.DeleteCollection(ctx, nil, &metav1.ListOptions{LabelSelector: "test=rbac"})
				assert.NoError(t, err)
			}
		}
	})

	all := requests(one, two)
	require.Empty(t, forbidden(t, admin, recorded, one, all))
	roles := recorder.Roles("recorded")
	require.Len(t, roles, 3, "one for the cluster, and one for each namespace")
	checkManifest(t, roles)

	assert.Len(t, forbidden(t, admin, user(t, one+"-nobody", admin), one, all), len(all)-2, "all but discovery and own permissions")
	assert.Empty(t, forbidden(t, admin, grant(t, admin, one+"-recorded", roles), one, all), "the roles are sufficient")
	reduced := reductions(roles)
	require.Greater(t, len(reduced), 50)
	for i, r := range reduced {
		if isUnneeded(t, r.removed) {
			continue
		}
		as := grant(t, admin, fmt.Sprint(one, "-", i), r.roles)
		assert.NotEmpty(t, forbidden(t, admin, as, one, all), "everything is allowed without %s", r.removed)
	}
	t.Logf("%d requests; %d elements of rules, none of which can be removed", len(all), len(reduced))
}

// checkManifest lets kubectl validate the roles.
func checkManifest(t *testing.T, roles []*unstructured.Object) {
	t.Helper()
	manifest, err := unstructured.EncodeYAML(roles...)
	require.NoError(t, err)
	t.Logf("%s", manifest)
	file := filepath.Join(t.TempDir(), "roles.yaml")
	require.NoError(t, os.WriteFile(file, manifest, 0o600))
	output, err := exec.CommandContext(t.Context(), cluster.Kubectl(t), "--kubeconfig", cluster.Kubeconfig(t), "create", "--dry-run=server", "--validate=strict", "-f", file).CombinedOutput()
	require.NoError(t, err, "%s", output)
}
