package published

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest/simulate/internal/testing/broken"
	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

const (
	namespace = "default"
	name      = "main" // of the Cluster and its StatefulSet

	clusters     = "clusters.example.com"
	statefulSets = "statefulsets.apps"
	pods         = "pods"
	claims       = "persistentvolumeclaims"
	configMaps   = "configmaps"
)

// clusterLabel is the label of all objects of a Cluster. Its value is the name of the Cluster.
const clusterLabel = "example.com/cluster"

// operator has the handles and the caches of an operator.
type operator struct {
	isCorrected bool
	handles     map[string]*dynamic.Resource
	caches      map[string]*cache.Cache[unstructured.Object] // of Clusters and of the kinds of the Defect
	running     []*cache.Cache[unstructured.Object]          // the same, in order
}

func newOperator(ctx context.Context, client *dynamic.Client, kinds []string) (*operator, error) {
	o := &operator{handles: map[string]*dynamic.Resource{}, caches: map[string]*cache.Cache[unstructured.Object]{}}
	for _, resource := range []string{clusters, statefulSets, pods, claims, configMaps} {
		handle, err := client.Resource(ctx, resource)
		if err != nil {
			return nil, err
		}
		o.handles[resource] = handle.Namespace(namespace)
	}
	for _, resource := range append([]string{clusters}, kinds...) {
		c := cache.New(informer{o.handles[resource]}, (*cache.Options[unstructured.Object])(nil))
		o.caches[resource] = c
		o.running = append(o.running, c)
	}
	return o, nil
}

// run reconciles the Cluster after each change of an object in the caches.
func (o *operator) run(ctx context.Context, reconcile func(context.Context, *operator, *unstructured.Object) (time.Duration, error)) error {
	opts := &controller.Options{Logger: slog.New(slog.DiscardHandler)}
	for _, c := range o.running[1:] {
		opts.Triggers = append(opts.Triggers, controller.Watches(c, func(*unstructured.Object) []types.NamespacedName {
			return []types.NamespacedName{{Namespace: namespace, Name: name}}
		}))
	}
	return broken.RunWith(ctx, func(ctx context.Context) error {
		return controller.Run(ctx, o.caches[clusters], func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
			cluster, found := o.cached(clusters, key.Name)
			if !found {
				return 0, nil
			}
			return reconcile(ctx, o, cluster)
		}, opts)
	}, o.running...)
}

// cached returns an object of a cache.
func (o *operator) cached(resource, name string) (*unstructured.Object, bool) {
	return o.caches[resource].Get(namespace, name)
}

// cachedPods returns the pods in the cache, sorted by name.
func (o *operator) cachedPods() []*unstructured.Object {
	all := o.caches[pods].List(namespace, nil)
	slices.SortFunc(all, func(a, b *unstructured.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}

// allLive returns the objects of the server with the label of the Cluster.
func (o *operator) allLive(ctx context.Context, resource string) (all []*unstructured.Object, err error) {
	for obj, err := range o.handles[resource].List(ctx, &metav1.ListOptions{LabelSelector: clusterLabel + "=" + name}) {
		if err != nil {
			return nil, err
		}
		all = append(all, obj)
	}
	return all, nil
}

// exists reports whether the server has an object.
func (o *operator) exists(ctx context.Context, resource, name string) (bool, error) {
	_, err := o.handles[resource].Get(ctx, name, nil)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// create creates an object owned by the Cluster, unless it exists.
func (o *operator) create(ctx context.Context, resource string, cluster, obj *unstructured.Object) error {
	if err := controller.SetControllerReference(cluster, obj); err != nil {
		return err
	}
	_, err := o.handles[resource].Create(ctx, obj, nil)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// patch changes an object by a merge patch.
func (o *operator) patch(ctx context.Context, resource, name, patch string) error {
	_, err := o.handles[resource].Patch(ctx, name, types.MergePatchType, []byte(patch), nil)
	return err
}

// deleteName deletes any object of a name.
func (o *operator) deleteName(ctx context.Context, resource, name string) error {
	return o.delete(ctx, resource, name, nil)
}

// deleteObject deletes obj, and no later object of its name.
func (o *operator) deleteObject(ctx context.Context, resource string, obj *unstructured.Object) error {
	uid := obj.GetUID()
	err := o.delete(ctx, resource, obj.GetName(), &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func (o *operator) delete(ctx context.Context, resource, name string, opts *metav1.DeleteOptions) error {
	_, err := o.handles[resource].Delete(ctx, name, opts)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// setStatus replaces the status of the Cluster, if it differs.
func (o *operator) setStatus(ctx context.Context, cluster *unstructured.Object, status map[string]any) error {
	status["observedGeneration"] = nil
	_, err := controller.SetStatus(ctx, o.handles[clusters], cluster, status)
	return err
}

// status returns a field of the status.
func status(cluster *unstructured.Object, field string) string {
	value, _, _ := unstructured.Get[string](cluster, "status", field)
	return value
}

// setConfigStatus records the config of the Cluster in its status.
func (o *operator) setConfigStatus(ctx context.Context, cluster *unstructured.Object) error {
	config := text(cluster, "config")
	if status(cluster, "config") == config {
		return nil
	}
	return o.setStatus(ctx, cluster, map[string]any{"config": config})
}

var errStale = errors.New("the cached Cluster is not the server's")

// verify returns errStale if the server has a later spec of the Cluster, or another Cluster.
func (o *operator) verify(ctx context.Context, cluster *unstructured.Object) error {
	live, err := o.handles[clusters].Get(ctx, cluster.GetName(), nil)
	if err == nil && (live.GetUID() != cluster.GetUID() || live.GetGeneration() != cluster.GetGeneration()) {
		err = errStale
	}
	return err
}
