package apitest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

var _ = []apitest.API{(*apitest.Server)(nil), (*apitest.Target)(nil)}

// skippedT records a skip and ends the goroutine of the test.
type skippedT struct {
	testing.TB
	skipped bool
}

func (s *skippedT) Skipf(string, ...any) {
	s.skipped = true
	panic(s)
}

// isSkipped reports whether f skips its test.
func isSkipped(t *testing.T, f func(t testing.TB)) bool {
	t.Helper()
	recorder := &skippedT{TB: t}
	func() {
		defer func() { _ = recover() }()
		f(recorder)
	}()
	return recorder.skipped
}

func TestNewTarget_EitherServer(t *testing.T) {
	for _, name := range []string{"apitest", "real server"} {
		t.Run(name, func(t *testing.T) {
			isReal := name == "real server"
			t.Setenv(apitest.KubeconfigVariable, "")
			if isReal {
				t.Setenv(apitest.KubeconfigVariable, cluster.Kubeconfig(t))
			}
			namespace := ""
			t.Run("use", func(t *testing.T) {
				definition := object(t, widgetDefinition)
				widget := &unstructured.Object{Object: map[string]any{
					"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"size": int64(1)},
				}}
				target := apitest.NewTarget(t, &apitest.Options{Objects: []*unstructured.Object{definition, widget}})
				namespace = target.Namespace()
				assert.Empty(t, widget.GetNamespace(), "the given objects are not modified")
				for _, connect := range map[string]func() (*transport.Config, error){
					"Config": func() (*transport.Config, error) { return target.Config(), nil },
					"Kubeconfig": func() (*transport.Config, error) {
						return transport.Load(t.Context(), &transport.LoadOptions{Path: target.Kubeconfig(t)})
					},
				} {
					cfg, err := connect()
					require.NoError(t, err)
					connected, err := dynamic.Connect(t.Context(), cfg)
					require.NoError(t, err)
					defer connected.Close()
					got, err := handle(t, connected, "widgets.shop.example.com").Namespace(namespace).Get(t.Context(), "a", nil)
					require.NoError(t, err)
					assert.Equal(t, namespace, got.GetNamespace())
				}
				assert.NotEqual(t, namespace, apitest.NewTarget(t, nil).Namespace())
				assert.Equal(t, isReal, isSkipped(t, func(t testing.TB) { target.Apitest(t) }))
				assert.Equal(t, isReal, isSkipped(t, func(t testing.TB) { apitest.NewTarget(t, &apitest.Options{Seed: 1}) }))
			})
			if isReal {
				target := apitest.NewTarget(t, nil)
				definitions, err := target.Client().Resource(t.Context(), "customresourcedefinitions")
				require.NoError(t, err)
				client.DeleteAtEnd(t, definitions, "widgets.shop.example.com") // other tests count the kinds of the server
				namespaces, err := target.Client().Resource(t.Context(), "namespaces")
				require.NoError(t, err)
				left, err := namespaces.Get(t.Context(), namespace, nil)
				assert.True(t, apierrors.IsNotFound(err) || err == nil && left.GetDeletionTimestamp() != nil, "%v", err)
			}
		})
	}
}
