package dynamic_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pod is one that no scheduler and no kubelet touches.
func pod(name string) *unstructured.Object {
	made := named(name, map[string]any{
		"serviceAccountName": "robot", "schedulerName": "nobody", "terminationGracePeriodSeconds": int64(0),
		"containers": []any{map[string]any{"name": "web", "image": "web:1", "resources": map[string]any{"requests": map[string]any{"cpu": "100m"}}}},
	})
	made.SetLabels(map[string]string{"app": "web"})
	return made
}

// podIn creates a namespace's service account robot and a pod of that name.
func podIn(t *testing.T, client *dynamic.Client, namespace, name string) (pods *dynamic.Resource) {
	t.Helper()
	_, err := resource(t, client, "sa").In(namespace).Create(t.Context(), named("robot", nil), nil)
	require.NoError(t, err)
	pods = resource(t, client, "pods").In(namespace)
	_, err = pods.Create(t.Context(), pod(name), nil)
	require.NoError(t, err)
	return pods
}

// TestEverySubresourceIsReachedByItsName goes through those that hold objects.
func TestEverySubresourceIsReachedByItsName(t *testing.T) {
	client, namespace := newNamespace(t)
	pods := podIn(t, client, namespace, "web")
	_, err := resource(t, client, "deploy").In(namespace).Create(t.Context(), deployment("web"), nil)
	require.NoError(t, err)
	for _, tc := range []struct {
		sub, kind string
		call      func() (*unstructured.Object, error)
		path      []string
		want      any
	}{
		{"status", "Pod", func() (*unstructured.Object, error) {
			return pods.Sub("status").Patch(t.Context(), "web", types.MergePatchType, []byte(`{"status":{"message":"hello"}}`), nil)
		}, []string{"status", "message"}, "hello"},
		{"scale", "Scale", func() (*unstructured.Object, error) {
			return resource(t, client, "deploy").In(namespace).Scale(t.Context(), "web", 3, nil)
		}, []string{"spec", "replicas"}, int64(3)},
		{"resize", "Pod", func() (*unstructured.Object, error) {
			return pods.Sub("resize").Patch(t.Context(), "web", types.StrategicMergePatchType,
				[]byte(`{"spec":{"containers":[{"name":"web","resources":{"requests":{"cpu":"200m"}}}]}}`), nil)
		}, []string{"spec", "containers", "0", "resources", "requests", "cpu"}, "200m"},
		{"binding", "Status", func() (*unstructured.Object, error) {
			return pods.Sub("binding").Create(t.Context(), &unstructured.Object{Object: map[string]any{
				"metadata": map[string]any{"name": "web"}, "target": map[string]any{"kind": "Node", "name": "nowhere"},
			}}, nil)
		}, []string{"status"}, "Success"},
		{"ephemeralcontainers", "Pod", func() (*unstructured.Object, error) {
			return pods.Sub("ephemeralcontainers").Patch(t.Context(), "web", types.StrategicMergePatchType,
				[]byte(`{"spec":{"ephemeralContainers":[{"name":"debug","image":"debug:1"}]}}`), nil)
		}, []string{"spec", "ephemeralContainers", "0", "name"}, "debug"},
		{"token", "TokenRequest", func() (*unstructured.Object, error) {
			return resource(t, client, "sa").In(namespace).Sub("token").Create(t.Context(), named("robot", map[string]any{"audiences": []any{"shop"}}), nil)
		}, []string{"spec", "audiences", "0"}, "shop"},
		{"eviction", "Status", func() (*unstructured.Object, error) {
			return pods.Sub("eviction").Create(t.Context(), object("Eviction", "web"), nil)
		}, []string{"status"}, "Success"},
		{"approval", "CertificateSigningRequest", func() (*unstructured.Object, error) { return approve(t, client, namespace) },
			[]string{"status", "conditions", "0", "reason"}, "TestSaysSo"},
		{"finalize", "Namespace", func() (*unstructured.Object, error) { return finalize(t, client, namespace) },
			[]string{"spec", "finalizers", "1"}, "example.com/keep"},
	} {
		t.Run(tc.sub, func(t *testing.T) {
			answer, err := tc.call()
			require.NoError(t, err)
			assert.Equal(t, tc.kind, answer.GetKind())
			got, _, err := unstructured.Get[any](answer, tc.path...)
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

// approve requests a certificate and approves the request.
func approve(t *testing.T, client *dynamic.Client, name string) (*unstructured.Object, error) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	text, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "robot"}}, key)
	require.NoError(t, err)
	requests := resource(t, client, "csr")
	request, err := requests.Create(t.Context(), named(name, map[string]any{
		"signerName": "example.com/nobody", "usages": []any{"client auth"},
		"request": base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: text})),
	}), nil)
	require.NoError(t, err)
	removed(t, requests, name)
	request.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Approved", "status": "True", "reason": "TestSaysSo",
	}}}
	return requests.Sub("approval").Update(t.Context(), request, nil)
}

// finalize gives a namespace one more finalizer, and takes it away when the test ends.
func finalize(t *testing.T, client *dynamic.Client, name string) (*unstructured.Object, error) {
	t.Helper()
	with := func(finalizers ...any) (*unstructured.Object, error) {
		return resource(t, client, "ns").Sub("finalize").Update(t.Context(), named(name, map[string]any{"finalizers": finalizers}), nil)
	}
	kept, err := with("kubernetes", "example.com/keep")
	require.NoError(t, err)
	_, err = with("kubernetes")
	require.NoError(t, err)
	return kept, nil
}

// TestAProxysAnswerIsNoObject asks for a service that nothing stands behind: the path is right, and the proxy says so.
func TestAProxysAnswerIsNoObject(t *testing.T) {
	client, namespace := newNamespace(t)
	services := resource(t, client, "svc").In(namespace)
	_, err := services.Create(t.Context(), named("web", map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}), nil)
	require.NoError(t, err)
	_, err = resource(t, client, "endpoints").In(namespace).Create(t.Context(), named("web", nil), nil)
	require.NoError(t, err)
	path, err := services.Sub("proxy").Path("web")
	require.NoError(t, err)
	_, err = services.Conn().Do(t.Context(), &transport.Request{Method: http.MethodGet, Path: path + "/index.html"})
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	require.ErrorContains(t, err, `no endpoints available for service "web"`)
}

func TestACustomKindIsScaledAndOthersAreNot(t *testing.T) {
	client, namespace := newNamespace(t)
	of := sharedWidgets(t, client, namespace)
	_, err := of.Create(t.Context(), named("one", map[string]any{"replicas": int64(1)}), nil)
	require.NoError(t, err)
	scale, err := of.Scale(t.Context(), "one", 4, &metav1.PatchOptions{FieldManager: "test"})
	require.NoError(t, err)
	assert.Equal(t, "autoscaling/v1, Kind=Scale", scale.GroupVersionKind().String())
	read, err := of.Get(t.Context(), "one", nil)
	require.NoError(t, err)
	replicas, _, err := unstructured.Get[int64](read, "spec", "replicas")
	require.NoError(t, err)
	assert.Equal(t, int64(4), replicas)

	_, err = of.Scale(t.Context(), "one", -1, nil)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	_, err = of.Scale(t.Context(), "two", 1, nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = resource(t, client, "cm").In(namespace).Scale(t.Context(), "one", 1, nil)
	require.ErrorContains(t, err, "the server serves no such subresource")
}
