package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/inventory/web"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/unstructured"
)

const (
	patience = 30 * time.Second
	hostile  = "<script>alert(1)</script>"
	// secretText is in the data of a Secret as base64 and in its annotations.
	secretText = "hunter2-hunter2"
	secretData = "aHVudGVyMi1odW50ZXIy"
)

// objects are in the namespace of the test.
const objects = `[
	{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}},
	{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "operator"}},
	{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "server"}},
	{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password", "annotations": {"applied": "hunter2-hunter2"}}, "stringData": {"password": "hunter2-hunter2"}},
	{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "<script>alert(1)<script>"}},
	{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
		"rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps", "secrets"]}]},
	{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "reader"},
		"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}, "subjects": [{"kind": "ServiceAccount", "name": "reader"}]}
]`

// fixture serves the objects of a namespace to two users: the operator may list everything, the reader some kinds in the namespace.
type fixture struct {
	namespace, address string
	client             *http.Client
	tokens             map[string]string
	owner              *unstructured.Object
}

// get returns the response to a user, or to no user for "".
func (f *fixture) get(t *testing.T, user, path string) (code int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+f.address+path, nil)
	require.NoError(t, err)
	if user == "browser" {
		request.SetBasicAuth("any", f.tokens["operator"])
	} else if user != "" {
		request.Header.Set("Authorization", "Bearer "+f.tokens[user])
	}
	response, err := f.client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Contains(t, response.Header.Get("Content-Security-Policy"), "default-src 'none'")
	assert.NotContains(t, string(text), hostile)
	assert.NotContains(t, string(text), secretText)
	assert.NotContains(t, string(text), secretData)
	return response.StatusCode, string(text)
}

func (f *fixture) getJSON(t *testing.T, user, path string, into any) {
	t.Helper()
	code, body := f.get(t, user, path)
	require.Equal(t, http.StatusOK, code, body)
	require.NoError(t, json.Unmarshal([]byte(body), into))
}

func create(t *testing.T, admin *dynamic.Client, namespace string, obj *unstructured.Object) *unstructured.Object {
	t.Helper()
	resource, err := admin.ForObject(t.Context(), obj)
	require.NoError(t, err)
	if resource.APIResource().Namespaced {
		resource = resource.Namespace(namespace)
	}
	created, err := resource.Create(t.Context(), obj, nil)
	require.NoError(t, err)
	if !resource.APIResource().Namespaced {
		client.DeleteAtEnd(t, resource, created.GetName())
	}
	return created
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	admin := client.Connect(t, "admin")
	f := &fixture{namespace: client.NewNamespace(t, admin), tokens: map[string]string{"wrong": "no-token"}}
	var all []map[string]any
	require.NoError(t, json.Unmarshal([]byte(objects), &all))
	for _, fields := range all {
		create(t, admin, f.namespace, &unstructured.Object{Object: fields})
	}
	grant := func(account, role string) {
		create(t, admin, "", &unstructured.Object{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": f.namespace + "-" + account},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": f.namespace}},
		}})
	}
	grant("operator", "cluster-admin")
	role := documentedRole(t)
	role.SetName(f.namespace)
	create(t, admin, "", role)
	grant("server", f.namespace)
	configMap := func(name string, owners ...metav1.OwnerReference) *unstructured.Object {
		obj := &unstructured.Object{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"text": hostile}}}
		obj.SetName(name)
		obj.SetAnnotations(map[string]string{"hostile": hostile})
		obj.SetOwnerReferences(owners)
		return create(t, admin, f.namespace, obj)
	}
	f.owner = configMap("owner")
	dependent := configMap("dependent", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: f.owner.GetUID()})
	cycle := fmt.Appendf(nil, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"dependent","uid":%q}]}}`, dependent.GetUID())
	_, err := client.Resource(t, admin, "configmaps").Namespace(f.namespace).Patch(t.Context(), "owner", types.MergePatchType, cycle, nil)
	require.NoError(t, err)
	create(t, admin, f.namespace, &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": "owner.1"}, "reason": "Noticed", "message": hostile, "type": "Normal",
		"involvedObject": map[string]any{"kind": "ConfigMap", "namespace": f.namespace, "name": "owner", "uid": string(f.owner.GetUID())},
	}})
	for _, user := range []string{"reader", "operator", "server"} {
		request := &unstructured.Object{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}}
		created, err := client.Resource(t, admin, "serviceaccounts").Namespace(f.namespace).Named(user).Subresource("token").Create(t.Context(), request, nil)
		require.NoError(t, err)
		f.tokens[user], _, err = unstructured.Get[string](created, "status", "token")
		require.NoError(t, err)
		waitForRights(t, admin, f.namespace, user)
	}
	f.serve(t)
	return f
}

// documentedRole returns the ClusterRole of the documentation.
func documentedRole(t *testing.T) *unstructured.Object {
	t.Helper()
	text, err := os.ReadFile("../../docs/INVENTORY.md")
	require.NoError(t, err)
	_, manifest, found := strings.Cut(string(text), "```yaml\n")
	require.True(t, found)
	manifest, _, _ = strings.Cut(manifest, "```")
	role, err := unstructured.NewYAMLDecoder(strings.NewReader(manifest)).Next()
	require.NoError(t, err)
	return role
}

// waitForRights waits until the API server's authorizer knows the roles: a view remembers permissions for a minute.
func waitForRights(t *testing.T, admin *dynamic.Client, namespace, user string) {
	t.Helper()
	as, err := admin.Impersonate(transport.Impersonation{User: "system:serviceaccount:" + namespace + ":" + user})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		secrets, err := as.Resource(context.Background(), "secrets")
		require.NoError(t, err)
		_, err = secrets.Namespace(namespace).ListPage(context.Background(), nil)
		assert.NoError(t, err)
	}, patience, patience/300)
}

// serve serves the pages with TLS until the test ends. The cache has the documented role alone.
func (f *fixture) serve(t *testing.T) {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: "admin"})
	require.NoError(t, err)
	cfg = &transport.Config{Server: cfg.Server, CAFile: cfg.CAFile, CAData: cfg.CAData, Token: kubeconfig.NewSecret(f.tokens["server"])}
	server, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	objects := inventory.NewCache(server, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- objects.Run(ctx) }()
	pages := httptest.NewTLSServer(http.StripPrefix("/cluster", web.Handler(objects, &web.Options{Tokens: true})))
	f.address = strings.TrimPrefix(pages.URL, "https://") + "/cluster"
	f.client = pages.Client()
	t.Cleanup(func() {
		pages.Close()
		cancel()
		assert.ErrorIs(t, <-ended, context.Canceled)
	})
	require.Eventually(t, func() bool { // Health would wait for kinds of other tests, too
		_, body := f.get(t, "operator", "/objects?format=json&namespace="+f.namespace)
		return !slices.ContainsFunc([]string{"ConfigMap", "Event", "Role", "Secret"}, func(kind string) bool {
			return !strings.Contains(body, `"kind":"`+kind+`"`)
		})
	}, patience, patience/300)
}

type entry struct{ Kind, Namespace, Name, UID, Readiness string }

func TestHandler_PagesOfUsers(t *testing.T) {
	f := newFixture(t)
	inNamespace := "namespace=" + f.namespace
	object := "/object?uid=" + string(f.owner.GetUID())

	var kinds struct{ Kinds map[string]int }
	f.getJSON(t, "operator", "/?format=json", &kinds)
	assert.GreaterOrEqual(t, kinds.Kinds["roles.rbac.authorization.k8s.io"], 2)
	_, page := f.get(t, "browser", "/")
	assert.Contains(t, page, `<a href="objects?kind=roles.rbac.authorization.k8s.io">`)

	for query, want := range map[string][]string{
		"kind=ConfigMap&name=owner":     {"owner"},
		"kind=configmaps&text=ALERT":    {"dependent", "owner"},
		"kind=Secret":                   {"password"},
		"text=" + secretText[:9]:        nil,
		"text=" + secretData[:9]:        nil,
		"kind=pods&readiness=Failed":    nil,
		"selector=app%3Dnone":           nil,
		"kind=Role&text=" + "%3Cscript": {"<script>alert(1)<script>"},
	} {
		var found struct{ Objects []entry }
		f.getJSON(t, "operator", "/objects?format=json&"+inNamespace+"&"+query, &found)
		var names []string
		for _, e := range found.Objects {
			if e.Kind != "ConfigMap" || e.Name != "kube-root-ca.crt" {
				names = append(names, e.Name)
			}
		}
		assert.Equal(t, want, names, query)
	}
	_, page = f.get(t, "operator", "/objects?"+inNamespace+"&text="+url.QueryEscape(`"><script>alert(1)</script>`))
	assert.Contains(t, page, `value="&#34;&gt;&lt;script&gt;`)
	_, page = f.get(t, "operator", "/objects?kind=Role&"+inNamespace)
	assert.Contains(t, page, "&lt;script&gt;alert(1)&lt;script&gt;")

	var found struct {
		Tree struct {
			Object     entry
			Dependents []struct{ Object entry }
		}
		Events []struct{ Reason string }
		Object struct{ Data map[string]string }
	}
	f.getJSON(t, "operator", object+"&format=json", &found)
	assert.Equal(t, entry{"ConfigMap", f.namespace, "owner", string(f.owner.GetUID()), "Current"}, found.Tree.Object)
	require.Len(t, found.Tree.Dependents, 1)
	assert.Equal(t, "dependent", found.Tree.Dependents[0].Object.Name)
	require.Len(t, found.Events, 1)
	assert.Equal(t, "Noticed", found.Events[0].Reason)
	assert.Equal(t, hostile, found.Object.Data["text"])
	_, page = f.get(t, "operator", object)
	for _, text := range []string{"dependent</a>", "Noticed", "hostile: &lt;script&gt;", "<li>owner ConfigMap <a"} {
		assert.Contains(t, page, text)
	}
	f.checkReader(t, object)
	f.checkErrors(t)
}

// checkReader compares the pages of the reader with the reader's Role.
func (f *fixture) checkReader(t *testing.T, object string) {
	t.Helper()
	var kinds struct{ Kinds map[string]int }
	f.getJSON(t, "reader", "/?format=json", &kinds)
	delete(kinds.Kinds, "clustertrustbundles.certificates.k8s.io") // from 1.37 on every user may list them
	assert.ElementsMatch(t, []string{"configmaps", "secrets"}, slices.Collect(maps.Keys(kinds.Kinds)))
	assert.Equal(t, 1, kinds.Kinds["secrets"])
	var objects struct{ Objects []entry }
	f.getJSON(t, "reader", "/objects?format=json", &objects)
	assert.NotEmpty(t, objects.Objects)
	var secret string
	for _, e := range objects.Objects {
		if e.Kind == "ClusterTrustBundle" {
			continue
		}
		assert.Equal(t, f.namespace, e.Namespace)
		if e.Kind == "Secret" {
			secret = "/object?uid=" + e.UID
		}
	}
	code, page := f.get(t, "reader", object)
	assert.Equal(t, http.StatusOK, code)
	assert.NotContains(t, page, "Noticed", "an Event")
	for _, format := range []string{"", "&format=json"} {
		code, page = f.get(t, "reader", secret+format) // get compares it with the data
		assert.Equal(t, http.StatusOK, code)
		assert.Contains(t, page, "password")
	}
}

func (f *fixture) checkErrors(t *testing.T) {
	t.Helper()
	for _, test := range []struct {
		user, path string
		code       int
	}{
		{"", "/", http.StatusUnauthorized},
		{"wrong", "/objects", http.StatusUnauthorized},
		{"operator", "/object?uid=none", http.StatusNotFound},
		{"operator", "/objects?selector=!!", http.StatusBadRequest},
		{"operator", "/objects?continue=x", http.StatusBadRequest},
	} {
		code, body := f.get(t, test.user, test.path)
		assert.Equal(t, test.code, code, body)
	}
}

// TestHandler_Loopback sends requests without a token, before the cache has objects.
func TestHandler_Loopback(t *testing.T) {
	pages := web.Handler(inventory.NewCache(client.Connect(t, "admin"), nil), nil)
	for host, want := range map[string]int{
		"localhost:80": http.StatusOK, "127.0.0.1": http.StatusOK, "[::1]:80": http.StatusOK, "rebound.example:80": http.StatusBadRequest,
	} {
		response := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		request.Host = host
		pages.ServeHTTP(response, request)
		assert.Equal(t, want, response.Code, host)
		if want == http.StatusOK {
			assert.Contains(t, response.Body.String(), "Run has not been called")
		}
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/", nil)
	response := httptest.NewRecorder()
	pages.ServeHTTP(response, request)
	assert.Equal(t, http.StatusMethodNotAllowed, response.Code)
}

func TestHandler_RealmOfPath(t *testing.T) {
	pages := web.Handler(inventory.NewCache(client.Connect(t, "admin"), nil), &web.Options{Tokens: true})
	for path, prefix := range map[string]string{"/": "", "/objects?name=a": "", "/east/": "/east", "/east/object?uid=/": "/east", "/a%20b/objects": "/a b"} {
		response := httptest.NewRecorder()
		http.StripPrefix(prefix, pages).ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		assert.Equal(t, http.StatusUnauthorized, response.Code, path)
		want := `Basic realm="a token for ` + strings.ReplaceAll(prefix, " ", "%20") + `/ as the password"`
		assert.Equal(t, want, response.Header().Get("WWW-Authenticate"), path)
	}
}

// TestHandler_Browser searches for a script in a browser.
func TestHandler_Browser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skipf("no browser: %v", err)
	}
	server := httptest.NewServer(web.Handler(inventory.NewCache(client.Connect(t, "admin"), nil), nil))
	defer server.Close()
	address := server.URL + "/objects?text=" + url.QueryEscape(`"><script>document.title = "changed"</script>`)
	command := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(), "--dump-dom", address)
	page, err := command.Output()
	require.NoError(t, err)
	assert.Contains(t, string(page), "<title>Objects</title>")
	assert.NotContains(t, string(page), "<script>")
}
