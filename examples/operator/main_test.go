package main

import (
	"context"
	"log/slog"
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryGreetingHasItsConfigMapAndItsStatusUntilItGoes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cfg, err := transport.Load(ctx, &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	client, err := dynamic.Connect(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	registered, err := controller.Register(ctx, client, definition, nil)
	require.NoError(t, err)
	greetings := registered[0].In("default")
	configMaps, err := client.Resource(ctx, "configmaps")
	require.NoError(t, err)
	configMaps = configMaps.In("default")

	operating, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- operate(operating, client, "default", &controller.Options{Logger: slog.New(slog.DiscardHandler)})
	}()

	_, err = greetings.Create(ctx, &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "first"}, "spec": map[string]any{"name": "world"},
	}}, nil)
	require.NoError(t, err)
	greeted, err := greetings.Wait(ctx, "first", dynamic.Field("status.text", "Hello, world"))
	require.NoError(t, err)
	assert.Equal(t, []string{"example.com/configmap"}, greeted.GetFinalizers())
	_, err = greetings.Patch(ctx, "first", types.MergePatchType, []byte(`{"spec":{"name":"moon"}}`), nil)
	require.NoError(t, err)
	_, err = greetings.Wait(ctx, "first", dynamic.Field("status.text", "Hello, moon"), dynamic.Field("status.observedGeneration", 2))
	require.NoError(t, err)
	_, err = configMaps.Wait(ctx, "first", dynamic.Field("data.text", "Hello, moon"))
	require.NoError(t, err)

	_, err = greetings.Delete(ctx, "first", nil)
	require.NoError(t, err)
	_, err = greetings.Wait(ctx, "first", dynamic.Gone())
	require.NoError(t, err)
	_, err = configMaps.Get(ctx, "first", nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
}
