//go:build unix

package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dev/bench/internal/corpus"
	"github.com/anykind/anykind/dev/bench/internal/library"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

const (
	writers        = 16
	namespaces     = 20
	subtreeObjects = 50
)

// world has the objects on the server.
type world struct {
	client *dynamic.Client
	kinds  []corpus.Kind
	count  int
	root   []string // the arguments of the subtree
}

type fields = map[string]any

var (
	pods        = &discovery.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespaced: true}
	configMaps  = &discovery.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespaced: true}
	secrets     = &discovery.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Namespaced: true}
	deployments = &discovery.Resource{
		GVR: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespaced: true,
	}
)

// newWorld creates the namespaces and the definitions.
func newWorld(ctx context.Context, s *settings) (*world, error) {
	cfg, err := transport.Load(ctx, &transport.LoadOptions{Path: s.kubeconfig})
	if err != nil {
		return nil, err
	}
	client, err := dynamic.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	w := &world{client: client, count: s.objects}
	if w.kinds, err = corpus.Read(); err != nil {
		return nil, err
	}
	if len(w.kinds) < s.kinds {
		return nil, fmt.Errorf("the corpus has %d kinds, want %d", len(w.kinds), s.kinds)
	}
	w.kinds = w.kinds[:s.kinds]
	for n := range namespaces {
		if err := w.create(ctx, "v1", "Namespace", fields{"metadata": fields{"name": namespace(n)}}); err != nil {
			return nil, err
		}
	}
	names := make([]string, len(w.kinds))
	var group errgroup.Group
	group.SetLimit(writers)
	for i, kind := range w.kinds {
		names[i] = kind.GVR.Resource + "." + kind.GVR.Group
		group.Go(func() error {
			return w.create(ctx, "apiextensions.k8s.io/v1", "CustomResourceDefinition", kind.Definition)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	_, err = client.WaitForResources(ctx, names...)
	return w, err
}

func namespace(n int) string { return fmt.Sprintf("allkinds-%d", n%namespaces) }

// create creates an object unless it exists.
func (w *world) create(ctx context.Context, apiVersion, kind string, obj fields) error {
	obj = maps.Clone(obj)
	obj["apiVersion"] = apiVersion
	obj["kind"] = kind
	resource, err := w.client.ForObject(ctx, &unstructured.Object{Object: obj})
	if err != nil {
		return err
	}
	_, err = resource.Create(ctx, &unstructured.Object{Object: obj}, nil)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// fill creates the objects.
func (w *world) fill(ctx context.Context) error {
	if err := w.createSubtree(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range w.count - subtreeObjects - 1 {
		group.Go(func() error {
			resource, obj := w.object(i)
			_, err := w.put(ctx, resource, namespace(i/20), fmt.Sprintf("object-%d", i), obj)
			return err
		})
	}
	return group.Wait()
}

func (w *world) put(ctx context.Context, resource *discovery.Resource, namespace, name string, content fields, owners ...any) (*unstructured.Object, error) {
	obj := &unstructured.Object{Object: maps.Clone(content)}
	obj.Object["metadata"] = fields{"name": name, "labels": fields{"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "bench"}, "ownerReferences": owners}
	handle := w.client.ForAPIResource(resource)
	if resource.Namespaced {
		handle = handle.Namespace(namespace)
	}
	return handle.Create(ctx, obj, nil)
}

// createSubtree creates a ConfigMap with 5 dependents, each with 9 Pods.
func (w *world) createSubtree(ctx context.Context) error {
	owner := func(obj *unstructured.Object) any {
		return fields{"apiVersion": "v1", "kind": "ConfigMap", "name": obj.GetName(), "uid": string(obj.GetUID())}
	}
	root, err := w.put(ctx, configMaps, namespace(0), "root", fields{})
	if err != nil {
		return err
	}
	w.root = []string{"", "ConfigMap", namespace(0), "root", string(root.GetUID())}
	for i := range 5 {
		branch, err := w.put(ctx, configMaps, namespace(0), fmt.Sprintf("branch-%d", i), fields{}, owner(root))
		if err != nil {
			return err
		}
		for j := range 9 {
			if _, err := w.put(ctx, pods, namespace(0), fmt.Sprintf("leaf-%d-%d", i, j), fields{"spec": podSpec(i)}, owner(branch)); err != nil {
				return err
			}
		}
	}
	return nil
}

// object returns the i-th object. Of twenty objects nine are pods, seven custom resources, two config maps, and the rest a secret and a
// deployment.
func (w *world) object(i int) (*discovery.Resource, fields) {
	rng := rand.New(rand.NewPCG(uint64(i), 21)) //nolint:gosec // the same objects in every run
	switch nth := i % 20; {
	case nth < 9:
		return pods, fields{"spec": podSpec(i / 5)}
	case nth < 16:
		number := i/20*7 + nth - 9
		kind := w.kinds[number%len(w.kinds)]
		obj := fields{"spec": fields{"text": fmt.Sprintf("%0128d", i)}}
		if len(kind.Examples) > 0 {
			obj = kind.Examples[number/len(w.kinds)%len(kind.Examples)]
		}
		obj = maps.Clone(obj)
		gvk := kind.GVR.GroupVersion().WithKind(kind.Kind)
		obj["apiVersion"] = gvk.GroupVersion().String()
		obj["kind"] = gvk.Kind
		return &discovery.Resource{GVR: kind.GVR, GVK: gvk, Namespaced: kind.Namespaced}, obj
	case nth < 18:
		var lines strings.Builder
		for n := range 5 + rng.IntN(60) {
			fmt.Fprintf(&lines, "setting.%d = %d\n", n, rng.IntN(1_000_000))
		}
		return configMaps, fields{"data": fields{"server.properties": lines.String()}}
	case nth < 19:
		random := make([]byte, 200+rng.IntN(2000)) // a token or a certificate: incompressible
		for n := range random {
			random[n] = byte(rng.Uint32())
		}
		return secrets, fields{"data": fields{"token": random}}
	default:
		match := fields{"workload": fmt.Sprint(i)}
		return deployments, fields{"spec": fields{
			"replicas": 2, "selector": fields{"matchLabels": match}, "template": fields{"metadata": fields{"labels": match}, "spec": podSpec(i)},
		}}
	}
}

// podSpec returns the spec of a workload's pods.
func podSpec(workload int) fields {
	rng := rand.New(rand.NewPCG(uint64(workload), 5)) //nolint:gosec // the same objects in every run
	var containers []any
	for c := range 1 + rng.IntN(3) {
		var env []any
		for e := range rng.IntN(12) {
			env = append(env, fields{"name": fmt.Sprintf("SETTING_%d", e), "value": fmt.Sprintf("https://service-%d.shop.svc:8443/v%d", rng.IntN(1000), rng.IntN(4))})
		}
		containers = append(containers, fields{
			"name": fmt.Sprintf("container-%d", c), "image": fmt.Sprintf("registry.example.com/shop/service-%d:1.%d.%d", workload, rng.IntN(30), rng.IntN(10)),
			"env": env, "ports": []any{fields{"containerPort": 8080 + c}},
			"resources": fields{"requests": fields{"cpu": fmt.Sprintf("%dm", 10*(1+rng.IntN(50))), "memory": fmt.Sprintf("%dMi", 32*(1+rng.IntN(16)))}},
		})
	}
	return fields{"containers": containers, "serviceAccountName": fmt.Sprintf("workload-%d", workload)}
}

// change changes pods at a rate a second, as far as the server can.
func (w *world) change(ctx context.Context, rate, seconds int) error {
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4 * writers)
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return group.Wait()
		}
		i := rand.IntN(w.count/20-10)*20 + rand.IntN(9) //nolint:gosec // any pod
		group.Go(func() error {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, library.Changed, time.Now().UnixNano())
			_, err := w.client.ForAPIResource(pods).Namespace(namespace(i/20)).Patch(ctx, fmt.Sprintf("object-%d", i), types.MergePatchType, patch, nil)
			return err
		})
	}
	return group.Wait()
}
