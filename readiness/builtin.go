package readiness

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/sanitize"
)

// builtinRule returns the rule of a built-in kind, or nil.
func builtinRule(kind schema.GroupKind) func(*object) Result {
	switch kind.String() {
	case "Deployment.apps", "Deployment.extensions":
		return deployment
	case "StatefulSet.apps":
		return statefulSet
	case "DaemonSet.apps", "DaemonSet.extensions":
		return daemonSet
	case "ReplicaSet.apps", "ReplicaSet.extensions", "ReplicationController":
		return replicaSet
	case "Pod":
		return pod
	case "Job.batch":
		return job
	case "Service":
		return service
	case "CustomResourceDefinition.apiextensions.k8s.io":
		return customResourceDefinition
	case "PodDisruptionBudget.policy":
		return podDisruptionBudget
	case "PersistentVolumeClaim":
		return Rule{Current: []Check{{Field: "status.phase", Values: []string{"Bound"}}}}.apply
	case "APIService.apiregistration.k8s.io":
		return Rule{Current: []Check{{Condition: "Available"}}}.apply
	case "ConfigMap", "Secret", "CronJob.batch":
		return Rule{}.apply
	default:
		return nil
	}
}

// schedulingGrace is the age from which an unschedulable pod is Failed.
const schedulingGrace = 15 * time.Second

func pod(o *object) Result {
	const phase = "status.phase"
	switch now := o.string("status", "phase"); now {
	case "":
		return Result{InProgress, phase, "the pod has no phase yet"}
	case "Succeeded":
		return Result{Current, phase, "the pod has succeeded"}
	case "Failed":
		return Result{Failed, phase, explained("the pod has failed", o.string("status", "reason"), o.string("status", "message"))}
	case "Running":
		return runningPod(o)
	case "Pending":
		return pendingPod(o)
	default:
		return Result{Unknown, phase, fmt.Sprintf("phase is %q", now)}
	}
}

func runningPod(o *object) Result {
	ready, _ := o.condition("Ready")
	if ready.status == "True" {
		return ready.result(Current)
	}
	return cmp.Or(
		o.waiting(Failed, "containerStatuses", isCrashLoop),
		o.waiting(InProgress, "containerStatuses", isTrouble),
		o.missing(ready),
	)
}

func pendingPod(o *object) Result {
	scheduled, _ := o.condition("PodScheduled")
	if scheduled.status == "False" && scheduled.reason == "Unschedulable" {
		created, _ := time.Parse(time.RFC3339, o.string("metadata", "creationTimestamp"))
		if time.Since(created) < schedulingGrace {
			return scheduled.result(InProgress)
		}
		return scheduled.result(Failed)
	}
	pending := Result{InProgress, "status.phase", "the pod is pending"}
	if scheduled.status == "False" {
		pending = scheduled.result(InProgress)
	}
	return cmp.Or(
		o.waiting(InProgress, "initContainerStatuses", isTrouble),
		o.waiting(InProgress, "containerStatuses", isTrouble),
		pending,
	)
}

// waiting returns a result for the first container of status.LIST with a matching waiting reason, or the zero Result.
func (o *object) waiting(status Status, list string, matches func(reason string) bool) Result {
	for _, item := range o.list("status", list) {
		container, _ := item.(map[string]any)
		state, _ := container["state"].(map[string]any)
		waiting, _ := state["waiting"].(map[string]any)
		name, hasName := container["name"].(string)
		reason, _ := waiting["reason"].(string)
		if !hasName || !matches(reason) {
			continue
		}
		name = sanitize.Text(name, maxContainerName)
		message, _ := waiting["message"].(string)
		message = explained(fmt.Sprintf("container %s is waiting", name), reason, message)
		return Result{status, elementPath(list, "name", name, "state.waiting.reason"), message}
	}
	return Result{}
}

// maxContainerName limits a container name in a path, in bytes. The API server allows 63.
const maxContainerName = 100

func isCrashLoop(reason string) bool { return reason == "CrashLoopBackOff" }

// isTrouble reports whether a waiting reason is more than a step of every start.
func isTrouble(reason string) bool {
	return reason != "" && reason != "ContainerCreating" && reason != "PodInitializing"
}

func job(o *object) Result {
	for _, c := range o.conditions {
		switch {
		case c.status != "True":
		case c.name == "Complete":
			return c.result(Current)
		case c.name == "Failed":
			return c.result(Failed)
		}
	}
	const startTime = "status.startTime"
	if o.string("status", "startTime") == "" {
		if suspended, found := o.condition("Suspended"); found && suspended.status == "True" {
			return suspended.result(InProgress)
		}
		return Result{InProgress, startTime, "the job has not started"}
	}
	message := fmt.Sprintf("the job has started: %d pods active, %d succeeded, %d failed",
		o.count(0, "status", "active"), o.count(0, "status", "succeeded"), o.count(0, "status", "failed"))
	return Result{Current, startTime, message}
}

func service(o *object) Result {
	if o.string("spec", "type") == "LoadBalancer" && o.string("spec", "clusterIP") == "" {
		return Result{InProgress, "spec.clusterIP", "the service has no cluster IP"}
	}
	return Result{Current, "spec.clusterIP", "the service has what it needs of the API server"}
}

func podDisruptionBudget(o *object) Result {
	message := fmt.Sprintf("disruptions allowed: %d", o.count(0, "status", "disruptionsAllowed"))
	return cmp.Or(o.notObserved(), Result{Current, "status.observedGeneration", message})
}

func customResourceDefinition(o *object) Result {
	for _, c := range o.conditions {
		switch {
		case c.name == "NamesAccepted" && c.status == "False":
			return c.result(Failed)
		case c.name != "Established":
		case c.status == "True":
			return c.result(Current)
		case c.status == "False" && c.reason != "Installing":
			return c.result(Failed)
		}
	}
	established, _ := o.condition("Established")
	return o.missing(established)
}
