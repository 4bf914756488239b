package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) {
	// A connection of client-go, whose HTTP/2 this is, may become idle after idle ones have been closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"))
}

// oldGetter is the getter that the plugin had.
func oldGetter(_ context.Context, flags *genericclioptions.ConfigFlags) genericclioptions.RESTClientGetter {
	return flags
}

// TestCommand_SameAsWithConfigFlags runs the plugin as it was and as it is.
func TestCommand_SameAsWithConfigFlags(t *testing.T) {
	admin := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, admin)
	maps := client.Resource(t, admin, "configmaps").Namespace(namespace)
	for name, app := range map[string]string{"a": "web", "b": "db"} {
		_, err := maps.Create(t.Context(), &unstructured.Object{Object: map[string]any{
			"metadata": map[string]any{"name": name, "labels": map[string]any{"app": app, "of": namespace}},
		}}, nil)
		require.NoError(t, err)
	}
	for _, c := range []struct {
		args   []string
		want   string // of the standard output; "" for that of the plugin as it was
		failed bool
	}{
		{args: []string{"cm", "-l", "app=web,of=" + namespace}, want: "configmaps/a\tapp=web,of=" + namespace + "\n"},
		{args: []string{"configmaps.v1.", "-l", "of=" + namespace}, want: "configmaps/a\tapp=web,of=" + namespace + "\nconfigmaps/b\tapp=db,of=" + namespace + "\n"},
		{args: []string{"ConfigMap/b", "ns/" + namespace}},
		{args: []string{"cm", "b"}, want: "configmaps/b\tapp=db,of=" + namespace + "\n"},
		{args: []string{"cm/b", "cm/missing"}, failed: true},
		{args: []string{"cm/b", "--context", "token"}},
		{args: []string{"secrets", "--context", "limited"}, failed: true},
		{args: []string{"cm/b", "--context", "missing"}, failed: true},
		{args: []string{"nosuchkinds"}, failed: true},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			run := func(newGetter func(context.Context, *genericclioptions.ConfigFlags) genericclioptions.RESTClientGetter) (string, error) {
				streams, _, out, _ := genericiooptions.NewTestIOStreams()
				command := newCommand(streams, newGetter)
				command.SetArgs(append(c.args, "--kubeconfig", cluster.Kubeconfig(t), "--namespace", namespace, "--cache-dir", t.TempDir()))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				err := command.ExecuteContext(ctx)
				return out.String(), err
			}
			want, wantErr := run(oldGetter)
			got, err := run(newGetter)
			assert.Equal(t, want, got)
			if c.want != "" {
				assert.Equal(t, c.want, got)
			}
			if c.failed {
				require.Error(t, wantErr)
				assert.EqualError(t, err, wantErr.Error())
				return
			}
			require.NoError(t, wantErr)
			assert.NoError(t, err)
		})
	}
}
