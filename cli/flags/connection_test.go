package flags_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const kubeconfigText = `
apiVersion: v1
kind: Config
current-context: shop
clusters: [{name: shop, cluster: {server: "https://shop.example.com", insecure-skip-tls-verify: true}}, {name: other, cluster: {server: "https://other.example.com"}},
  {name: plain, cluster: {server: "http://plain.example.com"}}, {name: named, cluster: {server: "https://named.example.com", tls-server-name: internal}}]
users: [{name: ann, user: {token: a}}, {name: bob, user: {username: bob, password: b}}]
contexts: [{name: shop, context: {cluster: shop, user: ann, namespace: front}}, {name: other, context: {cluster: other, user: bob}},
  {name: plain, context: {cluster: plain, user: ann}}, {name: named, context: {cluster: named, user: ann}}]
`

// connection returns the Connection of a command line, without a cache and the machine's kubeconfig.
func connection(t *testing.T, args ...string) *flags.Connection {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(kubeconfigText), 0o600))
	t.Setenv("KUBECONFIG", path)
	t.Setenv("HOME", t.TempDir())
	c := flags.NewConnection()
	c.CacheDir = ""
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.AddFlags(fs)
	require.NoError(t, fs.Parse(args))
	return c
}

func TestConnection_Config(t *testing.T) {
	for _, c := range []struct {
		name  string
		args  []string
		check func(t *testing.T, cfg *transport.Config)
	}{
		{"kubeconfig", nil, func(t *testing.T, cfg *transport.Config) {
			t.Helper()
			assert.Equal(t, []string{"https://shop.example.com", "front", "a"}, []string{cfg.Server, cfg.Namespace, cfg.Token.Reveal()})
		}},
		{"context and namespace", []string{"--context", "other", "-n", "back"}, func(t *testing.T, cfg *transport.Config) {
			t.Helper()
			assert.Equal(t, []string{"https://other.example.com", "back", "bob"}, []string{cfg.Server, cfg.Namespace, cfg.Username})
		}},
		{"cluster and user", []string{"--cluster=other", "--user=bob"}, func(t *testing.T, cfg *transport.Config) {
			t.Helper()
			assert.Equal(t, []string{"https://other.example.com", "b"}, []string{cfg.Server, cfg.Password.Reveal()})
		}},
		{"server and token", []string{"-s", "https://localhost:8443", "--token=t", "--tls-server-name=n"}, func(t *testing.T, cfg *transport.Config) {
			t.Helper()
			assert.Equal(t, []string{"https://localhost:8443", "t", "n"}, []string{cfg.Server, cfg.Token.Reveal(), cfg.ServerName})
		}},
		{"server and token without TLS", []string{"-s", "localhost:8080", "--token=t", "--tls-server-name=n"}, func(t *testing.T, cfg *transport.Config) {
			t.Helper()
			assert.Equal(t, []string{"http://localhost:8080", "", ""}, []string{cfg.Server, cfg.Token.Reveal(), cfg.ServerName})
		}},
		{"server with TLS", []string{"--context=plain", "--server=https://other.example.com"}, func(t *testing.T, cfg *transport.Config) {
			t.Helper()
			assert.Equal(t, []string{"https://other.example.com", "a"}, []string{cfg.Server, cfg.Token.Reveal()})
		}},
		{"server without the kubeconfig's server name", []string{"--context=named", "--server=https://other.example.com"}, func(t *testing.T, cfg *transport.Config) {
			t.Helper()
			assert.Empty(t, cfg.ServerName)
		}},
		{"certificate authority instead of insecure", []string{"--certificate-authority=/ca"}, func(t *testing.T, cfg *transport.Config) {
			t.Helper()
			assert.False(t, cfg.Insecure)
		}},
		{"impersonation", []string{"--as=eve", "--as-group=g", "--as-group=h", "--as-uid=7", "--as-user-extra=k=v", "--as-user-extra=k=w"}, func(t *testing.T, cfg *transport.Config) {
			t.Helper()
			assert.Equal(t, transport.Impersonation{User: "eve", UID: "7", Groups: []string{"g", "h"}, Extra: map[string][]string{"k": {"v", "w"}}}, cfg.Impersonate)
		}},
		{"files", []string{"--certificate-authority=/ca", "--client-certificate=/c", "--client-key=/k"}, func(t *testing.T, cfg *transport.Config) {
			t.Helper()
			assert.Equal(t, []string{"/ca", "/c", "/k"}, []string{cfg.CAFile, cfg.CertFile, cfg.KeyFile})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := connection(t, c.args...).Config(t.Context())
			require.NoError(t, err)
			c.check(t, cfg)
		})
	}
}

func TestConnection_ServerWithoutTLSGetsNoCredential(t *testing.T) {
	var credentials []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		credentials = append(credentials, r.Header["Authorization"]...)
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	for _, args := range [][]string{
		{"--server=" + server.URL},
		{"--server=" + strings.TrimPrefix(server.URL, "http://")},
		{"--server=" + server.URL, "--user=bob"},
		{"--server=" + server.URL, "--token=t"},
		{"--server=" + server.URL, "--username=u", "--password=p"},
	} {
		c := connection(t, args...)
		conn, err := c.Conn(t.Context())
		require.NoError(t, err)
		response, err := conn.Do(t.Context(), &transport.Request{Path: "/version"})
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		c.Close()
		assert.Empty(t, credentials, "%q", args)
	}
}

func TestConnection_InvalidFlags(t *testing.T) {
	for arg, want := range map[string]string{
		"--context=typo":           `context "typo" does not exist`,
		"--kubeconfig=/none":       "/none",
		"--as-user-extra=k":        `--as-user-extra "k": not a key=value pair`,
		"--request-timeout=soon":   "Invalid timeout value",
		"--server=https://[broken": `--server "https://[broken": not a URL`,
	} {
		_, err := connection(t, arg).Config(t.Context())
		require.ErrorContains(t, err, want, "%s", arg)
	}
	_, err := connection(t, "--context=typo").Config(t.Context())
	require.ErrorAs(t, err, new(*flags.ConfigError))
}

func TestConnection_CheckExec(t *testing.T) {
	const plugin = `
users: [{name: ann, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Never}}}]
contexts: [{name: shop, context: {cluster: shop, user: ann}}]
clusters: [{name: shop, cluster: {server: "https://shop.example.com"}}]
current-context: shop
`
	path := filepath.Join(t.TempDir(), "plugin")
	require.NoError(t, os.WriteFile(path, []byte(plugin), 0o600))
	c := connection(t, "--kubeconfig", path)
	c.CheckExec = func(command string) error { return fmt.Errorf("%s is not allowed", command) }
	_, err := c.Client(t.Context())
	require.EqualError(t, err, "login is not allowed")
	c = connection(t, "--kubeconfig", path, "--token=t")
	c.CheckExec = func(string) error { return fmt.Errorf("the plugin does not run with a token") }
	_, err = c.Config(t.Context())
	require.NoError(t, err)
}

func TestConnection_Namespace(t *testing.T) {
	for _, c := range []struct {
		args       []string
		want       string
		isExplicit bool
	}{
		{nil, "front", false},
		{[]string{"--context=other"}, "default", false},
		{[]string{"--namespace=back"}, "back", true},
	} {
		namespace, isExplicit, err := connection(t, c.args...).Namespace(t.Context())
		require.NoError(t, err)
		assert.Equal(t, c.want, namespace)
		assert.Equal(t, c.isExplicit, isExplicit)
	}
}

func TestConnection_RequestTimeoutEndsBodies(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("{"))
		w.(http.Flusher).Flush() //nolint:forcetypeassert // net/http's writer is one
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	c := connection(t, "--server="+server.URL, "--request-timeout=2s")
	conn, err := c.Conn(t.Context())
	require.NoError(t, err)
	defer c.Close()
	response, err := conn.Do(t.Context(), &transport.Request{Path: "/api"})
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	data := make([]byte, 10)
	_, err = response.Body.Read(data)
	for err == nil {
		_, err = response.Body.Read(data)
	}
	require.ErrorContains(t, err, "request timed out after 2s (--request-timeout)")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestConnection_CompletesKubeconfig(t *testing.T) {
	c := connection(t)
	names, _ := c.CompleteContexts(&cobra.Command{}, nil, "s")
	assert.Equal(t, []cobra.Completion{"shop"}, names)
}

// completing returns a Connection to the cluster, and a command to complete.
func completing(t *testing.T, namespace string) (*flags.Connection, *cobra.Command) {
	t.Helper()
	c := flags.NewConnection()
	c.Kubeconfig = cluster.Kubeconfig(t)
	c.CacheDir = t.TempDir()
	c.NamespaceFlag = namespace
	t.Cleanup(c.Close)
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	return c, cmd
}

func TestConnection_CompletesFromServer(t *testing.T) {
	admin := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, admin)
	_, err := client.Resource(t, admin, "configmaps").Namespace(namespace).Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "complete-me", "labels": map[string]any{"color": "blue"}}, "data": map[string]any{"size": "3"},
	}}, nil)
	require.NoError(t, err)
	for i := range 30 { // listed first in all namespaces
		defaults := client.Resource(t, admin, "configmaps").Namespace("default")
		name := fmt.Sprint("other-", i)
		_, err := defaults.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}}}, nil)
		require.NoError(t, err)
		client.DeleteAtEnd(t, defaults, name)
	}
	c, cmd := completing(t, namespace)

	complete := func(function cobra.CompletionFunc, prefix string, args ...string) []cobra.Completion {
		names, _ := function(cmd, args, prefix)
		return names
	}
	assert.Equal(t, []cobra.Completion{"complete-me"}, complete(c.CompleteTargets, "comp", "configmaps"))
	assert.Equal(t, []cobra.Completion{"cm/complete-me"}, complete(c.CompleteTargets, "cm/comp"))
	assert.Empty(t, complete(c.CompleteTargets, "comp", "configmaps", "complete-me"))
	assert.Equal(t, []cobra.Completion{"deployments"}, complete(c.CompleteTargets, "deploy"))
	assert.Equal(t, []cobra.Completion{"deployments.apps"}, complete(c.CompleteTargets, "deployments.a"))
	assert.Equal(t, []cobra.Completion{"events", "events.events.k8s.io"}, complete(c.CompleteTargets, "events"))
	assert.Contains(t, complete(c.CompleteTargetsFor("get"), "componentst"), "componentstatuses")
	assert.Empty(t, complete(c.CompleteTargetsFor("delete"), "componentst"), "the kind has no such verb")
	assert.Equal(t, []cobra.Completion{"pods,deployments"}, complete(c.CompleteTargets, "pods,deploy"))
	assert.Contains(t, complete(c.CompleteNamespaces, "def"), "default")
	assert.Contains(t, complete(c.CompleteLabels, "app,col", "cm"), "app,color")
	assert.Contains(t, complete(c.CompleteFields, ".metadata.na", "cm"), ".metadata.name\tstring")
	assert.Contains(t, complete(c.CompleteOutput([]string{"json", "yaml"}), "js", "cm"), "json")
	assert.Contains(t, complete(c.CompleteOutput(nil), "custom-columns=N:.metadata.name,X:.metadata.na", "cm"), "custom-columns=N:.metadata.name,X:.metadata.name\tstring")
	assert.Contains(t, complete(c.CompleteOutput(nil), "custom-columns=", "cm"), "custom-columns=NAME:.metadata.name\tstring")
	assert.Empty(t, complete(c.CompleteTargets, "x", "nonsense"))

	_, err = client.Resource(t, admin, "cronjobs").Namespace(namespace).Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "nightly"}, "spec": map[string]any{"schedule": "0 0 * * *", "suspend": true, "jobTemplate": map[string]any{
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"restartPolicy": "Never", "containers": []any{
				map[string]any{"name": "app", "image": "app:1"}, map[string]any{"name": "other", "image": "other:1"},
			}}}}}},
	}}, nil)
	require.NoError(t, err)
	assert.Equal(t, []cobra.Completion{"app", "other"}, complete(c.CompleteContainers, "", "cj/nightly:/tmp"))
	assert.Empty(t, complete(c.CompleteContainers, "", "missing"))
	assert.Equal(t, []cobra.Completion{"app="}, complete(c.CompleteContainerValues, "a", "cj", "nightly"))
	assert.Equal(t, []cobra.Completion{"nightly"}, complete(c.CompleteContainerValues, "n", "cj"))
}

func TestConnection_CompletesFieldsBySchema(t *testing.T) {
	admin := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, admin)
	_, err := client.Resource(t, admin, "configmaps").Namespace(namespace).Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "sampled", "labels": map[string]any{"color": "blue", "a/b": "c"}}, "data": map[string]any{"size": "3"},
	}}, nil)
	require.NoError(t, err)
	c, cmd := completing(t, namespace)
	columns := c.CompleteOutput(nil)
	for _, one := range []struct {
		function   cobra.CompletionFunc
		typeName   string
		prefix     string
		want       []cobra.Completion
		isComplete bool // a space follows
	}{
		{c.CompleteFields, "svc/web", ".spec.sessionA", []cobra.Completion{".spec.sessionAffinity\tstring", ".spec.sessionAffinityConfig.\tobject"}, false},
		{c.CompleteFields, "pods", "{.spec.containers[0].imageP", []cobra.Completion{"{.spec.containers[0].imagePullPolicy}\tstring"}, true},
		{c.CompleteFields, "pods,svc", "spec.nodeN", []cobra.Completion{"spec.nodeName\tstring"}, true},
		{c.CompleteFields, "pods", ".spec.conta", []cobra.Completion{".spec.containers[*].\tarray"}, false},
		{c.CompleteFields, "cm", ".metadata.finalizers.", nil, true},
		{c.CompleteFields, "cm", ".metadata.labels.", []cobra.Completion{".metadata.labels.color\tstring"}, true},
		{c.CompleteFields, "cm", ".nonsense.", nil, true},
		{columns, "pods", "custom-columns=IMAGE:.spec.containers[*].imageP", []cobra.Completion{"custom-columns=IMAGE:.spec.containers[*].imagePullPolicy\tstring"}, false},
		{columns, "pods", "custom-columns=NODEN", []cobra.Completion{"custom-columns=NODENAME:.spec.nodeName\tstring"}, false},
		{c.CompleteWhere, "pods", ".spec.containers[].imageP", []cobra.Completion{".spec.containers[].imagePullPolicy\tstring"}, true},
		{c.CompleteWhere, "pods", ".spec.initC", []cobra.Completion{".spec.initContainers[].\tarray"}, false},
		{c.CompleteWhere, "pods", `.spec.containers[0].imagePullPolicy == "A`, []cobra.Completion{`.spec.containers[0].imagePullPolicy == "Always"`}, true},
		{c.CompleteWhere, "svc", `.spec.type=="ClusterIP" and .spec.sessionAffinity!=`, []cobra.Completion{
			`.spec.type=="ClusterIP" and .spec.sessionAffinity!="ClientIP"`, `.spec.type=="ClusterIP" and .spec.sessionAffinity!="None"`,
		}, true},
		{c.CompleteWhere, "svc", "(.spec.publishNotReadyAddresses==t", []cobra.Completion{"(.spec.publishNotReadyAddresses==true"}, true},
		{c.CompleteWhere, "cm", ".data.s", []cobra.Completion{".data.size\tstring"}, true},
		{c.CompleteWhere, "cm", ".spec | .data", nil, true},
		{c.CompleteWhere, "cm", `.metadata.name == ".da`, nil, true},
		{c.CompleteWhere, "cm", `"$x.da`, nil, true},
		{c.CompleteAssignments, "deploy/web", "spec.strategy.ty", []cobra.Completion{"spec.strategy.type=\tstring"}, false},
		{c.CompleteAssignments, "deploy/web", "spec.strategy.type=Re", []cobra.Completion{"spec.strategy.type=Recreate"}, false},
		{c.CompleteAssignments, "cm/sampled", "data.s", []cobra.Completion{"data.size=\tstring"}, false},
		{c.CompleteValues("resourcequotas", "spec.scopes"), "", "BestEffort,NotB", []cobra.Completion{"BestEffort,NotBestEffort"}, true},
	} {
		got, directive := one.function(cmd, []string{one.typeName}, one.prefix)
		assert.Equal(t, one.want, got, one.prefix)
		assert.Equal(t, one.isComplete, directive&cobra.ShellCompDirectiveNoSpace == 0, one.prefix)
	}
}
