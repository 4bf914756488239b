// Package client provides tests with a client of the sandbox's API server, and with namespaces.
//
//	c := client.Connect(t, "admin")
//	pods := client.Resource(t, c, "pods").Namespace(client.NewNamespace(t, c))
//
// It is separate from package cluster, because tests of packages below dynamic use package cluster. With ANYKIND_PROTOBUF=1 the
// clients request protobuf, so that all tests on the sandbox can be repeated with it.
package client

import (
	"context"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// cleanupTimeout bounds the removal of an object. Controllers may just have been restarted.
const cleanupTimeout = 3 * time.Minute

// Connect returns a client for a context of the sandbox's kubeconfig: "admin", "token" or "limited". The client is closed when
// the test ends.
func Connect(t testing.TB, kubeContext string, configure ...func(*transport.Config)) *dynamic.Client {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: kubeContext})
	if err != nil {
		t.Fatalf("load the sandbox's kubeconfig: %v", err)
	}
	cfg.Protobuf = os.Getenv("ANYKIND_PROTOBUF") == "1"
	for _, set := range configure {
		set(cfg)
	}
	c, err := dynamic.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatalf("connect to the sandbox: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

// Resource returns a handle on the named resource.
func Resource(t testing.TB, c *dynamic.Client, name string) *dynamic.Resource {
	t.Helper()
	resource, err := c.Resource(t.Context(), name)
	if err != nil {
		t.Fatalf("resource %s: %v", name, err)
	}
	return resource
}

// NewNamespace creates a namespace and returns its name. The namespace and its objects are deleted when the test ends.
func NewNamespace(t testing.TB, c *dynamic.Client) string {
	t.Helper()
	name := NewKeptNamespace(t, c)
	DeleteAtEnd(t, Resource(t, c, "namespaces"), name)
	return name
}

// NewKeptNamespace creates a namespace and returns its name. It stays until the sandbox ends: the deletion of a namespace costs
// the server and the controllers about as much as a hundred requests.
func NewKeptNamespace(t testing.TB, c *dynamic.Client) string {
	t.Helper()
	namespaces := Resource(t, c, "namespaces")
	created, err := namespaces.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"generateName": "test-"},
	}}, nil)
	if err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	return created.GetName()
}

// DeleteAtEnd deletes an object when the test ends, if it still exists.
func DeleteAtEnd(t testing.TB, resource *dynamic.Resource, name string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanupTimeout)
		defer cancel()
		if _, err := resource.Delete(ctx, name, nil); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete %s %s: %v", resource, name, err)
		}
	})
}

// Send returns a function for [cluster.Define] that sends requests over a connection.
func Send(conn *transport.Conn) cluster.SendFunc {
	return func(ctx context.Context, method, path, body string) (string, error) {
		response, err := conn.Do(ctx, &transport.Request{Method: method, Path: path, Body: []byte(body), Header: http.Header{
			"Content-Type": {"application/json"},
			"Accept":       {"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"},
		}})
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return string(text), err
	}
}
