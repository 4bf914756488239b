package change

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// env is a namespace of the sandbox for commands.
type env struct {
	client    *dynamic.Client
	namespace string
}

func newEnv(t *testing.T) *env {
	t.Helper()
	c := client.Connect(t, "admin")
	return &env{client: c, namespace: client.NewNamespace(t, c)}
}

// result is the effect of a command.
type result struct {
	stdout, stderr string
	code           int
}

// run runs a command line in the namespace.
func (e *env) run(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return e.runIn(t.Context(), t, stdin, args...)
}

func (e *env) runIn(ctx context.Context, t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return e.runWith(ctx, t, strings.NewReader(stdin), args...)
}

func (e *env) runWith(ctx context.Context, t *testing.T, stdin io.Reader, args ...string) result {
	t.Helper()
	connection := flags.NewConnection()
	connection.Kubeconfig = cluster.Kubeconfig(t)
	connection.CacheDir = t.TempDir()
	connection.FieldManager = "anyctl"
	var stdout bytes.Buffer
	r := execute(ctx, connection, stdin, &stdout, append([]string{"-n", e.namespace}, args...)...)
	r.stdout = stdout.String()
	return r
}

// execute runs a command line, and closes the connection. The result lacks the standard output.
func execute(ctx context.Context, connection *flags.Connection, stdin io.Reader, stdout io.Writer, args ...string) result {
	defer connection.Close()
	var stderr bytes.Buffer
	state := &command.State{Streams: command.Streams{In: stdin, Out: stdout, Err: &stderr}, Connection: connection}
	root := command.Root(state, &cobra.Command{Use: "anyctl"}, Commands(state)...) //nolint:contextcheck // commands get ctx from ExecuteContext
	root.SetArgs(args)
	code := exit.Report(&stderr, root.ExecuteContext(ctx))
	return result{stderr: stderr.String(), code: code}
}

// apply creates objects of a manifest in the namespace.
func (e *env) apply(t *testing.T, manifest string) {
	t.Helper()
	admin := e.client.WithDefaults(&dynamic.Defaults{Namespace: e.namespace, FieldManager: "test"})
	for found, err := range admin.ForObjects(t.Context(), unstructured.NewYAMLDecoder(strings.NewReader(manifest)).All()) {
		require.NoError(t, err)
		_, err = found.Resource.Apply(t.Context(), found.Object, &metav1.ApplyOptions{})
		require.NoError(t, err)
	}
}

// get returns the value at a path of an object.
func (e *env) get(t *testing.T, resource, name, path string) any {
	t.Helper()
	obj, err := client.Resource(t, e.client, resource).Namespace(e.namespace).Get(t.Context(), name, nil)
	require.NoError(t, err)
	fields, err := unstructured.ParsePath(path)
	require.NoError(t, err)
	value, _, err := unstructured.Get[any](obj, fields...)
	require.NoError(t, err)
	return value
}

// script writes an executable shell script and returns its path.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.sh")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\nset -e\n"+body), 0o700))
	return path
}
