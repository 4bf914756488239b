package published

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/anykind/anykind/unstructured"
)

// text returns a field of the spec.
func text(obj *unstructured.Object, field string) string {
	value, _, _ := unstructured.Get[string](obj, "spec", field)
	return value
}

// replicas returns spec.replicas.
func replicas(obj *unstructured.Object) int64 {
	value, _, _ := unstructured.Get[int64](obj, "spec", "replicas")
	return value
}

// storageOf returns the requested storage of a claim.
func storageOf(claim map[string]any) string {
	value, _, _ := unstructured.Get[string](&unstructured.Object{Object: claim}, "spec", "resources", "requests", "storage")
	return value
}

// ordinal returns the number at the end of a name, as of a pod of a StatefulSet.
func ordinal(obj *unstructured.Object) int64 {
	number, _ := strconv.ParseInt(obj.GetName()[strings.LastIndex(obj.GetName(), "-")+1:], 10, 64)
	return number
}

func metadata(name string) map[string]any {
	return map[string]any{"name": name, "namespace": namespace, "labels": map[string]any{clusterLabel: "main"}}
}

// newClaim returns a claim of some storage.
func newClaim(name, storage string) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"metadata": metadata(name),
		"spec": map[string]any{
			"storageClassName": "ssd", "accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": storage}},
		},
	}}
}

// newPod returns a pod on no node: it ends at once when it is deleted.
func newPod(name string) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{"metadata": metadata(name), "spec": podSpec("")}}
}

func podSpec(node string) map[string]any {
	spec := map[string]any{"containers": []any{map[string]any{"name": "server", "image": "server:1"}}}
	if node != "" {
		spec["nodeName"] = node
	}
	return spec
}

// ensureSet creates the StatefulSet of the Cluster if the cache has none. Its pods are on node; without a node they end at once after
// their deletion. Each has the claim data-main-N.
func (o *operator) ensureSet(ctx context.Context, cluster *unstructured.Object, node string) (set *unstructured.Object, err error) {
	if set, found := o.cached(statefulSets, name); found {
		return set, nil
	}
	storage := text(cluster, "storage")
	if storage == "" {
		storage = "10Gi"
	}
	labels := map[string]any{clusterLabel: "main"}
	return nil, o.create(ctx, statefulSets, cluster, &unstructured.Object{Object: map[string]any{
		"metadata": metadata(name),
		"spec": map[string]any{
			"serviceName": name, "replicas": replicas(cluster), "podManagementPolicy": "Parallel", "selector": map[string]any{"matchLabels": labels},
			"template":             map[string]any{"metadata": map[string]any{"labels": labels}, "spec": podSpec(node)},
			"volumeClaimTemplates": []any{newClaim("data", storage).Object},
		},
	}})
}

// scale sets the replicas of the StatefulSet.
func (o *operator) scale(ctx context.Context, replicas int64) error {
	return o.patch(ctx, statefulSets, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

func storageOfSet(set *unstructured.Object) string {
	templates, _, _ := unstructured.Get[[]any](set, "spec", "volumeClaimTemplates")
	for _, template := range templates {
		if claim, isMap := template.(map[string]any); isMap {
			return storageOf(claim)
		}
	}
	return ""
}
