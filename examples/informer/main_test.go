package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWatchPods_ReportsNeighbors(t *testing.T) {
	pods := client.Resource(t, client.Connect(t, "admin"), "pods").Namespace("default")
	read, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watchPods(ctx, pods, write) }()
	lines := bufio.NewScanner(read)
	expect := func(want string) {
		t.Helper()
		for ok := false; !ok; ok = lines.Text() == want { // a pod may change several times
			require.True(t, lines.Scan(), "waiting for %q", want)
		}
	}
	for i := range 2 {
		name := fmt.Sprint("informed-", i)
		_, err := pods.Create(t.Context(), &unstructured.Object{Object: map[string]any{
			"metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"nodeName": "far-away", "terminationGracePeriodSeconds": int64(0),
				"containers": []any{map[string]any{"name": "web", "image": "web:1"}},
			},
		}}, nil)
		require.NoError(t, err)
		expect(fmt.Sprintf("default/%s is one of %d on far-away", name, i+1))
	}
	now := int64(0)
	for i := range 2 {
		name := fmt.Sprint("informed-", i)
		_, err := pods.Delete(t.Context(), name, &metav1.DeleteOptions{GracePeriodSeconds: &now})
		require.NoError(t, err)
		expect(fmt.Sprintf("default/%s was deleted", name))
	}
	cancel()
	assert.ErrorIs(t, <-ended, context.Canceled)
}
