package readiness

import (
	"cmp"
	"fmt"
)

// The requirement functions return the zero Result if the requirement is met. cmp.Or yields the first unmet requirement.

// tooFew returns InProgress if status.FIELD (default 0) < required. The message has the form "HAVE of REQUIRED STATE".
func (o *object) tooFew(field, state string, required int64) Result {
	have := o.count(0, "status", field)
	if have >= required {
		return Result{}
	}
	return Result{InProgress, "status." + field, fmt.Sprintf("%d of %d %s", have, required, state)}
}

// tooMany returns InProgress for more replicas than desired.
func (o *object) tooMany(desired int64) Result {
	have := o.count(0, "status", "replicas")
	if have <= desired {
		return Result{}
	}
	return Result{InProgress, "status.replicas", fmt.Sprintf("replicas pending termination: %d", have-desired)}
}

// notObserved returns InProgress if the controller has not written status.observedGeneration yet.
func (o *object) notObserved() Result {
	_, hasGeneration := o.number("metadata", "generation")
	_, isObserved := o.number("status", "observedGeneration")
	if !hasGeneration || isObserved {
		return Result{}
	}
	return Result{InProgress, "status.observedGeneration", "no generation is observed yet"}
}

// missing returns InProgress for a condition without the expected status, or for an absent condition.
func (o *object) missing(c condition) Result {
	if c.status == "" {
		return Result{InProgress, c.path("status"), fmt.Sprintf("condition %s does not exist", c.name)}
	}
	return c.result(InProgress)
}

func deployment(o *object) Result {
	result := rollout(o)
	if failure, _ := o.condition("ReplicaFailure"); result.Status == InProgress && failure.status == "True" {
		result.Message += "; " + failure.result(InProgress).Message
	}
	return result
}

func rollout(o *object) Result {
	progress, _ := o.condition("Progressing")
	if progress.reason == "ProgressDeadlineExceeded" {
		result := progress.result(Failed)
		result.Field = progress.path("reason")
		return result
	}
	desired := o.count(1, "spec", "replicas")
	updated := o.count(0, "status", "updatedReplicas")
	unmet := cmp.Or(
		o.notObserved(),
		o.tooFew("replicas", "replicas are created", desired),
		o.tooFew("updatedReplicas", "replicas are updated", desired),
		o.tooMany(desired),
		o.tooFew("availableReplicas", "replicas are available", updated),
		o.tooFew("readyReplicas", "replicas are ready", desired),
	)
	// The condition Progressing does not exist without a deadline. math.MaxInt32 means no deadline, too.
	deadline := o.count(noDeadline, "spec", "progressDeadlineSeconds")
	done := progress.status == "True" && progress.reason == "NewReplicaSetAvailable"
	available, _ := o.condition("Available")
	switch {
	case unmet != Result{}:
		return unmet
	case !done && deadline != noDeadline && progress.reason != "DeploymentPaused":
		return o.missing(progress)
	case available.status != "True":
		return o.missing(available)
	default:
		return Result{Current, available.path("status"), fmt.Sprintf("replicas updated and available: %d", updated)}
	}
}

const noDeadline = 1<<31 - 1

func statefulSet(o *object) Result {
	desired := o.count(1, "spec", "replicas")
	updated := o.count(0, "status", "updatedReplicas")
	unmet := cmp.Or(
		o.notObserved(),
		o.tooFew("replicas", "replicas are created", desired),
		o.tooFew("readyReplicas", "replicas are ready", desired),
		o.tooMany(desired),
	)
	if o.count(0, "spec", "minReadySeconds") > 0 {
		unmet = cmp.Or(unmet, o.tooFew("availableReplicas", "replicas are available", desired))
	}
	message := fmt.Sprintf("replicas ready: %d, of them updated: %d", desired, updated)
	if o.isUpdatedOnDelete() {
		return cmp.Or(unmet, Result{Current, updateStrategy, message + "; pods are updated when they are deleted: OnDelete"})
	}
	if partition, found := o.number("spec", "updateStrategy", "rollingUpdate", "partition"); found {
		return cmp.Or(
			unmet,
			o.tooFew("updatedReplicas", "replicas are updated", desired-partition),
			Result{Current, "status.updatedReplicas", message},
		)
	}
	unmet = cmp.Or(unmet, o.tooFew("currentReplicas", "replicas are of the current revision", desired))
	current := o.string("status", "currentRevision")
	update := o.string("status", "updateRevision")
	switch {
	case unmet != Result{}:
		return unmet
	case current != update:
		return Result{InProgress, "status.currentRevision", fmt.Sprintf("revision is %s, not yet %s", current, update)}
	default:
		return Result{Current, "status.readyReplicas", fmt.Sprintf("replicas updated and ready: %d", desired)}
	}
}

const updateStrategy = "spec.updateStrategy.type"

// isUpdatedOnDelete reports whether the controller leaves outdated pods alone.
func (o *object) isUpdatedOnDelete() bool {
	return o.string("spec", "updateStrategy", "type") == "OnDelete"
}

func daemonSet(o *object) Result {
	if _, found := o.number("metadata", "generation"); !found {
		return Result{InProgress, "metadata.generation", "the object has no generation"}
	}
	desired, found := o.number("status", "desiredNumberScheduled")
	if !found {
		unknown := Result{InProgress, "status.desiredNumberScheduled", "the number of pods is not known yet"}
		return cmp.Or(o.notObserved(), unknown)
	}
	current := Result{Current, "status.numberAvailable", fmt.Sprintf("pods updated and available: %d", desired)}
	var outdated Result
	if o.isUpdatedOnDelete() {
		current = Result{Current, updateStrategy, fmt.Sprintf("pods available: %d; they are updated when they are deleted: OnDelete", desired)}
	} else {
		outdated = o.tooFew("updatedNumberScheduled", "pods are updated", desired)
	}
	if misscheduled := o.count(0, "status", "numberMisscheduled"); misscheduled > 0 {
		// The controller leaves pods on nodes with a later taint NoSchedule.
		current.Message += fmt.Sprintf("; pods on nodes that should not have one: %d", misscheduled)
	}
	return cmp.Or(
		o.notObserved(),
		o.tooFew("currentNumberScheduled", "pods are scheduled", desired),
		outdated,
		o.tooFew("numberAvailable", "pods are available", desired),
		o.tooFew("numberReady", "pods are ready", desired),
		current,
	)
}

// replicaSet handles ReplicationControllers, too.
func replicaSet(o *object) Result {
	if failure, _ := o.condition("ReplicaFailure"); failure.status == "True" {
		return failure.result(InProgress)
	}
	desired := o.count(1, "spec", "replicas")
	return cmp.Or(
		o.notObserved(),
		o.tooFew("fullyLabeledReplicas", "replicas are fully labeled", desired),
		o.tooFew("availableReplicas", "replicas are available", desired),
		o.tooFew("readyReplicas", "replicas are ready", desired),
		o.tooMany(desired),
		Result{Current, "status.availableReplicas", fmt.Sprintf("replicas available: %d", desired)},
	)
}
