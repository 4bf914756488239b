//go:build unix

package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dev/bench/internal/corpus"
	"github.com/anykind/anykind/dev/bench/internal/soak"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

const (
	group       = "soak.example.com"
	customKinds = 10
	namespaces  = 4
	tierLabel   = "tier"
)

// resource is a cached resource.
type resource struct {
	group, version, plural, kind string
	custom                       int          // its number among the custom resources, or -1
	corpus                       *corpus.Kind // nil without -inventory
}

// isCluster reports whether the resource is cluster-scoped.
func (r resource) isCluster() bool { return r.corpus != nil && !r.corpus.Namespaced }

var builtIn = []resource{
	{"", "v1", "configmaps", "ConfigMap", -1, nil},
	{"", "v1", "secrets", "Secret", -1, nil},
	{"coordination.k8s.io", "v1", "leases", "Lease", -1, nil},
	{"rbac.authorization.k8s.io", "v1", "roles", "Role", -1, nil},
	{"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", -1, nil},
}

// world is the cluster of both sides, with an administrator's connection without faults.
type world struct {
	opts      *options
	conn      *transport.Conn
	client    *dynamic.Client
	resources []resource

	changes atomic.Int64 // accepted by the server
	mu      sync.Mutex
	faults  map[string]int
}

func newWorld(ctx context.Context, opts *options) (*world, error) {
	config, err := transport.Load(ctx, &transport.LoadOptions{Path: opts.kubeconfig})
	if err != nil {
		return nil, err
	}
	conn, err := transport.Open(config)
	if err != nil {
		return nil, err
	}
	w := &world{opts: opts, conn: conn, client: dynamic.New(conn, nil), faults: map[string]int{}, resources: builtIn}
	if opts.inventory {
		kinds, err := corpus.Read()
		for n, k := range kinds {
			w.resources = append(w.resources, resource{k.GVR.Group, k.GVR.Version, k.GVR.Resource, k.Kind, n, &kinds[n]})
		}
		return w, err
	}
	for n := range customKinds {
		w.resources = append(w.resources, resource{group, "v1", fmt.Sprintf("soak%ds", n), fmt.Sprintf("Soak%d", n), n, nil})
	}
	return w, nil
}

func namespace(n int) string { return fmt.Sprintf("soak-%d", n%namespaces) }

// sources returns the sources of the 35 caches: each custom resource in all namespaces, each built-in resource in each of the
// four namespaces, and each built-in resource by a label in a single namespace.
func (w *world) sources() (all []soak.Source) {
	for _, r := range w.resources {
		one := soak.Source{Group: r.group, Version: r.version, Resource: r.plural}
		if r.custom >= 0 {
			all = append(all, one)
			continue
		}
		for n := range namespaces {
			one.Namespace = namespace(n)
			all = append(all, one)
		}
		one.LabelSelector = tierLabel + "=1"
		all = append(all, one)
	}
	return all
}

// prepare creates the namespaces, the definitions and the objects.
func (w *world) prepare(ctx context.Context) error {
	for n := range namespaces {
		if err := w.create(ctx, "namespaces", &unstructured.Object{Object: map[string]any{
			"metadata": map[string]any{"name": namespace(n)},
		}}); err != nil {
			return err
		}
	}
	if err := w.each(func(r resource) error {
		if r.custom < 0 {
			return nil
		}
		return w.define(ctx, r)
	}); err != nil {
		return err
	}
	return w.each(func(r resource) error { return w.fill(ctx, r) })
}

// each calls do for each resource, for at most 16 at a time, and returns the first error.
func (w *world) each(do func(resource) error) error {
	var group errgroup.Group
	group.SetLimit(16)
	for _, r := range w.resources {
		group.Go(func() error { return do(r) })
	}
	return group.Wait()
}

// define creates a custom resource's definition and waits until the server serves it.
func (w *world) define(ctx context.Context, r resource) error {
	if err := w.create(ctx, "customresourcedefinitions", definition(r)); err != nil {
		return err
	}
	definitions, err := w.client.Resource(ctx, "customresourcedefinitions")
	if err != nil {
		return err
	}
	if _, err = definitions.Wait(ctx, r.plural+"."+r.group, dynamic.Condition("Established")); err != nil {
		return err
	}
	for { // an established definition is served some time later
		_, err := w.handle(r, 0).ListPage(ctx, &metav1.ListOptions{Limit: 1})
		if !apierrors.IsNotFound(err) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func definition(r resource) *unstructured.Object {
	if r.corpus != nil {
		return &unstructured.Object{Object: maps.Clone(r.corpus.Definition)}
	}
	return &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": r.plural + "." + r.group},
		"spec": map[string]any{
			"group": r.group, "scope": "Namespaced",
			"names": map[string]any{"plural": r.plural, "kind": r.kind},
			"versions": []any{map[string]any{
				"name": r.version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

// objectsOf returns the number of objects of a resource. With -inventory the built-in resources have half of all objects.
func (w *world) objectsOf(r resource) int {
	switch {
	case !w.opts.inventory:
		return w.opts.objects / len(w.resources)
	case r.custom < 0:
		return w.opts.objects / 2 / len(builtIn)
	default:
		return w.opts.objects / 2 / (len(w.resources) - len(builtIn))
	}
}

// fill creates the missing objects of a resource.
func (w *world) fill(ctx context.Context, r resource) error {
	for n := range w.objectsOf(r) {
		if err := w.put(ctx, r, n); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) put(ctx context.Context, r resource, n int) error {
	_, err := w.handle(r, n).Create(ctx, object(r, n), nil)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// handle returns a handle on a resource, in the namespace of the nth object.
func (w *world) handle(r resource, n int) *dynamic.Resource {
	handle := w.client.ForAPIResource(&discovery.Resource{
		GVR:        schema.GroupVersionResource{Group: r.group, Version: r.version, Resource: r.plural},
		GVK:        schema.GroupVersionKind{Group: r.group, Version: r.version, Kind: r.kind},
		Namespaced: !r.isCluster(),
	})
	if r.isCluster() {
		return handle
	}
	return handle.Namespace(namespace(n))
}

// create creates an object unless it exists.
func (w *world) create(ctx context.Context, name string, obj *unstructured.Object) error {
	handle, err := w.client.Resource(ctx, name)
	if err != nil {
		return err
	}
	if obj.GetNamespace() != "" {
		handle = handle.Namespace(obj.GetNamespace())
	}
	_, err = handle.Create(ctx, obj, nil)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func objectName(n int) string { return fmt.Sprintf("object-%05d", n) }

// object returns an object of about a kilobyte.
func object(r resource, n int) *unstructured.Object {
	obj := &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{
			"name": objectName(n), "namespace": namespace(n),
			"labels":      map[string]any{tierLabel: fmt.Sprint(n % 3), "app": fmt.Sprintf("app-%d", n%20)},
			"annotations": map[string]any{"text": fmt.Sprintf("%0512d", n)},
		},
	}}
	if r.isCluster() {
		_, _ = unstructured.Delete(obj, "metadata", "namespace")
	}
	if r.corpus != nil && len(r.corpus.Examples) > 0 {
		maps.Copy(obj.Object, r.corpus.Examples[n%len(r.corpus.Examples)])
		obj.Object["apiVersion"] = r.group + "/" + r.version
		return obj
	}
	switch r.kind {
	case "ConfigMap":
		obj.Object["data"] = map[string]any{"key": fmt.Sprintf("%0256d", n)}
	case "NetworkPolicy":
		obj.Object["spec"] = map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"app": fmt.Sprintf("app-%d", n%20)}}}
	case "Role":
		obj.Object["rules"] = []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}}
	case "Lease":
		obj.Object["spec"] = map[string]any{"holderIdentity": fmt.Sprint(n), "leaseDurationSeconds": int64(60)}
	case "Secret":
		obj.Object["stringData"] = map[string]any{"key": fmt.Sprintf("%0256d", n)}
	default:
		obj.Object["spec"] = map[string]any{"size": int64(n), "items": []any{map[string]any{"name": "a", "text": fmt.Sprintf("%0128d", n)}, map[string]any{"name": "b"}}}
	}
	return obj
}

// list returns the resourceVersions of a source's objects on the server.
func (w *world) list(ctx context.Context, source soak.Source) (map[string]string, error) {
	handle := w.handle(resource{group: source.Group, version: source.Version, plural: source.Resource}, 0).AllNamespaces()
	if source.Namespace != "" {
		handle = handle.Namespace(source.Namespace)
	}
	versions := map[string]string{}
	for object, err := range handle.List(ctx, &metav1.ListOptions{LabelSelector: source.LabelSelector}) {
		if err != nil {
			return nil, err
		}
		versions[object.GetNamespace()+"/"+object.GetName()] = object.GetResourceVersion()
	}
	return versions, nil
}
