package controllers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

const (
	hashLabel          = "pod-template-hash"
	revisionAnnotation = "deployment.kubernetes.io/revision"
)

// rollout is a deployment with its ReplicaSets, oldest first.
type rollout struct {
	*Controller
	key        store.Key
	deployment object
	current    object // ReplicaSet of the current template, nil before its creation
	old        []object
}

func (c *Controller) reconcileDeployment(ctx context.Context, key store.Key, deployment object) error {
	r := &rollout{Controller: c, key: key, deployment: deployment}
	r.find()
	if r.current == nil && !nested.Bool(deployment, "spec", "paused") {
		if waiting, err := r.removeOld(ctx); waiting || err != nil {
			return errors.Join(err, r.report(ctx)) // Recreate: old pods are deleted first
		}
		if err := r.createSet(ctx); err != nil {
			return err
		}
		r.find()
	}
	if err := r.annotate(ctx); err != nil {
		return err
	}
	if err := r.scale(ctx); err != nil {
		return err
	}
	r.find()
	if err := r.cleanUp(ctx); err != nil {
		return err
	}
	return r.report(ctx)
}

// find lists the ReplicaSets.
func (r *rollout) find() {
	r.current = nil
	r.old = nil
	template := copyOf(nested.Map(r.deployment, "spec", "template"))
	for _, set := range r.controlled("apps", "replicasets", r.deployment) {
		own := copyOf(nested.Map(set, "spec", "template"))
		delete(nested.Map(own, "metadata", "labels"), hashLabel)
		if r.current == nil && reflect.DeepEqual(own, template) {
			r.current = set
		} else {
			r.old = append(r.old, set)
		}
	}
	slices.SortStableFunc(r.old, func(a, b object) int { return revision(a) - revision(b) })
}

func revision(obj object) int {
	n, _ := strconv.Atoi(nested.String(obj, "metadata", "annotations", revisionAnnotation))
	return n
}

func (r *rollout) isRecreate() bool {
	return nested.String(r.deployment, "spec", "strategy", "type") == "Recreate"
}

// removeOld scales the old sets to zero if the strategy is Recreate, and reports whether they still have pods.
func (r *rollout) removeOld(ctx context.Context) (waiting bool, err error) {
	if !r.isRecreate() {
		return false, nil
	}
	for _, set := range r.old {
		all, _ := r.podsOf(set)
		waiting = waiting || len(all) > 0
		if err := r.resize(ctx, set, 0); err != nil {
			return true, err
		}
	}
	return waiting, nil
}

func (r *rollout) createSet(ctx context.Context) error {
	spec := nested.Map(r.deployment, "spec")
	template := copyOf(nested.Map(spec, "template"))
	hash := templateHash(template)
	nested.EnsureMap(template, "metadata", "labels")[hashLabel] = hash
	selector := copyOf(nested.Map(spec, "selector"))
	nested.EnsureMap(selector, "matchLabels")[hashLabel] = hash
	set := object{
		"apiVersion": "apps/v1", "kind": "ReplicaSet",
		"metadata": object{
			"name": r.key.Name + "-" + hash, "namespace": r.key.Namespace, "labels": copyOf(nested.Map(template, "metadata", "labels")),
			"annotations": r.annotations(r.nextRevision()), "ownerReferences": controllerRef(r.deployment),
		},
		"spec": object{"replicas": r.initialReplicas(), "selector": selector, "template": template},
	}
	if seconds := spec["minReadySeconds"]; seconds != nil {
		nested.Map(set, "spec")["minReadySeconds"] = seconds
	}
	return r.create(ctx, store.Key{Group: "apps", Resource: "replicasets", Namespace: r.key.Namespace}, set)
}

func (r *rollout) nextRevision() int {
	last := 0
	for _, set := range r.old {
		last = max(last, revision(set))
	}
	return last + 1
}

// annotations returns the annotations of a set: the deployment's, the sizes and the revision.
func (r *rollout) annotations(revision int) object {
	annotations := object{}
	for name, value := range nested.Map(r.deployment, "metadata", "annotations") {
		if name != "kubectl.kubernetes.io/last-applied-configuration" && name != revisionAnnotation {
			annotations[name] = value
		}
	}
	replicas, surge, _ := r.sizes()
	annotations["deployment.kubernetes.io/desired-replicas"] = fmt.Sprint(replicas)
	annotations["deployment.kubernetes.io/max-replicas"] = fmt.Sprint(replicas + surge)
	annotations[revisionAnnotation] = strconv.Itoa(revision)
	return annotations
}

// annotate sets the deployment's revision annotation from its set. After a rollback, the set first gets the next revision.
func (r *rollout) annotate(ctx context.Context) error {
	if r.current == nil {
		return nil
	}
	if next := r.nextRevision(); revision(r.current) < next {
		set := copyOf(r.current)
		nested.Map(set, "metadata")["annotations"] = r.annotations(next)
		if err := r.update(ctx, keyOfSet(set), "", set, r.current); err != nil {
			return err
		}
		r.find()
	}
	deployment := copyOf(r.deployment)
	nested.EnsureMap(deployment, "metadata", "annotations")[revisionAnnotation] = strconv.Itoa(revision(r.current))
	if err := r.update(ctx, r.key, "status", deployment, r.deployment); err != nil { // changes no generation
		return err
	}
	if stored, found := r.Store.Get(r.key); found {
		r.deployment = stored
	}
	return nil
}

// sizes returns the replicas, maxSurge and maxUnavailable as numbers.
func (r *rollout) sizes() (replicas, surge, unavailable int64) {
	spec := nested.Map(r.deployment, "spec")
	replicas = nested.Int64(spec, "replicas")
	if r.isRecreate() {
		return replicas, 0, 0
	}
	rolling := nested.Map(spec, "strategy", "rollingUpdate")
	surge = resolve(rolling["maxSurge"], replicas, true)
	unavailable = resolve(rolling["maxUnavailable"], replicas, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return replicas, surge, min(unavailable, replicas)
}

// resolve converts a number or percentage of total to a number.
func resolve(value any, total int64, up bool) int64 {
	parsed := intstr.FromInt32(0)
	switch value := value.(type) {
	case string:
		parsed = intstr.FromString(value)
	case int64:
		parsed = intstr.FromInt32(int32(value))
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&parsed, int(total), up)
	if err != nil {
		return 0
	}
	return int64(n)
}

func (r *rollout) initialReplicas() int64 {
	replicas, surge, _ := r.sizes()
	total := int64(0)
	for _, set := range r.old {
		total += nested.Int64(set, "spec", "replicas")
	}
	return max(0, min(replicas, replicas+surge-total))
}

// scale grows the current set and shrinks the old sets within the limits of the strategy.
func (r *rollout) scale(ctx context.Context) error {
	replicas, surge, unavailable := r.sizes()
	if r.current == nil {
		return nil
	}
	size := nested.Int64(r.current, "spec", "replicas")
	total := size
	available := nested.Int64(r.current, "status", "availableReplicas")
	missing := size - available
	for _, set := range r.old {
		total += nested.Int64(set, "spec", "replicas")
		available += nested.Int64(set, "status", "availableReplicas")
	}
	switch {
	case len(r.old) == 0 || size > replicas || total == size:
		if err := r.resize(ctx, r.current, replicas); err != nil {
			return err
		}
	case nested.Bool(r.deployment, "spec", "paused"):
		return nil
	case size < replicas && total < replicas+surge:
		if err := r.resize(ctx, r.current, min(replicas, size+replicas+surge-total)); err != nil {
			return err
		}
	}
	excess := min(total-(replicas-unavailable)-missing, total-size)
	for _, set := range r.old {
		own := nested.Int64(set, "spec", "replicas")
		remove := min(own, max(0, excess))
		if unhealthy := own - nested.Int64(set, "status", "availableReplicas"); excess <= 0 && unhealthy > 0 && missing == 0 {
			remove = unhealthy
		}
		if remove == 0 {
			continue
		}
		excess -= remove
		if err := r.resize(ctx, set, own-remove); err != nil {
			return err
		}
	}
	return nil
}

func keyOfSet(set object) store.Key {
	return store.Key{Group: "apps", Resource: "replicasets", Namespace: nested.String(set, "metadata", "namespace"), Name: nameOf(set)}
}

func (r *rollout) resize(ctx context.Context, set object, replicas int64) error {
	changed := copyOf(set)
	nested.Map(changed, "spec")["replicas"] = replicas
	annotations := nested.EnsureMap(changed, "metadata", "annotations")
	wanted := r.annotations(0)
	for _, name := range []string{"deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"} {
		annotations[name] = wanted[name]
	}
	return r.update(ctx, keyOfSet(set), "", changed, set)
}

// cleanUp deletes the oldest sets without replicas beyond revisionHistoryLimit.
func (r *rollout) cleanUp(ctx context.Context) error {
	limit := int(nested.Int64(r.deployment, "spec", "revisionHistoryLimit"))
	for _, set := range r.old[:max(0, len(r.old)-limit)] {
		if nested.Int64(set, "spec", "replicas")+nested.Int64(set, "status", "replicas") > 0 || isDeleting(set) {
			continue
		}
		if err := r.delete(ctx, keyOfSet(set), uidOf(set), nil); err != nil {
			return err
		}
	}
	return nil
}

// report sets the deployment's status.
func (r *rollout) report(ctx context.Context) error {
	stored, found := r.Store.Get(r.key)
	if !found {
		return nil
	}
	changed := copyOf(stored)
	status := nested.EnsureMap(changed, "status")
	counts := map[string]int64{}
	for _, set := range append(slices.Clone(r.old), r.current) {
		for _, name := range []string{"replicas", "readyReplicas", "availableReplicas"} {
			counts[name] += nested.Int64(set, "status", name)
		}
	}
	replicas, _, unavailable := r.sizes()
	counts["updatedReplicas"] = nested.Int64(r.current, "status", "replicas")
	counts["unavailableReplicas"] = max(0, max(replicas, counts["replicas"])-counts["availableReplicas"])
	setCounts(status, counts)
	status["observedGeneration"] = nested.Map(stored, "metadata")["generation"]
	r.reportConditions(status, counts, replicas, unavailable)
	return r.update(ctx, r.key, "status", changed, stored)
}

func (r *rollout) reportConditions(status object, counts map[string]int64, replicas, unavailable int64) {
	now := r.timestamp()
	if counts["availableReplicas"] >= replicas-unavailable {
		setCondition(status, "Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now, true)
	} else {
		setCondition(status, "Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.", now, true)
	}
	if r.current == nil {
		return
	}
	set := fmt.Sprintf("ReplicaSet %q ", nameOf(r.current))
	switch complete := counts["updatedReplicas"] == replicas && counts["replicas"] == replicas && counts["availableReplicas"] == replicas; {
	case complete:
		setCondition(status, "Progressing", "True", "NewReplicaSetAvailable", set+"has successfully progressed.", now, true)
	case !strings.Contains(nested.String(progressing(status), "message"), nameOf(r.current)):
		setCondition(status, "Progressing", "True", "NewReplicaSetCreated", "Created new replica set \""+nameOf(r.current)+"\"", now, true)
	case counts["availableReplicas"] > 0:
		setCondition(status, "Progressing", "True", "ReplicaSetUpdated", set+"is progressing.", now, true)
	}
}

func progressing(status object) object {
	return nested.Condition(object{"status": status}, "Progressing")
}
