package controllers

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

const revisionLabel = "controller-revision-hash"

// revisionName creates the ControllerRevision of a set's template and returns its name.
func (c *Controller) revisionName(ctx context.Context, set object) (string, error) {
	template := copyOf(nested.Map(set, "spec", "template"))
	hash := templateHash(template)
	name := nameOf(set) + "-" + hash
	key := store.Key{Group: "apps", Resource: "controllerrevisions", Namespace: nested.String(set, "metadata", "namespace"), Name: name}
	if _, found := c.Store.Get(key); found {
		return name, nil
	}
	number := int64(len(c.controlled("apps", "controllerrevisions", set)) + 1)
	template["$patch"] = "replace"
	labels := copyOf(nested.Map(set, "spec", "template", "metadata", "labels"))
	labels[revisionLabel] = hash
	return name, c.create(ctx, key, object{
		"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": number, "data": object{"spec": object{"template": template}},
		"metadata": object{"name": name, "namespace": key.Namespace, "labels": labels, "ownerReferences": controllerRef(set)},
	})
}

func (c *Controller) reconcileStatefulSet(ctx context.Context, key store.Key, set object) error {
	update, err := c.revisionName(ctx, set)
	if err != nil {
		return err
	}
	spec := nested.Map(set, "spec")
	start := nested.Int64(spec, "ordinals", "start")
	replicas := nested.Int64(spec, "replicas")
	parallel := nested.String(spec, "podManagementPolicy") == "Parallel"
	pods := map[int64]object{}
	all := c.controlled("", "pods", set)
	for _, pod := range all {
		if ordinal, ok := ordinalOf(pod, key.Name); ok {
			pods[ordinal] = pod
		}
	}
	blocked := false
	for ordinal := start; ordinal < start+replicas && (!blocked || parallel); ordinal++ {
		pod, exists := pods[ordinal]
		switch {
		case !exists:
			blocked = true
			if err := c.createOrdinal(ctx, set, ordinal, c.revisionFor(set, ordinal, update)); err != nil {
				return err
			}
		case !isReady(pod):
			blocked = true
		}
	}
	if blocked && !parallel {
		return c.statefulSetStatus(ctx, key, set, update)
	}
	for _, pod := range all { // beyond replicas
		if ordinal, ok := ordinalOf(pod, key.Name); ok && (ordinal < start || ordinal >= start+replicas) && !isDeleting(pod) {
			if err := c.delete(ctx, podKey(pod), uidOf(pod), nil); err != nil {
				return err
			}
		}
	}
	if err := c.updateOrdinals(ctx, set, pods, update); err != nil {
		return err
	}
	return c.statefulSetStatus(ctx, key, set, update)
}

func ordinalOf(pod object, set string) (int64, bool) {
	suffix, ok := strings.CutPrefix(nameOf(pod), set+"-")
	ordinal, err := strconv.ParseInt(suffix, 10, 64)
	return ordinal, ok && err == nil
}

// revisionFor returns the revision of a new pod: currentRevision below the partition, otherwise update.
func (c *Controller) revisionFor(set object, ordinal int64, update string) string {
	current := nested.String(set, "status", "currentRevision")
	if partition := nested.Int64(set, "spec", "updateStrategy", "rollingUpdate", "partition"); ordinal < partition && current != "" {
		return current
	}
	return update
}

func (c *Controller) createOrdinal(ctx context.Context, set object, ordinal int64, revision string) error {
	name := fmt.Sprintf("%s-%d", nameOf(set), ordinal)
	spec := nested.Map(set, "spec")
	template := nested.Map(set, "spec", "template")
	namespace := nested.String(set, "metadata", "namespace")
	stored, found := c.Store.Get(store.Key{Group: "apps", Resource: "controllerrevisions", Namespace: namespace, Name: revision})
	if recorded := nested.Map(stored, "data", "spec", "template"); found && recorded != nil {
		template = copyOf(recorded)
		delete(template, "$patch")
	}
	pod := podFromTemplate(set, template, map[string]string{
		"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": fmt.Sprint(ordinal), revisionLabel: revision,
	})
	nested.EnsureMap(pod, "metadata")["name"] = name
	podSpec := nested.Map(pod, "spec")
	podSpec["hostname"] = name
	if service := nested.String(spec, "serviceName"); service != "" {
		podSpec["subdomain"] = service
	}
	for _, claim := range nested.Maps(spec, "volumeClaimTemplates") {
		claimName := nameOf(claim) + "-" + name
		volumes := nested.Slice(podSpec, "volumes")
		podSpec["volumes"] = append(volumes, object{"name": nameOf(claim), "persistentVolumeClaim": object{"claimName": claimName}})
		if err := c.createClaim(ctx, set, claim, claimName); err != nil {
			return err
		}
	}
	return c.createPod(ctx, set, pod)
}

func (c *Controller) createClaim(ctx context.Context, set, template object, name string) error {
	claim := copyOf(template)
	delete(claim, "status")
	claim["apiVersion"] = "v1"
	claim["kind"] = "PersistentVolumeClaim"
	metadata := nested.EnsureMap(claim, "metadata")
	metadata["name"] = name
	metadata["namespace"] = nested.Map(set, "metadata")["namespace"]
	for label, value := range nested.Map(set, "spec", "selector", "matchLabels") {
		nested.EnsureMap(metadata, "labels")[label] = value
	}
	key := store.Key{Resource: "persistentvolumeclaims", Namespace: nested.String(metadata, "namespace"), Name: name}
	if _, found := c.Store.Get(key); found {
		return nil
	}
	return c.create(ctx, key, claim)
}

// updateOrdinals replaces the last pod with an old revision, if all pods after it are ready.
func (c *Controller) updateOrdinals(ctx context.Context, set object, pods map[int64]object, update string) error {
	strategy := nested.Map(set, "spec", "updateStrategy")
	if nested.String(strategy, "type") != "RollingUpdate" {
		return nil
	}
	start := nested.Int64(set, "spec", "ordinals", "start")
	for ordinal := start + nested.Int64(set, "spec", "replicas") - 1; ordinal >= max(start, nested.Int64(strategy, "rollingUpdate", "partition")); ordinal-- {
		pod := pods[ordinal]
		if nested.String(pod, "metadata", "labels", revisionLabel) != update && !isDeleting(pod) && pod != nil {
			return c.delete(ctx, podKey(pod), uidOf(pod), nil)
		}
		if !isReady(pod) {
			return nil
		}
	}
	return nil
}

func (c *Controller) statefulSetStatus(ctx context.Context, key store.Key, set object, update string) error {
	_, active := c.podsOf(set)
	changed := copyOf(set)
	status := nested.EnsureMap(changed, "status")
	ready, available := c.countReady(key, active, nested.Int64(set, "spec", "minReadySeconds"))
	current := nested.String(status, "currentRevision")
	if current == "" {
		current = update
	}
	updated := int64(0)
	unchanged := int64(0)
	for _, pod := range active {
		switch nested.String(pod, "metadata", "labels", revisionLabel) {
		case update:
			updated++
		case current:
			unchanged++
		}
	}
	if replicas := nested.Int64(set, "spec", "replicas"); updated == replicas && ready == replicas {
		current = update
	}
	if current == update {
		unchanged = updated
	}
	status["observedGeneration"] = nested.Map(set, "metadata")["generation"]
	status["collisionCount"] = int64(0)
	status["currentRevision"] = current
	status["updateRevision"] = update
	status["replicas"] = int64(len(active))
	status["availableReplicas"] = available
	setCounts(status, map[string]int64{"readyReplicas": ready, "currentReplicas": unchanged, "updatedReplicas": updated})
	if reflect.DeepEqual(changed, set) {
		return nil
	}
	return c.update(ctx, key, "status", changed, set)
}
