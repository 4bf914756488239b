//go:build !windows

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/controller/sharding"
	"github.com/anykind/anykind/dynamic"
	testclient "github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

const namespaceEnv = "ANYKIND_EXAMPLE_SHARDED" // makes the test binary a member

func TestMain(m *testing.M) {
	if namespace := os.Getenv(namespaceEnv); namespace != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		_ = run(ctx, namespace, namespace, &sharding.Options{LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 500 * time.Millisecond})
		return
	}
	goleak.VerifyTestMain(m)
}

// TestRun_ThreeProcessesDivideGreetings starts three members, kills one, and stops the others.
func TestRun_ThreeProcessesDivideGreetings(t *testing.T) {
	kubeconfig := cluster.Kubeconfig(t)
	client := testclient.Connect(t, "admin")
	namespace := testclient.NewNamespace(t, client)
	var members []*exec.Cmd
	for range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), namespaceEnv+"="+namespace, "KUBECONFIG="+kubeconfig)
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		members = append(members, cmd)
	}
	defer func() {
		for _, cmd := range members {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	found, err := client.WaitForKinds(t.Context(), schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Greeting"})
	require.NoError(t, err)
	deleteDefinition(t, client)
	greetings := found[0].Namespace(namespace)
	configMaps := testclient.Resource(t, client, "configmaps").Namespace(namespace)
	greet := func(first int) {
		for n := first; n < first+20; n++ {
			_, err := greetings.Create(t.Context(), &unstructured.Object{Object: map[string]any{
				"metadata": map[string]any{"name": fmt.Sprint("g", n)}, "spec": map[string]any{"name": "world"},
			}}, nil)
			require.NoError(t, err)
		}
		require.Eventually(t, func() bool { return count(t, configMaps) == first+20 }, time.Minute, 100*time.Millisecond)
	}
	greet(0)
	require.NoError(t, members[0].Process.Kill())
	greet(20)
	_, err = greetings.DeleteCollection(t.Context(), nil, nil) // members remove their finalizers
	require.NoError(t, err)
	require.Eventually(t, func() bool { return count(t, greetings) == 0 }, time.Minute, 100*time.Millisecond)
	for _, cmd := range members[1:] {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		assert.NoError(t, cmd.Wait())
	}
}

// deleteDefinition deletes the definition when the test ends, and waits for its end.
func deleteDefinition(t *testing.T, client *dynamic.Client) {
	const name = "greetings.example.com"
	definitions := testclient.Resource(t, client, "customresourcedefinitions")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := definitions.Wait(ctx, name, dynamic.Deleted())
		assert.NoError(t, err)
	})
	testclient.DeleteAtEnd(t, definitions, name)
}

// count returns the number of objects, without the ConfigMap that Kubernetes puts into each namespace.
func count(t *testing.T, resource *dynamic.Resource) (n int) {
	t.Helper()
	for obj, err := range resource.List(t.Context(), nil) {
		require.NoError(t, err)
		if obj.GetName() != "kube-root-ca.crt" {
			n++
		}
	}
	return n
}
