package manager_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/anykind/anykind/compat/controllerruntime"
	"github.com/anykind/anykind/compat/controllerruntime/manager"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
)

// recorder records method and path of each request.
type recorder struct {
	mu    sync.Mutex
	calls []string
}

func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return &recordingTransport{next, r}
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

type recordingTransport struct {
	next     http.RoundTripper
	recorder *recorder
}

func (t *recordingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.recorder.mu.Lock()
	t.recorder.calls = append(t.recorder.calls, req.Method+" "+req.URL.Path)
	t.recorder.mu.Unlock()
	return t.next.RoundTrip(req)
}

func (t *recordingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// adminConfig returns a config whose requests are recorded, and closes its connections, which client-go keeps, when the test ends.
func adminConfig(t *testing.T, over *recorder) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig(t))
	require.NoError(t, err)
	config.QPS = -1
	config.WrapTransport = over.wrap
	var mu sync.Mutex
	var conns []net.Conn
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
		}
		return conn, err
	}
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range conns {
			_ = conn.Close()
		}
	})
	return config
}

// sources returns functions that make constructors over a recorded connection. beside records requests with the config itself that
// FromConfig was given.
func sources(t *testing.T, beside *recorder) map[string]func(t *testing.T, over *recorder) *controllerruntime.Constructors {
	t.Helper()
	return map[string]func(*testing.T, *recorder) *controllerruntime.Constructors{
		"New": func(t *testing.T, over *recorder) *controllerruntime.Constructors {
			t.Helper()
			return controllerruntime.New(t.Context(), client.Connect(t, "admin", func(cfg *transport.Config) { cfg.WrapTransport = over.wrap }))
		},
		"FromConfig": func(t *testing.T, over *recorder) *controllerruntime.Constructors {
			t.Helper()
			config := adminConfig(t, over)
			from, err := controllerruntime.FromConfig(t.Context(), config)
			require.NoError(t, err)
			config.WrapTransport = beside.wrap
			return from
		},
	}
}

// TestConfigure_CarriesAllRequests finds all that a manager sends on anykind's connection, and nothing beside it.
func TestConfigure_CarriesAllRequests(t *testing.T) {
	namespace := client.NewNamespace(t, client.Connect(t, "admin"))
	beside := &recorder{}
	for name, newSource := range sources(t, beside) {
		t.Run(name, func(t *testing.T) {
			over := &recorder{}
			mgr, err := ctrl.NewManager(manager.Configure(newSource(t, over), ctrl.Options{
				Metrics: server.Options{BindAddress: "0"}, LeaderElection: true, LeaderElectionID: "leader", LeaderElectionNamespace: namespace,
				LeaderElectionReleaseOnCancel: true,
			}))
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- mgr.Start(ctx) }()
			defer func() {
				stop()
				assert.NoError(t, <-ended)
				mgr.GetHTTPClient().CloseIdleConnections()
			}()
			<-mgr.Elected()
			var pods corev1.PodList
			require.NoError(t, mgr.GetAPIReader().List(t.Context(), &pods, ctrlclient.InNamespace(namespace)))
			clientset, err := kubernetes.NewForConfig(mgr.GetConfig())
			require.NoError(t, err)
			_, err = clientset.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			configMap := &corev1.ConfigMap{}
			configMap.Namespace = namespace
			configMap.GenerateName = "about-"
			require.NoError(t, mgr.GetClient().Create(t.Context(), configMap))
			mgr.GetEventRecorder("test").Eventf(configMap, nil, corev1.EventTypeNormal, "Tested", "Test", "a note")

			prefix := "/api/v1/namespaces/" + namespace
			lease := "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases"
			for _, want := range []string{
				"GET " + prefix + "/pods", "GET " + prefix + "/secrets", "POST " + prefix + "/configmaps", "PUT " + lease + "/leader",
				"POST /apis/events.k8s.io/v1/namespaces/" + namespace + "/events",
			} {
				assert.Eventually(t, func() bool { return slices.Contains(over.all(), want) }, time.Minute, 10*time.Millisecond, want)
			}
		})
	}
	assert.Empty(t, beside.all())
}

func TestConfigureCluster_CarriesAllRequests(t *testing.T) {
	namespace := client.NewNamespace(t, client.Connect(t, "admin"))
	beside := &recorder{}
	for name, newSource := range sources(t, beside) {
		t.Run(name, func(t *testing.T) {
			over := &recorder{}
			other, err := ctrlcluster.New(manager.ConfigureCluster(newSource(t, over)))
			require.NoError(t, err)
			defer other.GetHTTPClient().CloseIdleConnections()
			require.NoError(t, other.GetAPIReader().List(t.Context(), &corev1.PodList{}, ctrlclient.InNamespace(namespace)))
			secret := &corev1.Secret{}
			secret.Namespace = namespace
			secret.GenerateName = "about-"
			require.NoError(t, other.GetClient().Create(t.Context(), secret))
			assert.Contains(t, over.all(), "GET /api/v1/namespaces/"+namespace+"/pods")
			assert.Contains(t, over.all(), "POST /api/v1/namespaces/"+namespace+"/secrets")
		})
	}
	assert.Empty(t, beside.all())
}

func TestConfigure_KeepsOptionsOfCaller(t *testing.T) {
	from := controllerruntime.New(t.Context(), client.Connect(t, "admin"))
	called := map[string]bool{}
	_, options := manager.Configure(from, ctrl.Options{
		LeaderElectionID: "leader",
		NewClient: func(*rest.Config, ctrlclient.Options) (ctrlclient.Client, error) {
			called["client"] = true
			return nil, nil //nolint:nilnil // Only the call counts.
		},
		NewCache: func(*rest.Config, ctrlcache.Options) (ctrlcache.Cache, error) {
			called["cache"] = true
			return nil, nil //nolint:nilnil // Only the call counts.
		},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			called["mapper"] = true
			return nil, nil //nolint:nilnil // Only the call counts.
		},
	})
	_, _ = options.NewClient(nil, ctrlclient.Options{})
	_, _ = options.NewCache(nil, ctrlcache.Options{})
	_, _ = options.MapperProvider(nil, nil)
	assert.Equal(t, map[string]bool{"client": true, "cache": true, "mapper": true}, called)
	assert.Equal(t, "leader", options.LeaderElectionID)
}
