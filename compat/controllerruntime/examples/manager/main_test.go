package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/anykind/anykind/compat/restconfig"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

// TestManager_KeepsCopies runs the manager over anykind's login and client-go's configuration of it.
func TestManager_KeepsCopies(t *testing.T) {
	admin := client.Connect(t, "admin")
	configMaps := client.Resource(t, admin, "configmaps").Namespace(client.NewNamespace(t, admin))
	ctx, stop := context.WithCancel(t.Context())
	skip := true // the name may have been used by an earlier run of the test
	options := ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
	}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, restconfig.FromConn(configMaps.Conn()), options) }()
	defer func() {
		stop()
		assert.NoError(t, <-ended)
	}()

	original, err := configMaps.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "original", "labels": map[string]any{"copy": "copied"}}, "data": map[string]any{"k": "1"},
	}}, nil)
	require.NoError(t, err)
	hasData := func(want string) func() bool {
		return func() bool {
			copied, err := configMaps.Get(t.Context(), "copied", nil)
			if err != nil {
				return false
			}
			got, _, err := unstructured.Get[string](copied, "data", "k")
			return err == nil && got == want && copied.GetOwnerReferences()[0].UID == original.GetUID()
		}
	}
	require.Eventually(t, hasData("1"), 2*time.Minute, 10*time.Millisecond)
	require.NoError(t, unstructured.Set(original, "2", "data", "k"))
	_, err = configMaps.Update(t.Context(), original, nil)
	require.NoError(t, err)
	require.Eventually(t, hasData("2"), 2*time.Minute, 10*time.Millisecond)
	_, err = configMaps.Delete(t.Context(), "copied", nil)
	require.NoError(t, err)
	require.Eventually(t, hasData("2"), 2*time.Minute, 10*time.Millisecond)
}
