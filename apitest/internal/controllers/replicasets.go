package controllers

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

// podsOf returns all pods controlled by owner, and its active pods: neither finished nor terminating.
func (c *Controller) podsOf(owner object) (all, active []object) {
	all = c.controlled("", "pods", owner)
	for _, pod := range all {
		if !isFinished(pod) && !isDeleting(pod) {
			active = append(active, pod)
		}
	}
	return all, active
}

func podKey(pod object) store.Key {
	return store.Key{Resource: "pods", Namespace: nested.String(pod, "metadata", "namespace"), Name: nameOf(pod)}
}

// createPod creates a pod of the owner.
func (c *Controller) createPod(ctx context.Context, owner, pod object) error {
	return c.create(ctx, store.Key{Resource: "pods", Namespace: nested.String(owner, "metadata", "namespace")}, pod)
}

func (c *Controller) reconcileReplicaSet(ctx context.Context, key store.Key, set object) error {
	if err := c.adoptPods(ctx, set); err != nil {
		return err
	}
	_, active := c.podsOf(set)
	spec := nested.Map(set, "spec")
	wanted := int(nested.Int64(spec, "replicas"))
	for range max(0, wanted-len(active)) {
		pod := podFromTemplate(set, nested.Map(spec, "template"), nil)
		nested.EnsureMap(pod, "metadata")["generateName"] = key.Name + "-"
		if err := c.createPod(ctx, set, pod); err != nil {
			return err
		}
	}
	if excess := len(active) - wanted; excess > 0 {
		slices.SortStableFunc(active, func(a, b object) int { return readiness(a) - readiness(b) })
		for _, pod := range active[:excess] {
			if err := c.delete(ctx, podKey(pod), uidOf(pod), nil); err != nil {
				return err
			}
		}
	}
	return c.replicaSetStatus(ctx, key, set)
}

func readiness(pod object) int {
	if isReady(pod) {
		return 1
	}
	return 0
}

// adoptPods makes the set the controller of matching pods without a controller.
func (c *Controller) adoptPods(ctx context.Context, set object) error {
	var typed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(nested.Map(set, "spec", "selector"), &typed); err != nil {
		return nil //nolint:nilerr // an invalid selector matches nothing
	}
	selector, err := metav1.LabelSelectorAsSelector(&typed)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	pods, _, err := c.Store.List("", "pods", nested.String(set, "metadata", "namespace"), 0)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if slices.ContainsFunc(owners(pod), func(ref owner) bool { return ref.controller }) || isDeleting(pod) || isFinished(pod) || !selector.Matches(labelsOf(pod)) {
			continue
		}
		adopted := copyOf(pod)
		metadata := nested.Map(adopted, "metadata")
		refs := nested.Slice(metadata, "ownerReferences")
		metadata["ownerReferences"] = append(refs, controllerRef(set)...)
		if err := c.update(ctx, podKey(pod), "", adopted, pod); err != nil {
			return err
		}
	}
	return nil
}

func labelsOf(obj object) labels.Set {
	set := labels.Set{}
	for name, value := range nested.Map(obj, "metadata", "labels") {
		set[name], _ = value.(string)
	}
	return set
}

func (c *Controller) replicaSetStatus(ctx context.Context, key store.Key, set object) error {
	_, active := c.podsOf(set)
	changed := copyOf(set)
	status := nested.EnsureMap(changed, "status")
	status["replicas"] = int64(len(active))
	status["observedGeneration"] = nested.Map(set, "metadata")["generation"]
	ready, available := c.countReady(key, active, nested.Int64(set, "spec", "minReadySeconds"))
	setCounts(status, map[string]int64{"readyReplicas": ready, "availableReplicas": available, "fullyLabeledReplicas": int64(len(active))})
	return c.update(ctx, key, "status", changed, set)
}

// countReady counts the ready and available pods. It queues key for the time when a ready pod becomes available.
func (c *Controller) countReady(key store.Key, pods []object, minReadySeconds int64) (ready, available int64) {
	for _, pod := range pods {
		if isReady(pod) {
			ready++
		}
		if ok, wait := c.isAvailable(pod, minReadySeconds); ok {
			available++
		} else if wait > 0 {
			c.repeat(key, max(wait, time.Millisecond))
		}
	}
	return ready, available
}

// setCounts sets the counts of a status and removes zero counts.
func setCounts(status object, counts map[string]int64) {
	for name, count := range counts {
		if status[name] = count; count == 0 {
			delete(status, name)
		}
	}
}
