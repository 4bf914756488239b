package apitest

import (
	"context"
	"iter"
	"os"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// KubeconfigVariable names the environment variable that chooses the server of [NewTarget]: the path of a kubeconfig of a real API
// server whose user may do everything. Without it, the server is apitest. KUBECONFIG is not read: it may be a cluster in use.
const KubeconfigVariable = "APITEST_KUBECONFIG"

// API is a server as a test sees it: a [Server], or a [Target] on either server.
type API interface {
	Client() *dynamic.Client
	Config() *transport.Config
	Kubeconfig(t testing.TB) string
}

// Target is the server of a test that also runs on a real API server. See [NewTarget].
type Target struct {
	server     *Server // nil for a real server
	client     *dynamic.Client
	config     *transport.Config
	kubeconfig string
	namespace  string
}

// NewTarget returns apitest or, with [KubeconfigVariable], a real API server, with a new namespace for the test. The namespace is
// deleted at the end.
//
// opts.Objects are applied in their order, on either server by requests: namespaced objects without a namespace in that of the test,
// and without their status. Cluster-scoped objects stay on a real server, because parallel tests may share them. A real server has
// its own controllers, admission and authorization. On it, the test is skipped if opts needs apitest: Faults, Mutate, Validate,
// Users, Streams, Now, Seed or InMemory.
func NewTarget(t testing.TB, opts *Options) *Target {
	t.Helper()
	var own Options
	if opts != nil {
		own = *opts
	}
	objects := own.Objects
	own.Objects = nil
	target := &Target{kubeconfig: os.Getenv(KubeconfigVariable)}
	if target.kubeconfig == "" {
		target.server = NewServer(t, &own)
		target.client = target.server.Client()
	} else {
		if own.needsApitest() {
			t.Skipf("the test needs apitest: %s is set, and Options has faults, admission functions, users, streams, a clock or a seed", KubeconfigVariable)
		}
		if err := target.connect(t); err != nil {
			t.Fatalf("connect to the server of %s: %v", KubeconfigVariable, err)
		}
	}
	if err := target.createNamespace(t); err != nil {
		t.Fatalf("create a namespace for the test: %v", err)
	}
	if err := target.apply(t.Context(), objects); err != nil {
		t.Fatalf("apply Options.Objects: %v", err)
	}
	return target
}

// needsApitest reports whether options have an effect that a real server cannot have.
func (o *Options) needsApitest() bool {
	return len(o.Faults) > 0 || len(o.Mutate) > 0 || len(o.Validate) > 0 || len(o.Users) > 0 || !reflect.ValueOf(o.Streams).IsZero() || o.Now != nil || o.Seed != 0 || o.InMemory
}

func (c *Target) connect(t testing.TB) (err error) {
	if c.config, err = transport.Load(t.Context(), &transport.LoadOptions{Path: c.kubeconfig}); err != nil {
		return err
	}
	if c.client, err = dynamic.Connect(t.Context(), c.config); err != nil {
		return err
	}
	t.Cleanup(c.client.Close)
	return nil
}

func (c *Target) createNamespace(t testing.TB) error {
	const cleanupTimeout = time.Minute
	namespaces, err := c.client.Resource(t.Context(), "namespaces")
	if err != nil {
		return err
	}
	created, err := namespaces.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"generateName": "test-"}}}, nil)
	if err != nil {
		return err
	}
	c.namespace = created.GetName()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanupTimeout)
		defer cancel()
		if _, err := namespaces.Delete(ctx, c.namespace, nil); err != nil {
			t.Errorf("delete the namespace of the test: %v", err)
		}
	})
	return nil
}

func (c *Target) apply(ctx context.Context, objects []*unstructured.Object) error {
	var copies iter.Seq2[*unstructured.Object, error] = func(yield func(*unstructured.Object, error) bool) {
		for _, obj := range objects {
			if !yield(obj.DeepCopy(), nil) {
				return
			}
		}
	}
	for obj, err := range c.client.ForObjects(ctx, copies) {
		if err != nil {
			return err
		}
		resource := obj.Resource
		if resource.APIResource().Namespaced && obj.Object.GetNamespace() == "" {
			resource = resource.Namespace(c.namespace)
		}
		delete(obj.Object.Object, "status")
		if _, err := resource.Apply(ctx, obj.Object, &metav1.ApplyOptions{FieldManager: "apitest", Force: true}); err != nil {
			return err
		}
	}
	return nil
}

// Client returns a client with all rights.
func (c *Target) Client() *dynamic.Client { return c.client }

// Config returns a configuration with all rights.
func (c *Target) Config() *transport.Config {
	if c.server != nil {
		return c.server.Config()
	}
	config := *c.config
	return &config
}

// Kubeconfig returns the path of a kubeconfig with all rights.
func (c *Target) Kubeconfig(t testing.TB) string {
	t.Helper()
	if c.server != nil {
		return c.server.Kubeconfig(t)
	}
	return c.kubeconfig
}

// Namespace returns the namespace of the test.
func (c *Target) Namespace() string { return c.namespace }

// Apitest returns the Server, for faults, the clock and the history. It skips the test on a real server.
func (c *Target) Apitest(t testing.TB) *Server {
	t.Helper()
	if c.server == nil {
		t.Skipf("the test needs apitest: %s is set", KubeconfigVariable)
	}
	return c.server
}
