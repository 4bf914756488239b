package webhook_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/webhook"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

// gearsDefinition is a definition with the field size in v1, and spec.size in v2.
const gearsDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: gears, kind: Gear}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {url: "%[2]s/convert"}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer}}}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`

type gearV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Size              int64 `json:"size"`
}

type gearV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int64 `json:"size"`
	} `json:"spec"`
}

// issue runs an issuer until it has issued a certificate, and returns its certificate.
func issue(t *testing.T, issuer *webhook.Issuer) *webhook.Certificate {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), controllertest.Timeout)
	ended := make(chan error, 1)
	go func() { ended <- issuer.Run(ctx) }()
	for code := 0; code != http.StatusOK && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		w := httptest.NewRecorder()
		issuer.Certificate().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
		code = w.Code
	}
	require.NoError(t, ctx.Err())
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	return issuer.Certificate()
}

// serveGears serves the webhooks of gears with a certificate.
func serveGears(t *testing.T, group string, certificate *atomic.Pointer[webhook.Certificate]) (url string) {
	t.Helper()
	kind := func(version string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: version, Kind: "Gear"}
	}
	mux := http.NewServeMux()
	mux.Handle("/validate", webhook.Validate(func(ctx context.Context, r *webhook.Request[gearV1]) error {
		deadline, hasDeadline := ctx.Deadline()
		assert.True(t, hasDeadline && time.Until(deadline) <= 7*time.Second)
		r.Warn("a gear of %s, dry run %t, sent as %s", r.User.Username, r.DryRun, r.RequestKind.Version)
		if r.Object.Size < 0 {
			return apierrors.NewInvalid(r.Kind.GroupKind(), r.Name, nil)
		}
		return nil
	}, nil))
	mux.Handle("/mutate", webhook.Mutate(func(_ context.Context, r *webhook.Request[unstructured.Object]) (*unstructured.Object, error) {
		r.Object.SetLabels(map[string]string{"mutated/by": "webhook"})
		return r.Object, nil
	}, nil))
	mux.Handle("/convert", webhook.Convert([]webhook.Conversion{
		webhook.Between(kind("v1"), "v2", func(_ context.Context, old *gearV1) (*gearV2, error) {
			converted := &gearV2{ObjectMeta: old.ObjectMeta}
			converted.Spec.Size = old.Size
			return converted, nil
		}),
		webhook.Between(kind("v2"), "v1", func(_ context.Context, obj *gearV2) (*gearV1, error) {
			return &gearV1{ObjectMeta: obj.ObjectMeta, Size: obj.Spec.Size}, nil
		}),
	}, nil))
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed by the server
	require.NoError(t, err)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return certificate.Load().TLSConfig().GetCertificate(hello)
		}, MinVersion: tls.VersionTLS12,
	}}
	server.SetKeepAlivesEnabled(false) // every call is a handshake
	done := make(chan struct{})
	go func() { defer close(done); _ = server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return "https://" + listener.Addr().String()
}

// TestWebhooks_OnTheServer has the API server call webhooks, with a renewed CA in between.
func TestWebhooks_OnTheServer(t *testing.T) {
	var warnings atomic.Value
	client, namespace := controllertest.NewNamespace(t)
	group := namespace + ".example.com"
	var certificate atomic.Pointer[webhook.Certificate]
	url := serveGears(t, group, &certificate)
	certificate.Store(webhook.NewCertificate("missing", "missing"))

	_, err := controller.RegisterCRDs(t.Context(), client, fmt.Appendf(nil, gearsDefinition, group, url), nil)
	require.NoError(t, err)
	controllertest.DeleteCRDAfter(t, client, "gears."+group)
	gears := func(version string) *dynamic.Resource {
		resource, err := client.ForKind(t.Context(), schema.GroupVersionKind{Group: group, Version: version, Kind: "Gear"})
		require.NoError(t, err)
		return resource.Namespace(namespace).WithDefaults(&dynamic.Defaults{OnWarning: func(_ context.Context, text string) { warnings.Store(text) }})
	}
	v1 := gears("v1")
	v2 := gears("v2")
	only := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}
	configurations := []webhook.Configuration{
		{Name: "validate." + group, URL: url + "/validate", TimeoutSeconds: 7},
		{Name: "mutate." + group, URL: url + "/mutate", Mutating: true},
	}
	for i := range configurations {
		c := &configurations[i]
		c.Operations = []webhook.Operation{webhook.Create}
		c.Resources = []schema.GroupVersionResource{{Group: group, Version: "v1", Resource: "gears"}}
		c.NamespaceSelector = only
	}
	require.NoError(t, webhook.Register(t.Context(), client, configurations, nil))
	controllertest.DeleteAfter(t, controllertest.Resource(t, client, "validatingwebhookconfigurations"), "validate."+group)
	controllertest.DeleteAfter(t, controllertest.Resource(t, client, "mutatingwebhookconfigurations"), "mutate."+group)

	secret := types.NamespacedName{Namespace: namespace, Name: "certificate"}
	opts := &webhook.IssuerOptions{Validating: []string{"validate." + group}, Mutating: []string{"mutate." + group}, Definitions: []string{"gears." + group}}
	certificate.Store(issue(t, webhook.NewIssuer(client, secret, []string{"127.0.0.1"}, opts)))
	created := createGear(t, v2, "first", 3)
	assert.Equal(t, "webhook", created.GetLabels()["mutated/by"])
	assert.Equal(t, "a gear of admin, dry run false, sent as v2", warnings.Load())
	stored, err := v1.Get(t.Context(), "first", nil)
	require.NoError(t, err)
	assert.Equal(t, int64(3), stored.Object["size"])

	_, err = v2.Create(t.Context(), gear("negative", -1), nil)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.Contains(t, err.Error(), `admission webhook "validate.`+group+`" denied the request`)

	// without its key the CA is replaced
	secrets := controllertest.Resource(t, client, "secrets").Namespace(namespace)
	_, err = secrets.Patch(t.Context(), secret.Name, types.MergePatchType, []byte(`{"data":{"ca.key":null}}`), nil)
	require.NoError(t, err)
	before := certificate.Load()
	createGear(t, v2, "meanwhile", 1)
	certificate.Store(issue(t, webhook.NewIssuer(client, secret, []string{"127.0.0.1", "localhost"}, opts)))
	createGear(t, v2, "renewed", 1)
	certificate.Store(before)
	createGear(t, v2, "former", 1) // a process that has not seen the new certificate
	require.NoError(t, webhook.Register(t.Context(), client, configurations, nil))
	createGear(t, v2, "registered-again", 1) // the caBundle is kept
}

// TestIssuer_AppliedConfigurationLosesWebhook removes a webhook from a configuration by server-side apply, as Flux and Helm do.
func TestIssuer_AppliedConfigurationLosesWebhook(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	name := "several." + namespace + ".example.com"
	configurations := controllertest.Resource(t, client, "validatingwebhookconfigurations")
	apply := func(names ...string) *unstructured.Object {
		var webhooks []any
		for _, name := range names {
			webhooks = append(webhooks, map[string]any{
				"name": name + ".example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "failurePolicy": "Ignore",
				"clientConfig":      map[string]any{"url": "https://127.0.0.1:1/" + name},
				"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}},
			})
		}
		obj := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}, "webhooks": webhooks}}
		applied, err := configurations.Apply(t.Context(), obj, &metav1.ApplyOptions{FieldManager: "helm"})
		require.NoError(t, err)
		return applied
	}
	apply("a", "b")
	controllertest.DeleteAfter(t, configurations, name)
	secret := types.NamespacedName{Namespace: namespace, Name: "certificate"}
	issue(t, webhook.NewIssuer(client, secret, []string{"127.0.0.1"}, &webhook.IssuerOptions{Validating: []string{name}}))
	webhooks, _, err := unstructured.Get[[]any](apply("a"), "webhooks")
	require.NoError(t, err)
	require.Len(t, webhooks, 1)
	assert.Contains(t, fmt.Sprint(webhooks[0]), "caBundle")
}

func gear(name string, size int64) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"size": size}}}
}

// createGear creates a gear, once the server calls the webhooks with the current CA.
func createGear(t *testing.T, gears *dynamic.Resource, name string, size int64) *unstructured.Object {
	t.Helper()
	for deadline := time.Now().Add(controllertest.Timeout); ; time.Sleep(100 * time.Millisecond) {
		dry, err := gears.Create(t.Context(), gear(name, size), &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && len(dry.GetLabels()) > 0 {
			break
		}
		require.True(t, time.Now().Before(deadline), "the webhooks are not called: %v", err)
	}
	created, err := gears.Create(t.Context(), gear(name, size), nil)
	require.NoError(t, err)
	return created
}
