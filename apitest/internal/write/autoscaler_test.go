package write_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// handlesOf returns the handles of versions of a kind in the server's namespace.
func handlesOf(t *testing.T, s *compare.Server, versions map[string]schema.GroupVersionKind) map[string]*dynamic.Resource {
	t.Helper()
	handles := map[string]*dynamic.Resource{}
	for name, gvk := range versions {
		resource, err := s.ForKind(t.Context(), gvk)
		require.NoError(t, err)
		handles[name] = resource.Namespace(s.Namespace)
	}
	return handles
}

// withoutIdentity returns an object without server-specific values.
func withoutIdentity(obj *unstructured.Object) any {
	if obj == nil {
		return nil
	}
	metadata := obj.Object["metadata"].(map[string]any)
	for _, name := range []string{"uid", "creationTimestamp", "resourceVersion"} {
		delete(metadata, name)
	}
	managed, _ := metadata["managedFields"].([]any)
	for _, entry := range managed {
		delete(entry.(map[string]any), "time")
	}
	slices.SortFunc(managed, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) // they are in the order of their times
	return obj.Object
}

func TestWriter_AutoscalerVersionsAsOnServer(t *testing.T) {
	const target = `scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}, maxReplicas: 5`
	metrics := map[string]string{
		"cpu":        `{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}`,
		"cpu value":  `{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 100m}}}`,
		"memory":     `{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 60}}}`,
		"container":  `{type: ContainerResource, containerResource: {name: cpu, container: c, target: {type: Utilization, averageUtilization: 60}}}`,
		"pods":       `{type: Pods, pods: {metric: {name: m, selector: {matchLabels: {b: c, a: b}, matchExpressions: [{key: a, operator: Exists}]}}, target: {type: AverageValue, averageValue: 1k}}}`,
		"object":     `{type: Object, object: {metric: {name: m}, describedObject: {apiVersion: v1, kind: Service, name: s}, target: {type: Value, value: "10"}}}`,
		"object avg": `{type: Object, object: {metric: {name: m}, describedObject: {apiVersion: v1, kind: Service, name: s}, target: {type: AverageValue, averageValue: "10"}}}`,
		"external":   `{type: External, external: {metric: {name: m, selector: {matchLabels: {a: b}}}, target: {type: AverageValue, averageValue: "3"}}}`,
		"external 2": `{type: External, external: {metric: {name: m}, target: {type: Value, value: "3"}}}`,
	}
	specs := map[string]string{
		"v1 plain": target, "v1 cpu": target + `, targetCPUUtilizationPercentage: 40, minReplicas: 2`,
		"v2 plain": target, "v2 behavior": target + `, behavior: {scaleUp: {stabilizationWindowSeconds: 3}, scaleDown: {selectPolicy: Min, policies: [{type: Pods, value: 1, periodSeconds: 10}]}}`,
		"v2 two": target + `, metrics: [` + metrics["cpu"] + `, ` + metrics["memory"] + `, ` + metrics["pods"] + `]`,
	}
	for name, metric := range metrics {
		specs["v2 "+name] = target + `, metrics: [` + metric + `]`
	}
	const status = `{"status":{"currentReplicas":1,"desiredReplicas":2,"conditions":[{"type":"AbleToScale","status":"True","lastTransitionTime":"2024-01-02T03:04:05Z","reason":"r"}],"currentMetrics":[
		{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":30,"averageValue":"30m"}}},
		{"type":"Object","object":{"metric":{"name":"m"},"describedObject":{"kind":"Service","name":"s"},"current":{"value":"4"}}},
		{"type":"Pods","pods":{"metric":{"name":"m"},"current":{"averageValue":"4"}}},
		{"type":"External","external":{"metric":{"name":"m"},"current":{"averageValue":"4"}}},
		{"type":"ContainerResource","containerResource":{"name":"cpu","container":"c","current":{"averageValue":"4"}}}]}}`
	compare.Responses(t, nil, 100, func(t *testing.T, s *compare.Server) map[string]string {
		all := map[string]string{}
		handles := handlesOf(t, s, map[string]schema.GroupVersionKind{
			"v1": {Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"},
			"v2": {Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
		})
		for name, spec := range specs {
			record := func(what string, obj *unstructured.Object, err error) {
				all[name+" "+what] = s.Outcome(withoutIdentity(obj), err)
			}
			version := name[:2]
			other := map[string]string{"v1": "v2", "v2": "v1"}[name[:2]]
			own := strings.ReplaceAll(name, " ", "-")
			given := s.Object(t, fmt.Sprintf(`{apiVersion: autoscaling/%s, kind: HorizontalPodAutoscaler, metadata: {name: %s}, spec: {%s}}`, version, own, spec))
			created, err := handles[version].Create(t.Context(), given, nil)
			record("created", created, err)
			read := func(what string) {
				for version, handle := range handles {
					obj, err := handle.Get(t.Context(), own, nil)
					record(what+" as "+version, obj, err)
				}
			}
			read("created")
			patched, err := handles[other].Patch(t.Context(), own, types.MergePatchType, []byte(`{"spec":{"maxReplicas":7}}`), nil)
			record("patched as "+other, patched, err)
			_, err = handles["v2"].Subresource("status").Patch(t.Context(), own, types.MergePatchType, []byte(status), nil)
			require.NoError(t, err, name)
			read("status")
			patched, err = handles["v1"].Patch(t.Context(), own, types.MergePatchType, []byte(`{"spec":{"targetCPUUtilizationPercentage":33}}`), nil)
			record("cpu as v1", patched, err)
			applied, err := handles[other].Apply(t.Context(), s.Object(t, fmt.Sprintf(`{apiVersion: autoscaling/%s, kind: HorizontalPodAutoscaler, metadata: {name: %s}, spec: {maxReplicas: 9}}`, other, own)), &metav1.ApplyOptions{FieldManager: "m", Force: true})
			record("applied", applied, err)
			current, err := handles["v1"].Get(t.Context(), own, nil)
			require.NoError(t, err)
			updated, err := handles["v1"].Update(t.Context(), current, nil)
			record("updated as v1", updated, err)
			read("at last")
		}
		return all
	})
}
