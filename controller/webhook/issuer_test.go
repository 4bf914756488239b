package webhook_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/controller/webhook"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

// TestIssuer_WatchesSecret damages and deletes the Secret while an issuer runs. Without a watch, the issuer takes a minute each time.
func TestIssuer_WatchesSecret(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	secrets := controllertest.Resource(t, client, "secrets").Namespace(namespace)
	secret := types.NamespacedName{Namespace: namespace, Name: "certificate"}
	ctx, cancel := context.WithCancel(retry.WithRandom(t.Context(), func(time.Duration) time.Duration { return 0 }, nil))
	ended := make(chan error, 1)
	go func() { ended <- webhook.NewIssuer(client, secret, []string{"127.0.0.1"}, nil).Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.ErrorIs(t, <-ended, context.Canceled)
	})

	limited, stop := context.WithTimeout(t.Context(), controllertest.Timeout/2)
	defer stop()
	isComplete := dynamic.Matches("the Secret is complete", func(obj *unstructured.Object) (bool, error) {
		data, _, err := unstructured.Get[map[string]any](obj, "data")
		return len(data) == 4 && data["ca.key"] != "", err
	})
	_, err := secrets.Wait(limited, secret.Name, isComplete)
	require.NoError(t, err)
	_, err = secrets.Patch(limited, secret.Name, types.MergePatchType, []byte(`{"data":{"ca.key":null}}`), nil)
	require.NoError(t, err)
	_, err = secrets.Wait(limited, secret.Name, isComplete)
	require.NoError(t, err)
	_, err = secrets.Delete(limited, secret.Name, nil)
	require.NoError(t, err)
	_, err = secrets.Wait(limited, secret.Name, isComplete)
	require.NoError(t, err)
}
