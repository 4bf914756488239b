package stream_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/unstructured"
)

// deployment runs pods that services select, with a named port that echoes.
func deployment(name string, replicas int64) *unstructured.Object {
	labels := map[string]any{"app": "web"}
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"replicas": replicas, "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "web", "image": "web", "ports": []any{
						map[string]any{"name": "echo", "containerPort": int64(portEcho)},
						map[string]any{"name": "dns", "containerPort": int64(53), "protocol": "UDP"},
					},
				}}},
			},
		},
	}}
}

// available waits until so many pods of a deployment are.
func available(t testing.TB, deployments *dynamic.Resource, name string, replicas int64) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		found, err := deployments.Get(t.Context(), name, nil)
		require.NoError(t, err)
		ready, _, err := unstructured.Get[int64](found, "status", "availableReplicas")
		require.NoError(t, err)
		if ready == replicas {
			return
		}
		require.True(t, time.Now().Before(deadline), "%d of %d pods are available", ready, replicas)
	}
}

// podBehind is the pod that a connection leads to; the connection must work.
func podBehind(t testing.TB, dialer *stream.PortDialer, address string) string {
	t.Helper()
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer closed(t, conn)
	echo(t, conn, "hello")
	name, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	require.NoError(t, err)
	return name
}

func TestPortDialer_ChoosesReadyPod(t *testing.T) {
	pods := podsOf(t)
	client := connect(t, "admin")
	deployments := resourceIn(t, client, "deployments", pods)
	_, err := deployments.Create(t.Context(), deployment("web", 2), nil)
	require.NoError(t, err)
	available(t, deployments, "web", 2)
	services := resourceIn(t, client, "services", pods)
	headless := service("headless", portEcho, 1)
	headless.Object["spec"].(map[string]any)["clusterIP"] = "None"
	named := service("named", 80, 0)
	named.Object["spec"].(map[string]any)["ports"] = []any{
		map[string]any{"name": "http", "port": int64(80), "targetPort": "echo"},
		map[string]any{"name": "dns", "port": int64(53), "protocol": "UDP"},
	}
	for _, one := range []*unstructured.Object{service("web", 80, portEcho), named, headless} {
		_, err := services.Create(t.Context(), one, nil)
		require.NoError(t, err)
	}

	byDeployment := &stream.PortDialer{Target: deployments}
	defer closed(t, byDeployment)
	byService := &stream.PortDialer{Target: services}
	defer closed(t, byService)
	for _, address := range []string{"web:80", "web:http", "named:80", "named:http", "headless:7", "headless:http", "named:echo", "web:7"} {
		assert.True(t, strings.HasPrefix(podBehind(t, byService, address), "web-"), address)
	}
	for _, address := range []string{"web:7", "web:echo"} {
		first := podBehind(t, byDeployment, address)
		for range 3 {
			assert.Equal(t, first, podBehind(t, byDeployment, address), "it serves as long as it is ready")
		}
		_, err = pods.Delete(t.Context(), first, nil)
		require.NoError(t, err)
		deadline := time.Now().Add(patience)
		for podBehind(t, byDeployment, address) == first {
			require.True(t, time.Now().Before(deadline), "the pod that was deleted still serves")
			time.Sleep(100 * time.Millisecond)
		}
		available(t, deployments, "web", 2)
	}

	for address, want := range map[string]string{
		"web:81": `services/web has no port 81: its ports are 80 (http) to 7`, "web:none": "no port none",
		"named:53": "port 53 of services/named is UDP: only TCP can be forwarded", "none:80": "not found",
	} {
		_, err := byService.DialContext(t.Context(), "tcp", address)
		require.ErrorContains(t, err, want, address)
	}
	_, err = byDeployment.DialContext(t.Context(), "tcp", "web:none")
	require.ErrorContains(t, err, `no port named "none": its ports are 7 (echo)`)
	_, err = byDeployment.DialContext(t.Context(), "tcp", "web:53")
	require.ErrorContains(t, err, "is UDP: only TCP can be forwarded")
	_, err = byDeployment.DialContext(t.Context(), "tcp", "web:dns")
	require.ErrorContains(t, err, "is UDP: only TCP can be forwarded")
	pod := podBehind(t, byDeployment, "web:7")
	_, err = stream.DialPort(t.Context(), pods, pod, 53)
	require.ErrorContains(t, err, "port 53 of pod "+pod+" is UDP: only TCP can be forwarded")
}

func TestPortDialer_NoReadyPod(t *testing.T) {
	pods := podsOf(t)
	client := connect(t, "admin")
	deployments := resourceIn(t, client, "deployments", pods)
	_, err := deployments.Create(t.Context(), deployment("web", 0), nil)
	require.NoError(t, err)
	_, err = stream.DialPort(t.Context(), deployments, "web", portEcho)
	require.ErrorContains(t, err, "deployments/web has no pods (app=web)")

	pending := named("pending")
	pending.Object["spec"] = map[string]any{
		"nodeSelector": map[string]any{"nowhere": "known"},
		"containers":   []any{map[string]any{"name": "web", "image": "web"}},
	}
	deadline := time.Now().Add(patience)
	for _, err = pods.Create(t.Context(), pending, nil); err != nil; _, err = pods.Create(t.Context(), pending, nil) {
		require.True(t, time.Now().Before(deadline), "%v", err) // until the namespace has a service account
		time.Sleep(100 * time.Millisecond)
	}
	_, err = stream.DialPort(t.Context(), deployments, "web", portEcho)
	require.ErrorContains(t, err, "no pod of deployments/web is ready: 1 Pending")

	services := resourceIn(t, client, "services", pods)
	alone := service("alone", 80, 80)
	delete(alone.Object["spec"].(map[string]any), "selector")
	_, err = services.Create(t.Context(), alone, nil)
	require.NoError(t, err)
	_, err = stream.DialPort(t.Context(), services, "alone", 80)
	require.ErrorContains(t, err, "services/alone selects no pods")
	_, err = stream.DialPort(t.Context(), resourceIn(t, client, "configmaps", pods), "kube-root-ca.crt", 80)
	require.ErrorContains(t, err, "selects no pods")
	nodes, err := client.Resource(t.Context(), "nodes")
	require.NoError(t, err)
	_, err = stream.DialPort(t.Context(), nodes, "node-1", 80)
	require.ErrorContains(t, err, "name a pod, a service or a workload")
}
