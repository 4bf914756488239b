package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The cluster has no controllers: the test reports that the Deployment is ready.
func TestRun_WebsiteLifecycle(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	admin := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, admin)
	cfg, err := transport.Load(ctx, &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: "admin", Namespace: namespace})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, cfg, address) }()
	registered, err := controller.RegisterCRDs(ctx, admin, definition, nil)
	require.NoError(t, err)
	websites := registered[0].Namespace(namespace)
	_, err = websites.Create(ctx, &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "shop"}, "spec": map[string]any{"host": "shop.example.com", "image": "shop:1"},
	}}, nil)
	require.NoError(t, err)
	website, err := websites.Wait(ctx, "shop", dynamic.ConditionIs("Ready", "False"))
	require.NoError(t, err)
	deployments := client.Resource(t, admin, "deployments.apps").Namespace(namespace)
	deployment, err := deployments.Get(ctx, "shop", nil)
	require.NoError(t, err)
	assert.Equal(t, website.GetUID(), deployment.GetOwnerReferences()[0].UID)
	hosts := client.Resource(t, admin, "configmaps").Namespace(namespace)
	_, err = hosts.Wait(ctx, "hosts", dynamic.FieldEquals("data.shop", "shop.example.com"))
	require.NoError(t, err)
	ready := []byte(`{"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[
		{"type":"Available","status":"True"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`)
	_, err = deployments.Subresource("status").Patch(ctx, "shop", types.MergePatchType, ready, nil)
	require.NoError(t, err)
	_, err = websites.Wait(ctx, "shop", dynamic.Ready())
	require.NoError(t, err)
	for path, want := range map[string]string{"/readyz": "ok", "/metrics": `(?s)reconcile_total{controller="website",result="success"} [1-9].*leader_election_master_status{name="website-operator"} 1`} {
		response, err := http.Get("http://" + address + path)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, errors.Join(err, response.Body.Close()))
		assert.Regexp(t, want, string(body))
	}
	_, err = websites.Delete(ctx, "shop", nil)
	require.NoError(t, err)
	_, err = hosts.Wait(ctx, "hosts", dynamic.Matches("no data", func(hosts *unstructured.Object) (bool, error) { return hosts.Object["data"] == nil, nil }))
	require.NoError(t, err)
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	events, err := client.Resource(t, admin, "events.events.k8s.io").Namespace(namespace).ListPage(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, events.Items, 1)
	assert.Equal(t, "Deployed", events.Items[0].Object["reason"])
}
