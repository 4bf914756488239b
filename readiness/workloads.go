package readiness

import "fmt"

// replicaCount is a number of replicas in a field of status, and the minimum that the spec requires.
type replicaCount struct {
	field       string // in status
	have, least int64
	state       string // in which these replicas are
}

// tooFew returns a result for the first count that is too small.
func tooFew(of string, counts ...replicaCount) (Result, bool) {
	for _, c := range counts {
		if c.have < c.least {
			return Result{InProgress, "status." + c.field, fmt.Sprintf("%d of %d %s are %s", c.have, c.least, of, c.state)}, true
		}
	}
	return Result{}, false
}

// replicas is a number of replicas in status, 0 by default.
func (o *object) replicas(field, state string, least int64) replicaCount {
	return replicaCount{field: field, have: o.count(0, "status", field), least: least, state: state}
}

// tooMany returns a result if there are more replicas than the spec requires.
func (o *object) tooMany(desired int64) (Result, bool) {
	have := o.count(0, "status", "replicas")
	if have <= desired {
		return Result{}, false
	}
	return Result{InProgress, "status.replicas", fmt.Sprintf("replicas pending termination: %d", have-desired)}, true
}

// notObserved returns a result if the object's controller has not written a status yet.
func (o *object) notObserved() (Result, bool) {
	if _, found := o.number("metadata", "generation"); !found {
		return Result{}, false
	}
	if _, found := o.number("status", "observedGeneration"); found {
		return Result{}, false
	}
	return Result{InProgress, "status.observedGeneration", "no generation is observed yet"}, true
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
	if result, found := o.notObserved(); found {
		return result
	}
	desired := o.count(1, "spec", "replicas")
	updated := o.count(0, "status", "updatedReplicas")
	if result, found := tooFew("replicas", o.replicas("replicas", "created", desired), o.replicas("updatedReplicas", "updated", desired)); found {
		return result
	}
	if result, found := o.tooMany(desired); found {
		return result
	}
	if result, found := tooFew("replicas", o.replicas("availableReplicas", "available", updated), o.replicas("readyReplicas", "ready", desired)); found {
		return result
	}
	// Without a deadline, which math.MaxInt32 means, too, there is no condition Progressing.
	deadline := o.count(noDeadline, "spec", "progressDeadlineSeconds")
	done := progress.status == "True" && progress.reason == "NewReplicaSetAvailable"
	if !done && deadline != noDeadline && progress.reason != "DeploymentPaused" {
		return o.missing(progress)
	}
	available, _ := o.condition("Available")
	if available.status != "True" {
		return o.missing(available)
	}
	return Result{Current, available.path("status"), fmt.Sprintf("replicas updated and available: %d", updated)}
}

const noDeadline = 1<<31 - 1

// missing is the result of a condition that does not exist or has not the expected status.
func (o *object) missing(c condition) Result {
	if c.status == "" {
		return Result{InProgress, c.path("status"), fmt.Sprintf("condition %s does not exist", c.name)}
	}
	return c.result(InProgress)
}

func statefulSet(o *object) Result {
	if o.string("", "spec", "updateStrategy", "type") == "OnDelete" {
		return Result{Current, "spec.updateStrategy.type", "pods are updated when they are deleted: OnDelete"}
	}
	if result, found := o.notObserved(); found {
		return result
	}
	desired := o.count(1, "spec", "replicas")
	if result, found := tooFew("replicas", o.replicas("replicas", "created", desired), o.replicas("readyReplicas", "ready", desired)); found {
		return result
	}
	if result, found := o.tooMany(desired); found {
		return result
	}
	if partition, found := o.number("spec", "updateStrategy", "rollingUpdate", "partition"); found {
		updated := o.replicas("updatedReplicas", "updated", desired-partition)
		if result, found := tooFew("replicas", updated); found {
			return result
		}
		message := fmt.Sprintf("replicas ready: %d, of them updated: %d", desired, updated.have)
		return Result{Current, "status.updatedReplicas", message}
	}
	if result, found := tooFew("replicas", o.replicas("currentReplicas", "of the current revision", desired)); found {
		return result
	}
	if current, update := o.string("", "status", "currentRevision"), o.string("", "status", "updateRevision"); current != update {
		return Result{InProgress, "status.currentRevision", fmt.Sprintf("revision is %s, not yet %s", current, update)}
	}
	return Result{Current, "status.readyReplicas", fmt.Sprintf("replicas updated and ready: %d", desired)}
}

func daemonSet(o *object) Result {
	if _, found := o.number("metadata", "generation"); !found {
		return Result{InProgress, "metadata.generation", "the object has no generation"}
	}
	if result, found := o.notObserved(); found {
		return result
	}
	desired, found := o.number("status", "desiredNumberScheduled")
	if !found {
		return Result{InProgress, "status.desiredNumberScheduled", "the number of pods is not known yet"}
	}
	if result, found := tooFew("pods", o.replicas("currentNumberScheduled", "scheduled", desired), o.replicas("updatedNumberScheduled", "updated", desired),
		o.replicas("numberAvailable", "available", desired), o.replicas("numberReady", "ready", desired)); found {
		return result
	}
	return Result{Current, "status.numberAvailable", fmt.Sprintf("pods updated and available: %d", desired)}
}

// replicaSet is for ReplicationControllers, too.
func replicaSet(o *object) Result {
	if failure, _ := o.condition("ReplicaFailure"); failure.status == "True" {
		return failure.result(InProgress)
	}
	if result, found := o.notObserved(); found {
		return result
	}
	desired := o.count(1, "spec", "replicas")
	if result, found := tooFew("replicas", o.replicas("fullyLabeledReplicas", "fully labeled", desired),
		o.replicas("availableReplicas", "available", desired), o.replicas("readyReplicas", "ready", desired)); found {
		return result
	}
	if result, found := o.tooMany(desired); found {
		return result
	}
	return Result{Current, "status.availableReplicas", fmt.Sprintf("replicas available: %d", desired)}
}
