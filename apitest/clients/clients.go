// Package clients provides the clients of client-go and controller-runtime for an API server in memory, in place of their fakes.
//
//	c := clients.New(t, nil, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}})
//	controller := NewController(c.Kubernetes) // or c.Dynamic, c.Metadata, c.Client
//	…
//	c.Actions() // as of client-go's fakes
//
// The server of package apitest responds: objects are validated and defaulted, writes conflict, and watches resume. docs/APITEST.md
// compares it with the fakes and lists the changes for a moved test.
package clients

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/clustercopy"
	"github.com/anykind/anykind/unstructured"
)

// Options configure New. The zero value is for built-in kinds.
type Options struct {
	// Scheme has the types of the objects and of Client. The default is client-go's scheme.
	Scheme *runtime.Scheme
	// Stored stores the objects as they are, as fakes do, instead of creating them; see Copy in [apitest.Options]. They may be
	// incomplete, and keep their UID, timestamps and status. Writes to them are validated.
	Stored bool
	// Server configures the server: CustomResourceDefinitions in Objects, faults, controllers. It is always in memory.
	Server apitest.Options
}

// Clients are clients of a server with all rights. They have no rate limit. Informer factories are client-go's own:
// informers.NewSharedInformerFactory(c.Kubernetes, 0).
type Clients struct {
	Server     *apitest.Server
	Config     *rest.Config // for further clients, such as generated clientsets
	Kubernetes kubernetes.Interface
	Dynamic    dynamic.Interface
	Metadata   metadata.Interface
	Client     client.WithWatch

	scheme *runtime.Scheme
}

// New starts a server with opts.Server.Objects and then objects, lists included. It closes the server at the end of the test. nil
// opts mean defaults. Missing namespaces of objects are created. An invalid object and an unknown kind fail the test at once.
//
// Without Options.Stored the server sets UID, resourceVersion and timestamps of objects. An object with a deletionTimestamp then
// needs a finalizer: it is created and deleted.
func New(t testing.TB, opts *Options, objects ...runtime.Object) *Clients {
	t.Helper()
	c, err := start(t, opts, objects)
	if err != nil {
		t.Fatalf("start clients of an API server in memory: %v", err)
	}
	return c
}

func start(t testing.TB, opts *Options, objects []runtime.Object) (*Clients, error) {
	t.Helper()
	if opts == nil {
		opts = &Options{}
	}
	c := &Clients{scheme: opts.Scheme}
	if c.scheme == nil {
		c.scheme = scheme.Scheme
	}
	seeds, err := c.convert(objects)
	if err != nil {
		return nil, err
	}
	server := opts.Server
	server.InMemory = true
	if opts.Stored {
		if server.Copy, err = withObjects(server.Copy, seeds); err != nil {
			return nil, err
		}
	}
	c.Server = apitest.NewServer(t, &server)
	c.Config = &rest.Config{Host: c.Server.URL, Transport: c.Server.HTTPClient().Transport, QPS: -1}
	if err := c.connect(); err != nil {
		return nil, err
	}
	if opts.Stored {
		return c, nil
	}
	return c, c.create(t, seeds)
}

// withObjects returns a copy of a cluster, or of none, with further objects.
func withObjects(cluster *clustercopy.Copy, objects []*unstructured.Object) (*clustercopy.Copy, error) {
	added, err := clustercopy.Of(objects...)
	if err != nil || cluster == nil {
		return added, err
	}
	both := *cluster
	both.Objects = slices.Concat(cluster.Objects, added.Objects)
	return &both, nil
}

// connect makes the clients.
func (c *Clients) connect() (err error) {
	if c.Kubernetes, err = kubernetes.NewForConfig(c.Config); err != nil {
		return err
	}
	if c.Dynamic, err = dynamic.NewForConfig(c.Config); err != nil {
		return err
	}
	if c.Metadata, err = metadata.NewForConfig(c.Config); err != nil {
		return err
	}
	c.Client, err = client.NewWithWatch(c.Config, client.Options{Scheme: c.scheme})
	return err
}

// convert returns the objects, and the items of lists, without Go types.
func (c *Clients) convert(objects []runtime.Object) ([]*unstructured.Object, error) {
	var converted []*unstructured.Object
	for _, obj := range objects {
		if meta.IsListType(obj) {
			items, err := meta.ExtractList(obj)
			if err != nil {
				return nil, fmt.Errorf("read the items of %T: %w", obj, err)
			}
			rest, err := c.convert(items)
			if err != nil {
				return nil, err
			}
			converted = append(converted, rest...)
			continue
		}
		one, err := c.convertOne(obj)
		if err != nil {
			return nil, err
		}
		converted = append(converted, one)
	}
	return converted, nil
}

func (c *Clients) convertOne(obj runtime.Object) (*unstructured.Object, error) {
	kinds, _, err := c.scheme.ObjectKinds(obj)
	if err != nil {
		return nil, fmt.Errorf("kind of %T (add its types to Options.Scheme): %w", obj, err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", obj, err)
	}
	converted := &unstructured.Object{Object: content}
	converted.SetGroupVersionKind(kinds[0])
	converted.SetResourceVersion("")
	return converted, nil
}

// create creates seeds. It deletes seeds with a deletionTimestamp.
func (c *Clients) create(t testing.TB, seeds []*unstructured.Object) error {
	t.Helper()
	var deleted []*unstructured.Object
	for _, obj := range seeds {
		if obj.GetDeletionTimestamp() != nil {
			if len(obj.GetFinalizers()) == 0 {
				return fmt.Errorf("create %s %q: it has a deletionTimestamp and no finalizer (a server would have removed it)", obj.GetKind(), obj.GetName())
			}
			obj.SetDeletionTimestamp(nil)
			deleted = append(deleted, obj)
		}
	}
	if err := c.Server.Create(t.Context(), seeds...); err != nil {
		return err
	}
	if len(deleted) == 0 {
		return nil
	}
	config := rest.CopyConfig(c.Config)
	config.UserAgent = setupAgent
	deleter, err := client.New(config, client.Options{Scheme: c.scheme})
	if err != nil {
		return err
	}
	for _, obj := range deleted {
		if err := deleter.Delete(t.Context(), obj); err != nil {
			return err
		}
	}
	return nil
}

// setupAgent is the User-Agent of the requests of New. Actions omits them.
const setupAgent = "apitest-setup"
