package notifier

import (
	"bufio"
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun_PrintsImages(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c := client.Connect(t, "admin")
	registered, err := controller.RegisterCRDs(ctx, c, definition, nil)
	require.NoError(t, err)
	notifiers := registered[0].Namespace("default")
	deployments := client.Resource(t, c, "deploy").Namespace("default")
	labels := map[string]any{"app": "watched"}
	_, err = deployments.Create(ctx, &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "watched"},
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
		"metadata": map[string]any{"name": "mine"}, "spec": map[string]any{"deployment": "watched", "notify": map[string]any{"key": "secret"}},
	}}, nil)
	require.NoError(t, err)

	read, write := io.Pipe()
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- Run(running, c, write) }()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for text := bufio.NewScanner(read); text.Scan(); {
			lines <- text.Text()
		}
	}()
	assert.Equal(t, "mine: watched has web:1", <-lines)
	patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`)
	_, err = deployments.Patch(ctx, "watched", types.StrategicMergePatchType, patch, nil)
	require.NoError(t, err)
	assert.Equal(t, `mine: watched changed from web:1 to web:2 {"key":"secret"}`, <-lines)

	_, err = notifiers.Patch(ctx, "mine", types.MergePatchType, []byte(`{"spec":{"deployment":"another"}}`), nil)
	require.NoError(t, err)
	assert.Equal(t, "mine: no longer watching watched", <-lines)
	_, err = notifiers.Patch(ctx, "mine", types.MergePatchType, []byte(`{"spec":{"deployment":"watched"}}`), nil)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"mine: no longer watching another", "mine: watched has web:2"}, []string{<-lines, <-lines})
	_, err = deployments.Delete(ctx, "watched", nil)
	require.NoError(t, err)
	assert.Equal(t, "mine: watched is deleted", <-lines)
	_, err = notifiers.Delete(ctx, "mine", nil)
	require.NoError(t, err)
	assert.Equal(t, "mine: no longer watching watched", <-lines)
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NoError(t, write.Close())
}
