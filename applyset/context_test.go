package applyset_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/unstructured/manifest"
)

// TestSet_ErrorsHaveContextErrorAndCause ends the ctx of a call with a cause, between two requests.
func TestSet_ErrorsHaveContextErrorAndCause(t *testing.T) {
	const secret = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"web","namespace":"shop","resourceVersion":"1",` +
		`"labels":{"applyset.kubernetes.io/id":"ID"},"annotations":{"applyset.kubernetes.io/tooling":"anykind/v1",` +
		`"applyset.kubernetes.io/contains-group-kinds":"","applyset.anykind.dev/lock":"{\"holder\":\"x\",\"id\":\"y\",\"duration\":\"1h\"}"}}}`
	const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"shop","resourceVersion":"2"}}`
	parent := applyset.Parent{Namespace: "shop", Name: "web"}
	for name, tc := range map[string]struct {
		parent string
		call   func(ctx context.Context, end func(), set *applyset.Set, objects []*manifest.Object) error
	}{
		"between two objects": {"", func(ctx context.Context, end func(), set *applyset.Set, objects []*manifest.Object) error {
			_, err := set.Apply(ctx, objects, &applyset.ApplyOptions{DryRun: true, OnEvent: func(applyset.Event) { end() }})
			return err
		}},
		"waiting for the lock": {strings.Replace(secret, "ID", parent.ID(), 1), func(ctx context.Context, end func(), set *applyset.Set, objects []*manifest.Object) error {
			time.AfterFunc(10*time.Millisecond, end)
			_, err := set.Apply(ctx, objects, nil)
			return err
		}},
		"waiting for readiness": {"", func(ctx context.Context, end func(), set *applyset.Set, objects []*manifest.Object) error {
			end()
			return set.Wait(ctx, objects, nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			server := scripted.New("/v1 secrets secret Secret\n/v1 configmaps configmap ConfigMap")
			server.Handle("GET /api/v1/namespaces/shop/secrets/web", scripted.NotFound("web"))
			if tc.parent != "" {
				server.Handle("GET /api/v1/namespaces/shop/secrets/web", scripted.JSON(tc.parent))
			}
			server.Handle("GET /api/v1/namespaces/shop/configmaps", scripted.JSON(`{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[]}`))
			server.Handle("PATCH /api/v1/namespaces/shop/configmaps/web", scripted.JSON(configMap))
			client := dynamic.New(scripted.Connect(t, server, nil), nil)
			_, err := client.Resource(t.Context(), "configmaps")
			require.NoError(t, err)
			objects, err := manifest.Decode("test", strings.NewReader(configMap))
			require.NoError(t, err)
			errStopped := errors.New("stopped")
			ctx, end := context.WithCancelCause(t.Context())
			err = tc.call(ctx, func() { end(errStopped) }, applyset.New(client, parent, nil), objects)
			require.ErrorIs(t, err, errStopped)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}
