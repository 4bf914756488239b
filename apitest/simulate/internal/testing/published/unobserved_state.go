package published

import (
	"context"
	"errors"
	"time"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/simulate/internal/testing/broken"
	"github.com/anykind/anykind/unstructured"
)

func unobservedDefects() []Defect {
	return []Defect{{
		Issue: "instaclustr/cassandra-operator#398", Class: unobservedState, Owned: "StatefulSet, its pods and claims",
		Description: "deletes the claims of terminating pods, and does not see a pod terminate",
		Invariant:   "the claim of a removed pod is deleted", Violation: "PersistentVolumeClaim default/data-main-1 ",
		Check:       check(claims, "data-main-1", "data-main-1 is gone", isGone),
		Steps:       []broken.Step{create(map[string]any{"replicas": int64(2)}), await(pods, "main-1"), scaleTo(1), endPod("main-1")},
		Controllers: apitest.GarbageCollection | apitest.Workloads,
		kinds:       []string{statefulSets, pods}, reconcile: deleteVolumesOfTerminatingPods,
	}, {
		Issue: "rabbitmq/cluster-operator#758", Class: unobservedState, Owned: "StatefulSet, its pods and claims",
		Description: "refuses to scale down, but compares with the StatefulSet only, and does not see the larger spec",
		Invariant:   "the number of replicas never falls", Violation: "StatefulSet default/main is",
		Check:       check(statefulSets, name, "the StatefulSet has 3 replicas", func(set *unstructured.Object) bool { return set != nil && replicas(set) == 3 }),
		Steps:       []broken.Step{create(map[string]any{"replicas": int64(1)}), scaleTo(3), scaleTo(2)},
		Controllers: apitest.GarbageCollection | apitest.Workloads,
		Validate:    rejectScaleDown,
		kinds:       []string{statefulSets}, reconcile: scaleUpOnly,
	}}
}

// deleteVolumesOfTerminatingPods is the operator of instaclustr/cassandra-operator#398. The corrected version compares the claims with
// the spec and the pods of the server.
func deleteVolumesOfTerminatingPods(ctx context.Context, o *operator, cluster *unstructured.Object) (time.Duration, error) {
	set, err := o.ensureSet(ctx, cluster, "node")
	if err != nil || set == nil {
		return time.Second, err
	}
	if err := o.scaleToSpec(ctx, cluster, set); err != nil {
		return 0, err
	}
	if o.isCorrected {
		return o.deleteUnusedVolumes(ctx, cluster)
	}
	for _, pod := range o.cachedPods() {
		if pod.GetDeletionTimestamp() == nil || ordinal(pod) < replicas(cluster) {
			continue
		}
		if err := o.deleteName(ctx, claims, "data-"+pod.GetName()); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// scaleUpOnly is the operator of rabbitmq/cluster-operator#758. The corrected version has a webhook, so no spec is smaller than an earlier
// spec.
func scaleUpOnly(ctx context.Context, o *operator, cluster *unstructured.Object) (time.Duration, error) {
	set, err := o.ensureSet(ctx, cluster, "")
	if err != nil || set == nil || replicas(cluster) <= replicas(set) {
		return 0, err
	}
	return 0, o.scale(ctx, replicas(cluster))
}

func rejectScaleDown(_ context.Context, r *apitest.AdmissionRequest) error {
	if r.Resource.Resource == "clusters" && r.Operation == "UPDATE" && replicas(r.Object) < replicas(r.OldObject) {
		return errors.New("a Cluster cannot be scaled down")
	}
	return nil
}
