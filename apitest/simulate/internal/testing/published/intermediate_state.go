package published

import (
	"context"
	"fmt"
	"time"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/simulate/internal/testing/broken"
	"github.com/anykind/anykind/unstructured"
)

func intermediateDefects() []Defect {
	return []Defect{{
		Issue: "rabbitmq/cluster-operator#782", Class: intermediateState, Owned: "StatefulSet, its pods and claims",
		Description: "deletes the StatefulSet, fails before it expands the claims, and takes the storage of the new StatefulSet for theirs",
		Invariant:   "the claims have the requested storage", Violation: "PersistentVolumeClaim default/data-main-0 is",
		Check: check(claims, "data-main-0", "data-main-0 has 15Gi", func(claim *unstructured.Object) bool { return claim != nil && storageOf(claim.Object) == "15Gi" }),
		Steps: []broken.Step{
			create(map[string]any{"replicas": int64(1), "storage": "10Gi"}), bindClaim("data-main-0", "10Gi"), change("expands the volumes", `{"storage":"15Gi"}`),
		},
		Controllers: apitest.GarbageCollection | apitest.Workloads,
		kinds:       []string{statefulSets}, reconcile: expandVolumes,
	}, {
		Issue: "konpyutaika/nifikop#49", Class: intermediateState, Owned: "ConfigMap, Pod",
		Description: "writes the ConfigMap, fails before it records that the pod has to restart, and finds the ConfigMap up to date",
		Invariant:   "the pod has started with the config", Violation: "Pod default/main is",
		Check:       check(pods, name, "the pod has config 2", func(pod *unstructured.Object) bool { return pod != nil && pod.GetAnnotations()["config"] == "2" }),
		Steps:       []broken.Step{create(map[string]any{"config": "1"}), configure()},
		Controllers: apitest.GarbageCollection,
		kinds:       []string{configMaps, pods}, reconcile: restartPod,
	}, {
		Issue: "Orange-OpenSource/casskop#370", Class: intermediateState, Owned: "StatefulSet, its pods and claims",
		Description: "scales down, fails before it records this, and then looks for the deleted pod",
		Invariant:   "the claim of a removed replica is deleted", Violation: "PersistentVolumeClaim default/data-main-1 ",
		Check:       check(claims, "data-main-1", "data-main-1 is gone", isGone),
		Steps:       []broken.Step{create(map[string]any{"replicas": int64(2)}), await(pods, "main-1"), scaleTo(1)},
		Controllers: apitest.GarbageCollection | apitest.Workloads,
		kinds:       []string{statefulSets}, reconcile: decommission,
	}}
}

// expandVolumes is the operator of rabbitmq/cluster-operator#782. The storage of a StatefulSet is immutable. The corrected version
// compares the storage of each claim.
func expandVolumes(ctx context.Context, o *operator, cluster *unstructured.Object) (time.Duration, error) {
	storage := text(cluster, "storage")
	set, err := o.ensureSet(ctx, cluster, "")
	if err != nil {
		return 0, err
	}
	isOld := set != nil && storageOfSet(set) != storage
	if isOld {
		if err := o.deleteObject(ctx, statefulSets, set); err != nil {
			return 0, err
		}
	}
	live, err := o.allLive(ctx, claims)
	if err != nil {
		return 0, err
	}
	for _, claim := range live {
		if storageOf(claim.Object) == storage || !isOld && !o.isCorrected {
			continue
		}
		if err := o.patch(ctx, claims, claim.GetName(), fmt.Sprintf(`{"spec":{"resources":{"requests":{"storage":%q}}}}`, storage)); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// restartPod is the operator of konpyutaika/nifikop#49. The corrected version compares the config with which the pod has started.
func restartPod(ctx context.Context, o *operator, cluster *unstructured.Object) (time.Duration, error) {
	config := text(cluster, "config")
	configMap, found := o.cached(configMaps, name)
	if !found {
		configMap = &unstructured.Object{Object: map[string]any{"metadata": metadata(name), "data": map[string]any{"config": config}}}
		return time.Second, o.create(ctx, configMaps, cluster, configMap)
	}
	if stored, _, _ := unstructured.Get[string](configMap, "data", "config"); stored != config {
		if err := o.patch(ctx, configMaps, name, fmt.Sprintf(`{"data":{"config":%q}}`, config)); err != nil {
			return 0, err
		}
		return time.Second, o.setStatus(ctx, cluster, map[string]any{"config": "OutOfSync"})
	}
	pod, found := o.cached(pods, name)
	if !found {
		pod = newPod(name)
		pod.SetAnnotations(map[string]string{"config": config})
		if err := o.create(ctx, pods, cluster, pod); err != nil {
			return 0, err
		}
		return time.Second, o.setStatus(ctx, cluster, map[string]any{"config": "InSync"})
	}
	isOutdated := status(cluster, "config") == "OutOfSync"
	if o.isCorrected {
		isOutdated = pod.GetAnnotations()["config"] != config
	}
	if isOutdated {
		return time.Second, o.deleteObject(ctx, pods, pod)
	}
	if status(cluster, "config") != "InSync" {
		return 0, o.setStatus(ctx, cluster, map[string]any{"config": "InSync"})
	}
	return 0, nil
}

// The phases of the removal of a replica.
const (
	ongoing    = "Ongoing"
	finalizing = "Finalizing"
	done       = "Done"
)

// decommission is the operator of Orange-OpenSource/casskop#370. The corrected version continues if the pod is gone.
func decommission(ctx context.Context, o *operator, cluster *unstructured.Object) (time.Duration, error) {
	set, err := o.ensureSet(ctx, cluster, "")
	if err != nil || set == nil {
		return time.Second, err
	}
	pod := status(cluster, "pod")
	exists := false
	if pod != "" {
		if exists, err = o.exists(ctx, pods, pod); err != nil {
			return 0, err
		}
	}
	switch status(cluster, "phase") {
	case ongoing:
		if !exists && !o.isCorrected {
			return 0, fmt.Errorf("read the decommissioned pod %s: not found", pod)
		}
		if err := o.scale(ctx, replicas(cluster)); err != nil {
			return 0, err
		}
		return time.Second, o.setStatus(ctx, cluster, map[string]any{"phase": finalizing, "pod": pod})
	case finalizing:
		if exists {
			return time.Second, nil
		}
		if err := o.deleteName(ctx, claims, "data-"+pod); err != nil {
			return 0, err
		}
		return 0, o.setStatus(ctx, cluster, map[string]any{"phase": done, "pod": pod})
	}
	if replicas(cluster) < replicas(set) && status(cluster, "phase") != done {
		return 0, o.setStatus(ctx, cluster, map[string]any{"phase": ongoing, "pod": fmt.Sprintf("main-%d", replicas(cluster))})
	}
	return 0, nil
}
