package clientgo_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/anykind/anykind/compat/clientgo"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
)

// requestRecorder records requests behind all round trippers of client-go that change a request.
type requestRecorder struct {
	mu         sync.Mutex
	transports []http.RoundTripper
	requests   []string // without discovery, whose requests the getters choose themselves
	identities []string // server, user and user agent of each request, once
}

// recordedHeaders are the headers in which getters could differ.
var recordedHeaders = []string{
	"Accept", "Accept-Encoding", "Content-Type", "User-Agent", "Authorization",
	"Impersonate-User", "Impersonate-Uid", "Impersonate-Group", "Impersonate-Extra-Reason",
}

var (
	discoveryPath = regexp.MustCompile(`^(/api|/apis)(/[^/]+)?(/v[^/]+)?$|^/openapi/|^/version$|/customresourcedefinitions$`)
	variable      = regexp.MustCompile(`"resourceVersion":"\d+"|continue=[^&]+`) // differs between two runs
)

// wrap records the requests of a config. It sets the user agent that kubectl's factory sets; without one, client-go's clients
// send that of net/http and a connection that of restconfig.ToConn.
func (r *requestRecorder) wrap(config *rest.Config) *rest.Config {
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.transports = append(r.transports, next)
		return recordingRoundTripper{r, next}
	})
	return config
}

type recordingRoundTripper struct {
	*requestRecorder

	next http.RoundTripper
}

func (r recordingRoundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	body := []byte{}
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	identity := []string{req.URL.Scheme, req.URL.Host}
	line := []string{req.Method, variable.ReplaceAllString(req.URL.String(), ""), variable.ReplaceAllString(string(body), "")}
	for _, name := range recordedHeaders {
		value := fmt.Sprint(name, req.Header.Values(name))
		if name == "Authorization" {
			value = fmt.Sprintf("%s %x", name, sha256.Sum256([]byte(value)))
		}
		line = append(line, value)
		if !strings.HasPrefix(name, "Accept") && !strings.HasPrefix(name, "Content") {
			identity = append(identity, value)
		}
	}
	r.mu.Lock()
	if one := strings.Join(identity, " "); !slices.Contains(r.identities, one) {
		r.identities = append(r.identities, one)
	}
	if !discoveryPath.MatchString(req.URL.Path) {
		r.requests = append(r.requests, strings.Join(line, "\n"))
	}
	r.mu.Unlock()
	return r.next.RoundTrip(req)
}

func (r *requestRecorder) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.transports {
		utilnet.CloseIdleConnectionsFor(one)
	}
}

// trace is what a command does.
type trace struct {
	Result   any
	Err      string
	Reason   metav1.StatusReason
	Requests []string
}

// run runs all commands with the flags of a command line and returns their traces and identities. wrap is applied before the flags
// are parsed, as programs of kubectl do.
func run(
	t *testing.T, home string, args []string, wrap func(context.Context, genericclioptions.RESTClientGetter) genericclioptions.RESTClientGetter,
) (map[string]trace, []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	recorded := &requestRecorder{}
	defer recorded.close()
	flags := genericclioptions.NewConfigFlags(true)
	flags.WrapConfigFn = recorded.wrap
	*flags.CacheDir = t.TempDir()
	getter := wrap(ctx, flags)
	set := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	flags.AddFlags(set)
	require.NoError(t, set.Parse(args))
	traces := map[string]trace{}
	for _, c := range commands(home) {
		recorded.requests = nil
		result, err := c.run(ctx, getter)
		// Pages count once: a list ends with an empty page if further objects follow the selected ones, such as those of a new namespace.
		one := trace{Result: fmt.Sprint(result), Requests: slices.Compact(recorded.requests)}
		if err != nil {
			one.Err = err.Error()
			one.Reason = apierrors.ReasonForError(err)
		}
		traces[c.name] = one
	}
	slices.Sort(recorded.identities)
	return traces, recorded.identities
}

func unwrapped(_ context.Context, getter genericclioptions.RESTClientGetter) genericclioptions.RESTClientGetter {
	return getter
}

func wrapped(ctx context.Context, getter genericclioptions.RESTClientGetter) genericclioptions.RESTClientGetter {
	return clientgo.WrapRESTClientGetter(ctx, getter, nil)
}

// kubeconfigs writes kubeconfigs with namespaces and returns their names.
type kubeconfigs struct{ plain, home, users, token, cert, key, ca, server string }

func writeKubeconfigs(t *testing.T, home string) *kubeconfigs {
	t.Helper()
	dir := t.TempDir()
	files := &kubeconfigs{
		plain: cluster.Kubeconfig(t), home: filepath.Join(dir, "home"), users: filepath.Join(dir, "users"),
		cert: filepath.Join(dir, "cert"), key: filepath.Join(dir, "key"), ca: filepath.Join(dir, "ca"),
	}
	config, err := clientcmd.LoadFromFile(files.plain)
	require.NoError(t, err)
	admin := config.Contexts["admin"]
	token := config.Contexts["token"]
	files.token = config.AuthInfos[token.AuthInfo].Token
	files.server = config.Clusters[admin.Cluster].Server
	require.NoError(t, clientcmdapi.FlattenConfig(config))
	require.NoError(t, os.WriteFile(files.ca, config.Clusters[admin.Cluster].CertificateAuthorityData, 0o600))
	require.NoError(t, os.WriteFile(files.cert, config.AuthInfos[admin.AuthInfo].ClientCertificateData, 0o600))
	require.NoError(t, os.WriteFile(files.key, config.AuthInfos[admin.AuthInfo].ClientKeyData, 0o600))

	own := config.DeepCopy()
	for _, one := range own.Contexts {
		one.Namespace = home
	}
	other := *own.Clusters[admin.Cluster]
	other.Server = strings.Replace(other.Server, "127.0.0.1", "localhost", 1)
	own.Clusters["other"] = &other
	impersonating := *own.AuthInfos[admin.AuthInfo]
	impersonating.Impersonate = "jane"
	impersonating.ImpersonateGroups = []string{"system:masters"}
	own.AuthInfos["jane"] = &impersonating
	own.Contexts["jane"] = &clientcmdapi.Context{Cluster: admin.Cluster, AuthInfo: "jane", Namespace: "default"}
	require.NoError(t, clientcmd.WriteToFile(*own, files.home))

	users := clientcmdapi.NewConfig()
	users.AuthInfos["nobody"] = &clientcmdapi.AuthInfo{Token: "wrong"}
	users.Contexts["mixed"] = &clientcmdapi.Context{Cluster: admin.Cluster, AuthInfo: token.AuthInfo, Namespace: home}
	users.CurrentContext = "mixed"
	require.NoError(t, clientcmd.WriteToFile(*users, files.users))
	return files
}

// TestWrapRESTClientGetter_SameAsConfigFlags compares results, errors and requests of kubectl's calls over cli-runtime's getter
// and over the same getter wrapped.
func TestWrapRESTClientGetter_SameAsConfigFlags(t *testing.T) {
	s := newSandbox(t)
	home := client.NewNamespace(t, s.client)
	away := client.NewNamespace(t, s.client)
	files := writeKubeconfigs(t, home)
	closed := "https://127.0.0.1:1"
	for _, c := range []struct {
		name       string
		kubeconfig []string // of the environment
		args       []string
	}{
		{"no namespace", []string{files.plain}, nil},
		{"namespace of the context", []string{files.home}, nil},
		{"-n", []string{files.plain}, []string{"-n", away}},
		{"-n against the context's", []string{files.home}, []string{"-n", away}},
		{"-n of the manifest", []string{files.plain}, []string{"-n", home}},
		{"-n missing", []string{files.home}, []string{"-n", "missing"}},
		{"-n empty", []string{files.home}, []string{"-n", ""}},
		{"--context", []string{files.home}, []string{"--context", "token"}},
		{"--context limited", []string{files.home}, []string{"--context", "limited", "-n", "default"}},
		{"--context missing", []string{files.home}, []string{"--context", "missing"}},
		{"--context that impersonates", []string{files.home}, []string{"--context", "jane"}},
		{"--context that impersonates --as", []string{files.home}, []string{"--context", "jane", "--as", "john", "-n", away}},
		{"--cluster", []string{files.home}, []string{"--cluster", "other"}},
		{"--cluster missing", []string{files.home}, []string{"--cluster", "missing"}},
		{"--user", []string{files.home}, []string{"--user", "jane", "-n", away}},
		{"--user of another file", []string{files.home, files.users}, []string{"--user", "nobody"}},
		{"--user missing", []string{files.home}, []string{"--user", "missing"}},
		{"--as", []string{files.home}, []string{"--as", "jane"}},
		{"--as in a group", []string{files.home}, []string{"--as", "jane", "--as-group", "system:masters", "--as-group", "b"}},
		{"--as with all fields", []string{files.home}, []string{
			"--as", "jane", "--as-uid", "17", "--as-group", "system:masters", "--as-user-extra", "reason=test", "--as-user-extra", "reason=more",
		}},
		{"--as-group without --as", []string{files.home}, []string{"--as-group", "system:masters"}},
		{"--as-uid without --as", []string{files.home}, []string{"--as-uid", "17"}},
		{"--server", []string{files.home}, []string{"--server", strings.Replace(files.server, "127.0.0.1", "localhost", 1)}},
		{"--server closed", []string{files.home}, []string{"--server", closed}},
		{"--server without a file", nil, []string{"--server", files.server, "--token", files.token, "--certificate-authority", files.ca}},
		{"--server not verified", nil, []string{"--server", files.server, "--token", files.token, "--insecure-skip-tls-verify"}},
		{"--token", []string{files.home}, []string{"--token", files.token, "--user", ""}},
		{"--token rejected", nil, []string{"--server", files.server, "--token", "wrong", "--certificate-authority", files.ca}},
		{"--client-certificate", nil, []string{
			"--server", files.server, "--certificate-authority", files.ca, "--client-certificate", files.cert, "--client-key", files.key, "-n", home,
		}},
		{"--certificate-authority missing", []string{files.home}, []string{"--certificate-authority", "/nonexistent"}},
		{"--tls-server-name", []string{files.home}, []string{"--tls-server-name", "kubernetes"}},
		{"--tls-server-name wrong", []string{files.home}, []string{"--tls-server-name", "wrong.example.org"}},
		{"--disable-compression", []string{files.home}, []string{"--disable-compression"}},
		{"--request-timeout", []string{files.home}, []string{"--request-timeout", "1m"}},
		{"--request-timeout in seconds", []string{files.home}, []string{"--request-timeout", "55"}},
		{"--request-timeout wrong", []string{files.home}, []string{"--request-timeout", "soon"}},
		{"--kubeconfig", []string{files.plain}, []string{"--kubeconfig", files.home}},
		{"--kubeconfig missing", []string{files.plain}, []string{"--kubeconfig", "/nonexistent"}},
		{"several files", []string{files.users, files.home}, nil},
		{"several files, the first missing", []string{"/nonexistent", files.home, files.users}, []string{"-n", away}},
		{"several files and a context of the second", []string{files.users, files.home}, []string{"--context", "admin"}},
		{"no file", []string{"/nonexistent"}, []string{"-n", away}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", strings.Join(c.kubeconfig, string(filepath.ListSeparator)))
			t.Setenv("HOME", t.TempDir())
			want, wantIdentities := run(t, home, c.args, unwrapped)
			got, identities := run(t, home, c.args, wrapped)
			assert.Equal(t, wantIdentities, identities)
			for name := range want {
				wantOne := want[name]
				wantOne.Err = strings.ReplaceAll(wantOne.Err, "?timeout=32s", "") // of client-go's discovery
				gotOne := got[name]
				gotOne.Err = strings.ReplaceAll(gotOne.Err, "?timeout=32s", "")
				assert.Equal(t, wantOne, gotOne, name)
			}
			assert.Len(t, got, len(commands(home)))
		})
	}
}

// inCluster is the getter and the loader of a program in a pod, whose namespace is in no kubeconfig.
type inCluster struct {
	config    *rest.Config
	namespace string
}

func (c *inCluster) ToRESTConfig() (*rest.Config, error)           { return rest.CopyConfig(c.config), nil }
func (c *inCluster) ToRawKubeConfigLoader() clientcmd.ClientConfig { return c }
func (c *inCluster) RawConfig() (clientcmdapi.Config, error)       { return *clientcmdapi.NewConfig(), nil }
func (c *inCluster) ClientConfig() (*rest.Config, error)           { return c.ToRESTConfig() }
func (c *inCluster) Namespace() (string, bool, error)              { return c.namespace, false, nil }
func (c *inCluster) ConfigAccess() clientcmd.ConfigAccess          { return nil }

func TestWrapRESTClientGetter_InCluster(t *testing.T) {
	s := newSandbox(t)
	namespace := client.NewNamespace(t, s.client)
	config := &rest.Config{Host: s.config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: s.config.CAData, CAFile: s.config.CAFile}}
	files := writeKubeconfigs(t, namespace)
	config.BearerTokenFile = filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(config.BearerTokenFile, []byte(files.token), 0o600))
	getter := clientgo.WrapRESTClientGetter(t.Context(), &inCluster{config: config, namespace: namespace}, nil)
	_, err := create(manifestAlone)(t.Context(), getter)
	require.NoError(t, err)
	found, err := s.client.ForGVR(configMaps).Namespace(namespace).Get(t.Context(), "m", nil)
	require.NoError(t, err)
	assert.Equal(t, "m", found.GetName())
	own, err := getter.ToRESTConfig()
	require.NoError(t, err)
	server, err := url.Parse(own.Host)
	require.NoError(t, err)
	assert.Equal(t, strings.TrimSuffix(s.config.Host, "/"), strings.TrimSuffix(server.String(), "/"))
}
