package dynamic_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/unstructured"
)

func TestSubresource_Status(t *testing.T) {
	client, namespace := newNamespace(t)
	of := sharedWidgets(t, client, namespace)
	created, err := of.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "one"}, "spec": map[string]any{"a": "1"}, "status": map[string]any{"phase": "lost"},
	}}, nil)
	require.NoError(t, err)
	assert.NotContains(t, created.Object, "status")

	created.Object["spec"] = map[string]any{"a": "lost"}
	created.Object["status"] = map[string]any{"phase": "Ready"}
	updated, err := of.Subresource("status").Update(t.Context(), created, nil)
	require.NoError(t, err)
	assert.Equal(t, "Ready", field(t, updated, "status", "phase"))
	assert.Equal(t, "1", field(t, updated, "spec", "a"))

	_, err = of.Subresource("status").Patch(t.Context(), "one", types.MergePatchType, []byte(`{"status":{"phase":"Done"}}`), nil)
	require.NoError(t, err)
	_, err = of.Subresource("status").Apply(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "one"}, "status": map[string]any{"note": "applied"},
	}}, &metav1.ApplyOptions{FieldManager: "test"})
	require.NoError(t, err)
	read, err := of.Subresource("status").Get(t.Context(), "one", nil)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"phase": "Done", "note": "applied"}, read.Object["status"])
}

func TestSubresource_Scale(t *testing.T) {
	client, namespace := newNamespace(t)
	deployments := resource(t, client, "deploy").Namespace(namespace)
	_, err := deployments.Create(t.Context(), deployment("web"), nil)
	require.NoError(t, err)
	// The deployment's controller writes, too.
	require.NoError(t, dynamic.RetryOnConflict(t.Context(), func(ctx context.Context) error {
		scale, err := deployments.Subresource("scale").Get(ctx, "web", nil)
		require.NoError(t, err)
		assert.Equal(t, "autoscaling/v1, Kind=Scale", scale.GroupVersionKind().String())
		require.NoError(t, setReplicas(scale, 2))
		_, err = deployments.Subresource("scale").Update(ctx, scale, nil)
		return err
	}))
	read, err := deployments.Get(t.Context(), "web", nil)
	require.NoError(t, err)
	replicas, _, err := unstructured.Get[int64](read, "spec", "replicas")
	require.NoError(t, err)
	assert.Equal(t, int64(2), replicas)
}

func setReplicas(obj *unstructured.Object, replicas int64) error {
	spec, _, err := unstructured.Get[map[string]any](obj, "spec")
	if err != nil {
		return err
	}
	spec["replicas"] = replicas
	obj.Object["spec"] = spec
	return nil
}

func TestSubresource_CreateOnly(t *testing.T) {
	client, namespace := newNamespace(t)
	accounts := resource(t, client, "sa").Namespace(namespace)
	_, err := accounts.Create(t.Context(), named("robot", nil), nil)
	require.NoError(t, err)
	token, err := accounts.Subresource("token").Create(t.Context(), named("robot", map[string]any{"expirationSeconds": int64(600)}), nil)
	require.NoError(t, err)
	assert.NotEmpty(t, field(t, token, "status", "token"))

	pods := resource(t, client, "pods").Namespace(namespace)
	pod := named("web", map[string]any{
		"serviceAccountName": "robot", "nodeName": "nowhere", "terminationGracePeriodSeconds": int64(0),
		"containers": []any{map[string]any{"name": "web", "image": "web:1"}},
	})
	_, err = pods.Create(t.Context(), pod, nil)
	require.NoError(t, err)
	_, err = pods.Subresource("eviction").Create(t.Context(), named("web", nil), nil)
	require.NoError(t, err)
	_, err = pods.Get(t.Context(), "web", nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// named returns an object without kind.
func named(name string, spec map[string]any) *unstructured.Object {
	obj := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}}}
	if spec != nil {
		obj.Object["spec"] = spec
	}
	return obj
}

// pod returns a pod that no scheduler or kubelet touches.
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
	_, err := resource(t, client, "sa").Namespace(namespace).Create(t.Context(), named("robot", nil), nil)
	require.NoError(t, err)
	pods = resource(t, client, "pods").Namespace(namespace)
	_, err = pods.Create(t.Context(), pod(name), nil)
	require.NoError(t, err)
	return pods
}

// TestSubresource_AllByName covers those whose responses are objects.
func TestSubresource_AllByName(t *testing.T) {
	client, namespace := newNamespace(t)
	pods := podIn(t, client, namespace, "web")
	_, err := resource(t, client, "deploy").Namespace(namespace).Create(t.Context(), deployment("web"), nil)
	require.NoError(t, err)
	for _, tc := range []struct {
		sub, kind string
		call      func() (*unstructured.Object, error)
		path      []string
		want      any
	}{
		{"status", "Pod", func() (*unstructured.Object, error) {
			return pods.Subresource("status").Patch(t.Context(), "web", types.MergePatchType, []byte(`{"status":{"message":"hello"}}`), nil)
		}, []string{"status", "message"}, "hello"},
		{"scale", "Scale", func() (*unstructured.Object, error) {
			return resource(t, client, "deploy").Namespace(namespace).Scale(t.Context(), "web", 3, nil)
		}, []string{"spec", "replicas"}, int64(3)},
		{"resize", "Pod", func() (*unstructured.Object, error) {
			return pods.Subresource("resize").Patch(t.Context(), "web", types.StrategicMergePatchType,
				[]byte(`{"spec":{"containers":[{"name":"web","resources":{"requests":{"cpu":"200m"}}}]}}`), nil)
		}, []string{"spec", "containers", "0", "resources", "requests", "cpu"}, "200m"},
		{"binding", "Status", func() (*unstructured.Object, error) {
			return pods.Subresource("binding").Create(t.Context(), &unstructured.Object{Object: map[string]any{
				"metadata": map[string]any{"name": "web"}, "target": map[string]any{"kind": "Node", "name": "nowhere"},
			}}, nil)
		}, []string{"status"}, "Success"},
		{"ephemeralcontainers", "Pod", func() (*unstructured.Object, error) {
			return pods.Subresource("ephemeralcontainers").Patch(t.Context(), "web", types.StrategicMergePatchType,
				[]byte(`{"spec":{"ephemeralContainers":[{"name":"debug","image":"debug:1"}]}}`), nil)
		}, []string{"spec", "ephemeralContainers", "0", "name"}, "debug"},
		{"token", "TokenRequest", func() (*unstructured.Object, error) {
			return resource(t, client, "sa").Namespace(namespace).Subresource("token").Create(t.Context(), named("robot", map[string]any{"audiences": []any{"shop"}}), nil)
		}, []string{"spec", "audiences", "0"}, "shop"},
		{"eviction", "Status", func() (*unstructured.Object, error) {
			return pods.Subresource("eviction").Create(t.Context(), object("Eviction", "web"), nil)
		}, []string{"status"}, "Success"},
		{"approval", "CertificateSigningRequest", func() (*unstructured.Object, error) { return approve(t, client, namespace) },
			[]string{"status", "conditions", "0", "reason"}, "TestSaysSo"},
		{"finalize", "Namespace", func() (*unstructured.Object, error) { return finalize(t, client, namespace) },
			[]string{"spec", "finalizers", "1"}, "example.com/keep"},
	} {
		t.Run(tc.sub, func(t *testing.T) {
			response, err := tc.call()
			require.NoError(t, err)
			assert.Equal(t, tc.kind, response.GetKind())
			got, _, err := unstructured.Get[any](response, tc.path...)
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
	return requests.Subresource("approval").Update(t.Context(), request, nil)
}

// finalize adds a finalizer to a namespace and removes it at the end of the test.
func finalize(t *testing.T, client *dynamic.Client, name string) (*unstructured.Object, error) {
	t.Helper()
	with := func(finalizers ...any) (*unstructured.Object, error) {
		return resource(t, client, "ns").Subresource("finalize").Update(t.Context(), named(name, map[string]any{"finalizers": finalizers}), nil)
	}
	kept, err := with("kubernetes", "example.com/keep")
	require.NoError(t, err)
	_, err = with("kubernetes")
	require.NoError(t, err)
	return kept, nil
}

// TestSubresource_ProxyResponseIsNoObject requests a service without endpoints: the path is right, and the error is the proxy's.
func TestSubresource_ProxyResponseIsNoObject(t *testing.T) {
	client, namespace := newNamespace(t)
	services := resource(t, client, "svc").Namespace(namespace)
	_, err := services.Create(t.Context(), named("web", map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}), nil)
	require.NoError(t, err)
	_, err = resource(t, client, "endpoints").Namespace(namespace).Create(t.Context(), named("web", nil), nil)
	require.NoError(t, err)
	path, err := services.Subresource("proxy").Path("web")
	require.NoError(t, err)
	_, err = services.Conn().Do(t.Context(), &transport.Request{Method: http.MethodGet, Path: path + "/index.html"})
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	require.ErrorContains(t, err, `no endpoints available for service "web"`)
}

func TestScale_CustomKinds(t *testing.T) {
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
	_, err = resource(t, client, "cm").Namespace(namespace).Scale(t.Context(), "one", 1, nil)
	require.ErrorContains(t, err, "the server serves no such subresource")
}

// guarded returns a running pod whose budget allows no eviction. The test writes the statuses in place of controllers.
func guarded(t *testing.T, client *dynamic.Client, namespace string) (pods, budgets *dynamic.Resource) {
	t.Helper()
	pods = podIn(t, client, namespace, "web")
	_, err := pods.Subresource("status").Patch(t.Context(), "web", types.MergePatchType,
		[]byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`), nil)
	require.NoError(t, err)
	budgets = resource(t, client, "pdb").Namespace(namespace)
	_, err = budgets.Create(t.Context(), named("guard", map[string]any{
		"minAvailable": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
	}), nil)
	require.NoError(t, err)
	_, err = budgets.Subresource("status").Patch(t.Context(), "guard", types.MergePatchType,
		[]byte(`{"status":{"observedGeneration":1,"disruptionsAllowed":0,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1}}`), nil)
	require.NoError(t, err)
	return pods, budgets
}

func TestEvict_UntilBudgetAllows(t *testing.T) {
	client, namespace := newNamespace(t)
	pods, budgets := guarded(t, client, namespace)
	err := pods.Evict(t.Context(), "web", nil)
	var disruption *dynamic.DisruptionBudgetError
	require.ErrorAs(t, err, &disruption)
	// A controller that does not know the pod's condition yet counts none.
	const cause = "The disruption budget guard needs 1 healthy pods and has [01] currently"
	require.Len(t, disruption.Causes, 1)
	assert.Regexp(t, "^"+cause+"$", disruption.Causes[0])
	assert.True(t, apierrors.IsTooManyRequests(err))

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err = pods.Evict(ctx, "web", &dynamic.EvictOptions{Retry: true})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Regexp(t, cause, err.Error())

	// The budget is deleted after one more rejected eviction.
	refusals := make(chan struct{}, 100)
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	cfg.OnAttempt = func(_ context.Context, attempt transport.Attempt) {
		if attempt.Resource == "pods/eviction" && attempt.StatusCode == http.StatusTooManyRequests {
			refusals <- struct{}{}
		}
	}
	watched, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(watched.Close)
	watchedPods := resource(t, watched, "pods").Namespace(namespace)
	done := make(chan error, 1)
	go func() {
		done <- watchedPods.Evict(t.Context(), "web", &dynamic.EvictOptions{Retry: true})
	}()
	<-refusals
	_, err = budgets.Delete(t.Context(), "guard", nil)
	require.NoError(t, err)
	require.NoError(t, <-done)
	_, err = pods.Get(t.Context(), "web", nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	err = pods.Evict(t.Context(), "web", &dynamic.EvictOptions{Retry: true})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestEvict_DryRun(t *testing.T) {
	client, namespace := newNamespace(t)
	pods := podIn(t, client, namespace, "web")
	for _, opts := range []*metav1.DeleteOptions{
		{DryRun: []string{metav1.DryRunAll}},
		{Preconditions: &metav1.Preconditions{ResourceVersion: new("1")}},
	} {
		err := pods.Evict(t.Context(), "web", &dynamic.EvictOptions{DeleteOptions: opts})
		assert.Equal(t, opts.Preconditions != nil, apierrors.IsConflict(err), "%v", err)
		_, err = pods.Get(t.Context(), "web", nil)
		require.NoError(t, err)
	}
}

func TestCreateToken_BoundObjectDeleted(t *testing.T) {
	client, namespace := newNamespace(t)
	pods := podIn(t, client, namespace, "web")
	web, err := pods.Get(t.Context(), "web", nil)
	require.NoError(t, err)
	accounts := resource(t, client, "sa").Namespace(namespace)
	token, err := accounts.CreateToken(t.Context(), "robot", &dynamic.TokenOptions{Duration: 20 * time.Minute, BoundObject: web})
	require.NoError(t, err)
	assert.True(t, token.ExpiresAt.After(time.Now()))
	require.ErrorContains(t, forbiddenUser(t, token), "system:serviceaccount:"+namespace+":robot")

	elsewhere, err := accounts.CreateToken(t.Context(), "robot", &dynamic.TokenOptions{Audiences: []string{"vault"}})
	require.NoError(t, err)
	require.True(t, apierrors.IsUnauthorized(forbiddenUser(t, elsewhere)), "it is not for the API server")

	known := accounts.APIResource()
	bare := &discovery.Resource{GVR: known.GVR, GVK: known.GVK, Namespaced: true}
	_, err = client.ForAPIResource(bare).Namespace(namespace).CreateToken(t.Context(), "robot", nil)
	require.NoError(t, err, "the kind of a subresource that is not in the resource is the server's")

	require.NoError(t, pods.Evict(t.Context(), "web", nil))
	web.SetUID("another")
	_, err = accounts.CreateToken(t.Context(), "robot", &dynamic.TokenOptions{BoundObject: web})
	require.Error(t, err, "the pod is gone")
	_, err = accounts.CreateToken(t.Context(), "robot", &dynamic.TokenOptions{Duration: time.Second})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	_, err = accounts.CreateToken(t.Context(), "nobody", nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// forbiddenUser returns a Forbidden error for the token's user, which has the user's name.
func forbiddenUser(t *testing.T, token *dynamic.Token) error {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	conn, err := transport.Open(&transport.Config{Server: cfg.Server, CAFile: cfg.CAFile, CAData: cfg.CAData, Token: kubeconfig.NewSecret(token.Token)})
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Do(t.Context(), &transport.Request{Path: "/api/v1/nodes"})
	require.Error(t, err)
	assert.NotContains(t, err.Error(), token.Token)
	return err
}
