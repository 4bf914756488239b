package published

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/simulate/internal/testing/broken"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/unstructured"
)

func indirectDefects() []Defect {
	return []Defect{{
		Issue: "instaclustr/cassandra-operator#410", Class: indirect, Owned: "StatefulSet, its pods and claims",
		Description: "decommissions a node, leaves the rest to the next reconcile, and then the spec is as before",
		Invariant:   "no running pod is decommissioned", Violation: "Pod default/main-2 is",
		Check: check(pods, "main-2", "main-2 is not decommissioned", func(pod *unstructured.Object) bool {
			return pod != nil && pod.GetAnnotations()[decommissioned] == ""
		}),
		Steps:       []broken.Step{create(map[string]any{"replicas": int64(3)}), await(pods, "main-2"), scaleTo(2), scaleTo(3)},
		Controllers: apitest.GarbageCollection | apitest.Workloads,
		kinds:       []string{statefulSets, pods}, reconcile: decommissionOne,
	}, {
		Issue: "konpyutaika/nifikop#86", Class: indirect, Owned: "Pod",
		Description: "finishes the start of nodes in the spec only, and deletes pods of started nodes only",
		Invariant:   "a pod of a removed node is deleted", Violation: "Pod default/main-b should not be there",
		Check: check(pods, "main-b", "main-b is gone", isGone),
		Steps: []broken.Step{
			create(map[string]any{"nodes": []any{"a", "b"}}), await(pods, "main-b"), change("removes the node b", `{"nodes":["a"]}`),
		},
		Controllers: apitest.GarbageCollection,
		kinds:       []string{pods}, reconcile: startNodes,
	}}
}

const decommissioned = "example.com/decommissioned"

// decommissionOne is the operator of instaclustr/cassandra-operator#410. An annotation is the state of a Cassandra node. The corrected
// version restarts decommissioned pods that are within the replicas.
func decommissionOne(ctx context.Context, o *operator, cluster *unstructured.Object) (time.Duration, error) {
	const next = 5 * time.Second
	set, err := o.ensureSet(ctx, cluster, "")
	if err != nil || set == nil {
		return time.Second, err
	}
	switch wanted := replicas(cluster); {
	case wanted < replicas(set):
		pod, found := o.cached(pods, fmt.Sprintf("main-%d", replicas(set)-1))
		if !found {
			return next, nil
		}
		if pod.GetAnnotations()[decommissioned] == "" {
			return next, o.patch(ctx, pods, pod.GetName(), `{"metadata":{"annotations":{"`+decommissioned+`":"true"}}}`)
		}
		return next, o.scale(ctx, replicas(set)-1)
	case wanted > replicas(set):
		return next, o.scale(ctx, wanted)
	}
	for _, pod := range o.cachedPods() {
		if !o.isCorrected || pod.GetAnnotations()[decommissioned] == "" {
			continue
		}
		if err := o.deleteObject(ctx, pods, pod); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// The states of a node.
const (
	nodeStarting = "Starting"
	nodeStarted  = "Started"
)

// startNodes is the operator of konpyutaika/nifikop#86. The corrected version deletes the pod of a removed node in any state.
func startNodes(ctx context.Context, o *operator, cluster *unstructured.Object) (time.Duration, error) {
	const startTime = 5 * time.Second
	nodes, _, _ := unstructured.Get[[]any](cluster, "spec", "nodes")
	states, _, _ := unstructured.Get[map[string]any](cluster, "status", "nodes")
	changed := map[string]any{}
	for _, id := range nodes {
		id, _ := id.(string)
		pod, found := o.cached(pods, "main-"+id)
		switch {
		case states[id] == nil:
			changed[id] = nodeStarting
		case !found:
			if err := o.create(ctx, pods, cluster, newPod("main-"+id)); err != nil {
				return 0, err
			}
		case states[id] == nodeStarting && time.Since(pod.GetCreationTimestamp().Time) >= startTime:
			changed[id] = nodeStarted
		}
	}
	for _, pod := range o.cachedPods() {
		id := strings.TrimPrefix(pod.GetName(), "main-")
		if slices.Contains(nodes, any(id)) || states[id] != nodeStarted && !o.isCorrected {
			continue
		}
		if err := o.deleteObject(ctx, pods, pod); err != nil {
			return 0, err
		}
	}
	for id, state := range states {
		if !slices.Contains(nodes, any(id)) && (state == nodeStarted || o.isCorrected) {
			changed[id] = nil
		}
	}
	if len(changed) > 0 {
		if _, err := controller.PatchStatus(ctx, o.handles[clusters], cluster, map[string]any{"nodes": changed, "observedGeneration": nil}); err != nil {
			return 0, err
		}
	}
	return startTime, nil
}
