package main

import (
	"bufio"
	"context"
	"io"
	"testing"
	"time"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestItTellsWhenAnImageChangesUntilItsNotifierIsDeleted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cfg, err := transport.Load(ctx, &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	client, err := dynamic.Connect(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	registered, err := controller.Register(ctx, client, definition, nil)
	require.NoError(t, err)
	notifiers := registered[0].In("default")
	deployments, err := client.Resource(ctx, "deploy")
	require.NoError(t, err)
	deployments = deployments.In("default")
	labels := map[string]any{"app": "noted"}
	_, err = deployments.Create(ctx, &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "noted"},
		"spec": map[string]any{
			"replicas": int64(0),
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
			},
		},
	}}, nil)
	require.NoError(t, err)
	_, err = notifiers.Create(ctx, &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "mine"}, "spec": map[string]any{"deployment": "noted"},
	}}, nil)
	require.NoError(t, err)

	read, write := io.Pipe()
	notifying, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- notify(notifying, client, write) }()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for text := bufio.NewScanner(read); text.Scan(); {
			lines <- text.Text()
		}
	}()
	// The notifier may come to its Deployment before or after an image changes, so change it until it tells.
	told := ""
	for image := 2; told == ""; image++ {
		patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:` + string(rune('0'+image%10)) + `"}]}}}}`)
		_, err = deployments.Patch(ctx, "noted", types.StrategicMergePatchType, patch, nil)
		require.NoError(t, err)
		select {
		case told = <-lines:
		case <-time.After(500 * time.Millisecond):
		}
	}
	assert.Regexp(t, `^mine: noted went from web:\d to web:\d$`, told)

	_, err = notifiers.Patch(ctx, "mine", types.MergePatchType, []byte(`{"spec":{"deployment":"another"}}`), nil)
	require.NoError(t, err)
	for told != "mine: no longer watching noted" {
		told = <-lines
	}
	_, err = notifiers.Delete(ctx, "mine", nil)
	require.NoError(t, err)
	for told != "mine: no longer watching another" {
		told = <-lines
	}
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NoError(t, write.Close())
	_, err = deployments.Delete(ctx, "noted", nil)
	require.NoError(t, err)
}
