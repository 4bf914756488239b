package restconfig_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientgodynamic "k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/anykind/anykind/compat/restconfig"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/credentials"
	"github.com/anykind/anykind/transport"
)

var reviews = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}

func newReview() *unstructuredv1.Unstructured {
	return &unstructuredv1.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}
}

// user is the user that a server authenticates.
type user struct {
	Username string              `json:"username"`
	UID      string              `json:"uid"`
	Groups   []string            `json:"groups"`
	Extra    map[string][]string `json:"extra"`
}

func userOf(t *testing.T, review *unstructuredv1.Unstructured) (u user) {
	t.Helper()
	info, _, err := unstructuredv1.NestedMap(review.Object, "status", "userInfo")
	require.NoError(t, err)
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(info, &u))
	require.NotEmpty(t, u.Username)
	delete(u.Extra, "authentication.kubernetes.io/credential-id") // of a certificate, the same for all of its requests
	return u
}

// clientGo returns client-go's dynamic client, whose HTTP connections are closed when the test ends.
func clientGo(t *testing.T, config *rest.Config) clientgodynamic.Interface {
	t.Helper()
	own, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(own.Transport) })
	c, err := clientgodynamic.NewForConfigAndClient(config, own)
	require.NoError(t, err)
	return c
}

// clientGoUser returns the user of client-go's requests.
func clientGoUser(t *testing.T, config *rest.Config) user {
	t.Helper()
	review, err := clientGo(t, config).Resource(reviews).Create(t.Context(), newReview(), metav1.CreateOptions{})
	require.NoError(t, err)
	return userOf(t, review)
}

// anykindUser returns the user of anykind's requests.
func anykindUser(t *testing.T, conn *transport.Conn) user {
	t.Helper()
	review, err := dynamic.New(conn, nil).ForGVR(reviews).Create(t.Context(), newReview(), nil)
	require.NoError(t, err)
	return userOf(t, review)
}

// sandboxConfig returns the sandbox's config with one of its contexts, as client-go reads it.
func sandboxConfig(t *testing.T, context string) *rest.Config {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: cluster.Kubeconfig(t)},
		&clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	require.NoError(t, err)
	return config
}

// sandboxConn returns a connection to the sandbox with one of its contexts.
func sandboxConn(t *testing.T, context string, configure ...func(*transport.Config)) *transport.Conn {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: context})
	require.NoError(t, err)
	for _, set := range configure {
		set(cfg)
	}
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

func toConn(t *testing.T, config *rest.Config) *transport.Conn {
	t.Helper()
	conn, err := restconfig.ToConn(config)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// execToken returns a config whose exec plugin prints the tokens in turn.
func execTokens(t *testing.T, config *rest.Config, tokens ...string) *credentials.Plugin {
	t.Helper()
	plugin := credentials.NewPlugin(t)
	var actions []credentials.PluginAction
	for _, token := range tokens {
		actions = append(actions, credentials.PluginAction{Stdout: credentials.TokenOutput(token)})
	}
	plugin.Serve(t, actions...)
	config.BearerToken = ""
	config.CertData = nil
	config.KeyData = nil
	config.CertFile = ""
	config.KeyFile = ""
	config.ExecProvider = &clientcmdapi.ExecConfig{
		APIVersion: credentials.ExecV1, Command: plugin.Command, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}
	for name, value := range plugin.Env {
		config.ExecProvider.Env = append(config.ExecProvider.Env, clientcmdapi.ExecEnvVar{Name: name, Value: value})
	}
	return plugin
}

func TestFromConn_Users(t *testing.T) {
	jane := transport.Impersonation{
		User: "jane", UID: "1", Groups: []string{"a", "b"}, Extra: map[string][]string{"example.org/Scope x": {"1", "2"}},
	}
	for name, c := range map[string]struct {
		context   string
		configure func(*transport.Config)
		restUser  rest.ImpersonationConfig
	}{
		"certificate":                      {context: "admin"},
		"token":                            {context: "token"},
		"impersonated by the connection":   {context: "admin", configure: func(cfg *transport.Config) { cfg.Impersonate = jane }},
		"impersonated by the config":       {context: "admin", restUser: rest.ImpersonationConfig{UserName: "jane", UID: "1", Groups: jane.Groups, Extra: jane.Extra}},
		"impersonated by both: the config": {context: "admin", configure: func(cfg *transport.Config) { cfg.Impersonate = jane }, restUser: rest.ImpersonationConfig{UserName: "joe"}},
	} {
		t.Run(name, func(t *testing.T) {
			var configure []func(*transport.Config)
			if c.configure != nil {
				configure = append(configure, c.configure)
			}
			conn := sandboxConn(t, c.context, configure...)
			config := restconfig.FromConn(conn)
			config.Impersonate = c.restUser
			want := sandboxConfig(t, c.context)
			want.Impersonate = c.restUser
			if c.restUser.UserName == "" && c.configure != nil {
				want.Impersonate = rest.ImpersonationConfig{UserName: jane.User, UID: jane.UID, Groups: jane.Groups, Extra: jane.Extra}
			}
			assert.Equal(t, clientGoUser(t, want), clientGoUser(t, config))
		})
	}
}

func TestFromConn_RejectsOtherCredentials(t *testing.T) {
	config := restconfig.FromConn(sandboxConn(t, "admin"))
	config.BearerToken = "other"
	_, err := clientGo(t, config).Resource(reviews).Create(t.Context(), newReview(), metav1.CreateOptions{})
	require.ErrorContains(t, err, "header Authorization: not allowed")
	config.BearerToken = ""
	config.Impersonate.Groups = []string{"a"}
	_, err = clientGo(t, config).Resource(reviews).Create(t.Context(), newReview(), metav1.CreateOptions{})
	require.ErrorContains(t, err, "impersonate: the user is missing")
}

func TestToConn_Users(t *testing.T) {
	for name, configure := range map[string]func(*testing.T, *rest.Config){
		"as it is": func(*testing.T, *rest.Config) {},
		"impersonated": func(_ *testing.T, c *rest.Config) {
			c.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{"a"}}
		},
		"token file": func(t *testing.T, c *rest.Config) {
			c.BearerTokenFile = filepath.Join(t.TempDir(), "token")
			require.NoError(t, os.WriteFile(c.BearerTokenFile, []byte(sandboxConfig(t, "token").BearerToken), 0o600))
			c.CertFile = ""
			c.KeyFile = ""
			c.CertData = nil
			c.KeyData = nil
		},
		"exec plugin": func(t *testing.T, c *rest.Config) { execTokens(t, c, sandboxConfig(t, "token").BearerToken) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, context := range []string{"admin", "token"} {
				config := sandboxConfig(t, context)
				configure(t, config)
				assert.Equal(t, clientGoUser(t, config), anykindUser(t, toConn(t, config)), context)
			}
		})
	}
}

func TestToConn_RunsExecPluginAgainAfter401(t *testing.T) {
	config := sandboxConfig(t, "token")
	plugin := execTokens(t, config, "expired", config.BearerToken)
	conn := toConn(t, config)
	anykindUser(t, conn)
	assert.Equal(t, 2, plugin.Runs())
}

func TestToConn_FieldsOfConfig(t *testing.T) {
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	config := sandboxConfig(t, "admin")
	var wrapped, limited, warned atomic.Int64
	var agent atomic.Value
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper{next, func(req *http.Request) (*http.Response, error) {
			wrapped.Add(1)
			agent.Store(req.Header.Get("User-Agent"))
			response, err := next.RoundTrip(req)
			if err == nil {
				response.Header.Add("Warning", `299 - "a warning"`)
			}
			return response, err
		}}
	})
	config.RateLimiter = countingLimiter{&limited}
	config.WarningHandler = warningFunc(func(code int, _, text string) {
		assert.Equal(t, 299, code)
		assert.Equal(t, "a warning", text)
		warned.Add(1)
	})
	handle := dynamic.New(toConn(t, config), nil).ForGVR(namespaces)
	for range 2 {
		_, err := handle.Get(t.Context(), "default", nil)
		require.NoError(t, err)
	}
	assert.EqualValues(t, 2, wrapped.Load())
	assert.EqualValues(t, 2, limited.Load())
	assert.EqualValues(t, 2, warned.Load())
	assert.Equal(t, rest.DefaultKubernetesUserAgent(), agent.Load())
	_, err := handle.Get(t.Context(), "missing", nil)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestToConn_Host(t *testing.T) {
	for host, want := range map[string]string{
		"":                        "http://localhost",
		"example.org:8080":        "http://example.org:8080",
		"https://example.org/a/b": "https://example.org/a/b",
	} {
		conn, err := restconfig.ToConn(&rest.Config{Host: host})
		require.NoError(t, err)
		assert.Equal(t, want, conn.Server())
	}
	_, err := restconfig.ToConn(nil)
	require.ErrorContains(t, err, "nil")
	_, err = restconfig.ToConn(&rest.Config{Host: "https://example.org", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("no")}})
	require.ErrorContains(t, err, "https://example.org")
}

// TestToConn_OfFromConn converts to a rest.Config and back.
func TestToConn_OfFromConn(t *testing.T) {
	first := sandboxConn(t, "token")
	second := toConn(t, restconfig.FromConn(first))
	assert.Equal(t, anykindUser(t, first), anykindUser(t, second))
}

type roundTripper struct {
	http.RoundTripper
	send func(*http.Request) (*http.Response, error)
}

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r.send(req) }
func (r roundTripper) WrappedRoundTripper() http.RoundTripper              { return r.RoundTripper }

type warningFunc func(code int, agent, text string)

func (f warningFunc) HandleWarningHeader(code int, agent, text string) { f(code, agent, text) }

type countingLimiter struct{ calls *atomic.Int64 }

func (countingLimiter) TryAccept() bool { return true }
func (countingLimiter) Accept()         {}
func (countingLimiter) Stop()           {}
func (countingLimiter) QPS() float32    { return 0 }

func (l countingLimiter) Wait(context.Context) error {
	l.calls.Add(1)
	return nil
}
