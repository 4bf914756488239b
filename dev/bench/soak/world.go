//go:build unix

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dev/bench/internal/soak"
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
	custom                       int // its number among the custom resources, or -1
}

var builtIn = []resource{
	{"", "v1", "configmaps", "ConfigMap", -1},
	{"", "v1", "secrets", "Secret", -1},
	{"coordination.k8s.io", "v1", "leases", "Lease", -1},
	{"rbac.authorization.k8s.io", "v1", "roles", "Role", -1},
	{"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", -1},
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
	for n := range customKinds {
		w.resources = append(w.resources, resource{group, "v1", fmt.Sprintf("soak%ds", n), fmt.Sprintf("Soak%d", n), n})
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
	for _, r := range w.resources {
		if r.custom >= 0 {
			if err := w.define(ctx, r); err != nil {
				return err
			}
		}
	}
	errs := make(chan error, len(w.resources))
	for _, r := range w.resources {
		go func() { errs <- w.fill(ctx, r) }()
	}
	var failed error
	for range w.resources {
		if err := <-errs; err != nil {
			failed = err
		}
	}
	return failed
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
	_, err = definitions.Wait(ctx, r.plural+"."+r.group, dynamic.Condition("Established"))
	return err
}

func definition(r resource) *unstructured.Object {
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

// perResource is the number of objects of each resource.
func (w *world) perResource() int { return w.opts.objects / len(w.resources) }

// fill creates the missing objects of a resource.
func (w *world) fill(ctx context.Context, r resource) error {
	for n := range w.perResource() {
		if err := w.put(ctx, r, n); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) put(ctx context.Context, r resource, n int) error {
	handle, err := w.handle(ctx, r)
	if err != nil {
		return err
	}
	_, err = handle.Namespace(namespace(n)).Create(ctx, object(r, n), nil)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (w *world) handle(ctx context.Context, r resource) (*dynamic.Resource, error) {
	name := r.plural
	if r.group != "" {
		name += "." + r.version + "." + r.group
	}
	return w.client.Resource(ctx, name)
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
	handle, err := w.handle(ctx, resource{group: source.Group, version: source.Version, plural: source.Resource})
	if err != nil {
		return nil, err
	}
	if handle = handle.AllNamespaces(); source.Namespace != "" {
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
