package main

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestListAndWatch(t *testing.T) {
	t.Setenv("KUBECONFIG", cluster.Kubeconfig(t))
	for name, kubectl := range map[string]bool{"kubeconfig": false, "kubectl": true} {
		t.Run(name, func(t *testing.T) {
			if kubectl {
				cluster.KubectlOnPath(t)
			}
			testListAndWatch(t, kubectl)
		})
	}
}

func testListAndWatch(t *testing.T, kubectl bool) {
	var mu sync.Mutex
	var requests strings.Builder
	conn, err := connect(t.Context(), kubectl, transport.Options{OnAttempt: func(_ context.Context, a transport.Attempt) {
		mu.Lock()
		defer mu.Unlock()
		a.Duration = 0
		printAttempt(&requests, a)
	}})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	client := dynamic.New(conn, nil)
	resource, err := client.Resource(t.Context(), "pods")
	require.NoError(t, err)
	pod := func(name string) {
		_, err := resource.Create(t.Context(), &unstructured.Object{Object: map[string]any{
			"metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"nodeName": "nowhere", "terminationGracePeriodSeconds": int64(0),
				"containers": []any{map[string]any{"name": "web", "image": "web:1"}},
			},
		}}, nil)
		require.NoError(t, err)
	}
	remove := func(name string) {
		_, err := resource.Delete(t.Context(), name, &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		require.NoError(t, err)
	}
	pod("listed")
	read, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var done sync.WaitGroup
	done.Go(func() { write.CloseWithError(listAndWatch(ctx, client, write)) })
	lines := make([]byte, 256)
	nextLine := func() string {
		n, err := read.Read(lines)
		require.NoError(t, err)
		return strings.TrimSpace(string(lines[:n]))
	}
	assert.Equal(t, "default/listed Pending", nextLine())
	pod("watched")
	assert.Equal(t, "ADDED    default/watched Pending", nextLine())
	remove("watched")
	for nextLine() != "DELETED  default/watched Pending" { // MODIFIED comes first, with a deletionTimestamp
	}
	remove("listed")
	for nextLine() != "DELETED  default/listed Pending" {
	}
	cancel()
	_, err = read.Read(lines)
	require.ErrorIs(t, err, context.Canceled)
	done.Wait()
	mu.Lock()
	defer mu.Unlock()
	assert.Contains(t, requests.String(), "/api/v1/namespaces/default/pods (list pods): 200 in 0s\n")
	assert.Contains(t, requests.String(), "(watch pods): 200 in 0s\n")
}
