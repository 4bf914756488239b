package apitest_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/controller/webhook"
	"github.com/anykind/anykind/unstructured"
)

// TestServer_CallsHandlersOfWebhookPackage serves the webhooks of a service, with a certificate of an Issuer.
func TestServer_CallsHandlersOfWebhookPackage(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/validate", webhook.Validate(func(_ context.Context, r *webhook.Request[unstructured.Object]) error {
		if r.Object.Object["data"] == nil {
			return apierrors.NewBadRequest("no data")
		}
		return nil
	}, nil))
	mux.Handle("/mutate", webhook.Mutate(func(_ context.Context, r *webhook.Request[unstructured.Object]) (*unstructured.Object, error) {
		r.Object.SetLabels(map[string]string{"team": r.Name})
		return r.Object, nil
	}, nil))
	hooks := httptest.NewUnstartedServer(mux)
	server := apitest.NewServer(t, &apitest.Options{ServiceURL: func(string, string, int32) (string, error) { return "https://" + hooks.Listener.Addr().String(), nil }})
	client := server.Client()
	defer client.Close()
	service := types.NamespacedName{Namespace: "default", Name: "hooks"}
	configurations := []webhook.Configuration{
		{Name: "validate.example.com", Path: "/validate"},
		{Name: "mutate.example.com", Path: "/mutate", Mutating: true},
	}
	for i := range configurations {
		configurations[i].Service = service
		configurations[i].Operations = []webhook.Operation{webhook.Create}
		configurations[i].Resources = []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}}
	}
	require.NoError(t, webhook.Register(t.Context(), client, configurations, nil))
	issuer := webhook.NewIssuer(client, service, []string{"127.0.0.1"},
		&webhook.IssuerOptions{Validating: []string{"validate.example.com"}, Mutating: []string{"mutate.example.com"}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- issuer.Run(ctx) }()
	defer func() { cancel(); assert.ErrorIs(t, <-ended, context.Canceled) }()
	hooks.Listener = tls.NewListener(hooks.Listener, issuer.Certificate().TLSConfig())
	hooks.Start()
	defer hooks.Close()
	require.Eventually(t, func() bool {
		w := httptest.NewRecorder()
		issuer.Certificate().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
		return w.Code == http.StatusOK
	}, time.Minute, 10*time.Millisecond)

	configMaps, err := client.Resource(t.Context(), "configmaps")
	require.NoError(t, err)
	configMaps = configMaps.Namespace("default")
	created, err := configMaps.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web"}, "data": map[string]any{"a": "b"}}}, nil)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"team": "web"}, created.GetLabels())
	_, err = configMaps.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "empty"}}}, nil)
	assert.True(t, apierrors.IsBadRequest(err), "%v", err)
	assert.ErrorContains(t, err, `admission webhook "validate.example.com" denied the request: no data`)
}
