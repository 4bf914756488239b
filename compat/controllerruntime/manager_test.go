package controllerruntime

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// pathRecorder records method and path of each request of a connection.
type pathRecorder struct {
	next http.RoundTripper

	mu    *sync.Mutex
	calls *[]string
}

func (r pathRecorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	*r.calls = append(*r.calls, req.Method+" "+req.URL.Path)
	r.mu.Unlock()
	return r.next.RoundTrip(req)
}

// TestConstructors_ConfigCarriesManagersRequests finds what a manager sends without its client and cache on anykind's connection.
func TestConstructors_ConfigCarriesManagersRequests(t *testing.T) {
	var mu sync.Mutex
	var calls []string
	admin := client.Connect(t, "admin", func(cfg *transport.Config) {
		cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return pathRecorder{next, &mu, &calls} }
	})
	namespace := client.NewNamespace(t, admin)
	from := New(t.Context(), admin)
	mgr, err := ctrl.NewManager(from.Config(), ctrl.Options{
		NewClient: from.NewClient, NewCache: from.NewCache, MapperProvider: from.MapperProvider, Metrics: server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "leader", LeaderElectionNamespace: namespace, LeaderElectionReleaseOnCancel: true,
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		stop()
		assert.NoError(t, <-ended)
	}()
	<-mgr.Elected()
	var pods corev1.PodList
	require.NoError(t, mgr.GetAPIReader().List(t.Context(), &pods, ctrlclient.InNamespace(namespace)))
	clientset, err := kubernetes.NewForConfig(mgr.GetConfig())
	require.NoError(t, err)
	_, err = clientset.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	configMap := &corev1.ConfigMap{}
	configMap.Namespace, configMap.Name = namespace, "about"
	require.NoError(t, mgr.GetClient().Create(t.Context(), configMap))
	mgr.GetEventRecorder("test").Eventf(configMap, nil, corev1.EventTypeNormal, "Tested", "Test", "a note")

	prefix := "/api/v1/namespaces/" + namespace
	for _, want := range []string{
		"GET " + prefix + "/pods", "GET " + prefix + "/secrets", "POST " + prefix + "/configmaps",
		"POST /apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases", "POST /apis/events.k8s.io/v1/namespaces/" + namespace + "/events",
	} {
		assert.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(calls, want)
		}, time.Minute, 10*time.Millisecond, want)
	}
}

// countingWarnings is a warning handler of a config.
type countingWarnings struct {
	mu    sync.Mutex
	texts []string
}

func (c *countingWarnings) HandleWarningHeader(_ int, _, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts = append(c.texts, text)
}

// TestFromConfig_WarnsOnce creates an object with an unknown field by each client of a manager.
func TestFromConfig_WarnsOnce(t *testing.T) {
	namespace := client.NewNamespace(t, client.Connect(t, "admin"))
	config, warnings := adminConfig(t), &countingWarnings{}
	config.WarningHandler = warnings
	from, err := FromConfig(t.Context(), config)
	require.NoError(t, err)
	for name, newClient := range map[string]ctrlclient.NewClientFunc{"anykind": from.NewClient, "controller-runtime": ctrlclient.New} {
		t.Run(name, func(t *testing.T) {
			warnings.texts = nil
			c, err := newClient(from.Config(), ctrlclient.Options{FieldValidation: "Warn"})
			require.NoError(t, err)
			obj := untyped(configMaps, namespace, name)
			obj.Object["unknown"] = "x"
			require.NoError(t, c.Create(t.Context(), obj))
			assert.Len(t, warnings.texts, 1)
		})
	}
}

// TestFromConfig_KeepsSettings compares the settings that do not authenticate.
func TestFromConfig_KeepsSettings(t *testing.T) {
	config := &rest.Config{
		Host: "https://127.0.0.1:1", BearerToken: "secret", UserAgent: "agent", Timeout: time.Minute, WarningHandler: &countingWarnings{},
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}
	from, err := FromConfig(t.Context(), config)
	require.NoError(t, err)
	own := from.Config()
	assert.Equal(t, config.ContentConfig, own.ContentConfig)
	assert.Equal(t, config.UserAgent, own.UserAgent)
	assert.Equal(t, config.Timeout, own.Timeout)
	assert.Equal(t, config.WarningHandler, own.WarningHandler)
	assert.Empty(t, own.BearerToken)
}
