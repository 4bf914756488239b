package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The folder changes while the program runs, and so does an object that it has applied.
func TestGitops_FollowsFolderAndRevertsChanges(t *testing.T) {
	admin := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, admin)
	configMaps := client.Resource(t, admin, "configmaps").Namespace(namespace)
	folder := t.TempDir()
	write := func(name, text string) {
		manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {text: " + text + "}\n"
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(manifest), 0o600))
	}
	write("a", "one")
	write("b", "one")
	gitops := client.Program(t, namespace)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := gitops(running, "", "-folder", folder, "-interval", "100ms")
		ended <- err
	}()
	expect := func(name string, condition dynamic.WaitCondition) {
		t.Helper()
		_, err := configMaps.Wait(ctx, name, condition)
		require.NoError(t, err)
	}
	expect("a", dynamic.FieldEquals("data.text", "one"))
	expect("b", dynamic.Exists())

	_, err := configMaps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"text":"changed"}}`), nil)
	require.NoError(t, err)
	expect("a", dynamic.FieldEquals("data.text", "one"))
	write("a", "two")
	require.NoError(t, os.Remove(filepath.Join(folder, "b.yaml")))
	expect("a", dynamic.FieldEquals("data.text", "two"))
	expect("b", dynamic.Deleted())
	stop()
	assert.ErrorIs(t, <-ended, context.Canceled)
}
