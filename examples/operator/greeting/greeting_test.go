package greeting

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun_GreetingLifecycle(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c := client.Connect(t, "admin")
	registered, err := controller.RegisterCRDs(ctx, c, definition, nil)
	require.NoError(t, err)
	greetings := registered[0].Namespace("default")
	configMaps := client.Resource(t, c, "configmaps").Namespace("default")

	operating, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- Run(operating, c, "default", &controller.Options{Logger: slog.New(slog.DiscardHandler)})
	}()

	_, err = greetings.Create(ctx, &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "first"}, "spec": map[string]any{"name": "world"},
	}}, nil)
	require.NoError(t, err)
	greeted, err := greetings.Wait(ctx, "first", dynamic.FieldEquals("status.text", "Hello, world"))
	require.NoError(t, err)
	assert.Equal(t, []string{"example.com/configmap"}, greeted.GetFinalizers())
	_, err = greetings.Patch(ctx, "first", types.MergePatchType, []byte(`{"spec":{"name":"moon"}}`), nil)
	require.NoError(t, err)
	_, err = greetings.Wait(ctx, "first", dynamic.FieldEquals("status.text", "Hello, moon"), dynamic.FieldEquals("status.observedGeneration", 2))
	require.NoError(t, err)
	_, err = configMaps.Wait(ctx, "first", dynamic.FieldEquals("data.text", "Hello, moon"))
	require.NoError(t, err)

	_, err = greetings.Delete(ctx, "first", nil)
	require.NoError(t, err)
	_, err = greetings.Wait(ctx, "first", dynamic.Deleted())
	require.NoError(t, err)
	_, err = configMaps.Get(ctx, "first", nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
}
