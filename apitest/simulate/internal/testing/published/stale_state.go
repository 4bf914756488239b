package published

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/simulate/internal/testing/broken"
	"github.com/anykind/anykind/unstructured"
)

const finalizer = "example.com/volumes"

func staleDefects() []Defect {
	return []Defect{{
		Issue: "datastax/cass-operator#412", Class: staleState, Owned: "PersistentVolumeClaim",
		Description: "sees the deletion of an earlier Cluster of the same name, and deletes the claims of that name",
		Invariant:   "a claim of a live Cluster keeps its rows", Violation: "PersistentVolumeClaim default/data-main ",
		Check: check(claims, "data-main", "data-main has rows", hasRows),
		Steps: []broken.Step{
			create(map[string]any{}), await(claims, "data-main"), remove(), awaitEnd("data-main"), create(map[string]any{}), storeRows("data-main"), configure(),
		},
		Controllers: apitest.GarbageCollection,
		kinds:       []string{claims}, reconcile: deleteVolumes,
	}, {
		Issue: "pravega/zookeeper-operator#314", Class: staleState, Owned: "StatefulSet, its pods and claims",
		Description: "sees a past spec with fewer replicas, and deletes the claims beyond them",
		Invariant:   "a claim of a replica keeps its rows", Violation: "PersistentVolumeClaim default/data-main-1 ",
		Check: check(claims, "data-main-1", "data-main-1 has rows", hasRows),
		Steps: []broken.Step{
			create(map[string]any{"replicas": int64(2)}), await(pods, "main-1"), scaleTo(1), awaitEnd("data-main-1"), scaleTo(2),
			storeRows("data-main-1"), configure(),
		},
		Controllers: apitest.GarbageCollection | apitest.Workloads,
		kinds:       []string{statefulSets}, reconcile: deleteOrphanVolumes,
	}, {
		Issue: "instaclustr/cassandra-operator#407", Class: staleState, Owned: "StatefulSet, its pods and claims",
		Description: "sees the termination of an earlier pod, and deletes the claim of the present pod",
		Invariant:   "a claim of a running pod keeps its rows", Violation: "PersistentVolumeClaim default/data-main-1 ",
		Check: check(claims, "data-main-1", "data-main-1 has rows", hasRows),
		Steps: []broken.Step{
			create(map[string]any{"replicas": int64(2)}), await(pods, "main-1"), scaleTo(1), endPod("main-1"), awaitEnd("data-main-1"), scaleTo(2),
			storeRows("data-main-1"), configure(),
		},
		Controllers: apitest.GarbageCollection | apitest.Workloads,
		kinds:       []string{statefulSets, pods}, reconcile: deleteVolumesOfPods,
	}}
}

// deleteVolumes is the operator of datastax/cass-operator#412. The corrected version deletes the claims owned by the deleted Cluster.
func deleteVolumes(ctx context.Context, o *operator, cluster *unstructured.Object) (time.Duration, error) {
	if cluster.GetDeletionTimestamp() != nil {
		live, err := o.allLive(ctx, claims)
		if err != nil {
			return 0, err
		}
		for _, claim := range live {
			if o.isCorrected && !metav1.IsControlledBy(claim, cluster) {
				continue
			}
			if err := o.deleteObject(ctx, claims, claim); err != nil {
				return 0, err
			}
		}
		return 0, o.setFinalizers(ctx, cluster)
	}
	if !slices.Contains(cluster.GetFinalizers(), finalizer) {
		return 0, o.setFinalizers(ctx, cluster, finalizer)
	}
	claim, found := o.cached(claims, "data-main")
	if !found {
		return time.Second, o.create(ctx, claims, cluster, newClaim("data-main", "10Gi"))
	}
	if !metav1.IsControlledBy(claim, cluster) {
		return time.Second, nil // it belongs to an earlier Cluster
	}
	return 0, o.setConfigStatus(ctx, cluster)
}

// setFinalizers updates the Cluster, if it has not changed.
func (o *operator) setFinalizers(ctx context.Context, cluster *unstructured.Object, finalizers ...string) error {
	changed := cluster.DeepCopy()
	changed.SetFinalizers(finalizers)
	_, err := o.handles[clusters].Update(ctx, changed, nil)
	return err
}

// deleteOrphanVolumes is the operator of pravega/zookeeper-operator#314. The corrected version reads the Cluster again before it
// deletes anything.
func deleteOrphanVolumes(ctx context.Context, o *operator, cluster *unstructured.Object) (time.Duration, error) {
	set, err := o.ensureSet(ctx, cluster, "")
	if err != nil || set == nil {
		return time.Second, err
	}
	orphans, err := o.orphanVolumes(ctx, cluster)
	if err != nil {
		return 0, err
	}
	if isScaled := replicas(set) != replicas(cluster) || len(orphans) > 0; isScaled && o.isCorrected {
		if err := o.verify(ctx, cluster); err != nil {
			return 0, err
		}
	}
	if replicas(set) != replicas(cluster) {
		if err := o.scale(ctx, replicas(cluster)); err != nil {
			return 0, err
		}
	}
	for _, claim := range orphans {
		if err := o.deleteObject(ctx, claims, claim); err != nil {
			return 0, err
		}
	}
	return 0, o.setConfigStatus(ctx, cluster)
}

// orphanVolumes returns the claims beyond the replicas of the Cluster.
func (o *operator) orphanVolumes(ctx context.Context, cluster *unstructured.Object) ([]*unstructured.Object, error) {
	live, err := o.allLive(ctx, claims)
	return slices.DeleteFunc(live, func(claim *unstructured.Object) bool { return ordinal(claim) < replicas(cluster) }), err
}

// deleteVolumesOfPods is the operator of instaclustr/cassandra-operator#407. The corrected version does not look at terminating pods.
func deleteVolumesOfPods(ctx context.Context, o *operator, cluster *unstructured.Object) (time.Duration, error) {
	set, err := o.ensureSet(ctx, cluster, "node")
	if err != nil || set == nil {
		return time.Second, err
	}
	if err := o.scaleToSpec(ctx, cluster, set); err != nil {
		return 0, err
	}
	for _, pod := range o.cachedPods() {
		if pod.GetDeletionTimestamp() == nil || o.isCorrected {
			continue
		}
		if err := o.deleteName(ctx, claims, "data-"+pod.GetName()); err != nil {
			return 0, err
		}
	}
	after, err := o.deleteUnusedVolumes(ctx, cluster)
	if err != nil {
		return 0, err
	}
	return after, o.setConfigStatus(ctx, cluster)
}

// scaleToSpec scales the StatefulSet. A Cluster from a past state has no effect.
func (o *operator) scaleToSpec(ctx context.Context, cluster, set *unstructured.Object) error {
	if replicas(set) == replicas(cluster) {
		return nil
	}
	if err := o.verify(ctx, cluster); err != nil {
		return err
	}
	return o.scale(ctx, replicas(cluster))
}

// deleteUnusedVolumes deletes the claims beyond the replicas whose pods have ended. It depends on the state of the server only. While a
// pod remains it returns a delay: a pod that the cache has never had does not cause a reconcile when it ends.
func (o *operator) deleteUnusedVolumes(ctx context.Context, cluster *unstructured.Object) (after time.Duration, err error) {
	orphans, err := o.orphanVolumes(ctx, cluster)
	if err != nil || len(orphans) == 0 {
		return 0, err
	}
	if err := o.verify(ctx, cluster); err != nil {
		return 0, err
	}
	for _, claim := range orphans {
		isUsed, err := o.exists(ctx, pods, claim.GetName()[len("data-"):])
		if err != nil {
			return 0, err
		}
		if isUsed {
			after = 10 * time.Second
			continue
		}
		if err := o.deleteObject(ctx, claims, claim); err != nil {
			return 0, err
		}
	}
	return after, nil
}
