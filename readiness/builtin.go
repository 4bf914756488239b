package readiness

import (
	"cmp"
	"encoding/json"
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
		return claim
	case "Ingress.networking.k8s.io", "Ingress.extensions":
		return ingress
	case "HorizontalPodAutoscaler.autoscaling":
		return autoscaler
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
		return Result{status, elementPath("status."+list, "name", name, "state.waiting.reason"), message}
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
	for _, c := range o.conditions() {
		switch {
		case c.status != "True":
		case c.name == "Complete":
			return c.result(Current)
		case c.name == "Failed":
			return c.result(Failed)
		}
	}
	for _, name := range []string{"FailureTarget", "Suspended"} { // its pods are terminating, or do not exist
		if c, _ := o.condition(name); c.status == "True" {
			return c.result(InProgress)
		}
	}
	if suspend, _, _ := o.value("spec", "suspend"); suspend == true {
		return Result{InProgress, "spec.suspend", "the job is suspended"}
	}
	const startTime = "status.startTime"
	if o.string("status", "startTime") == "" {
		return Result{InProgress, startTime, "the job has not started"}
	}
	message := fmt.Sprintf("the job has started: %d pods active, %d succeeded, %d failed",
		o.count(0, "status", "active"), o.count(0, "status", "succeeded"), o.count(0, "status", "failed"))
	return Result{Current, startTime, message}
}

// claim leaves a pending claim InProgress: only its StorageClass has the volumeBindingMode.
func claim(o *object) Result {
	const field = "status.phase"
	switch phase := o.string("status", "phase"); phase {
	case "Bound":
		return Result{Current, field, "the claim is bound"}
	case "Lost":
		return Result{Failed, field, "the claim has lost its volume"}
	case "Pending":
		if o.string("spec", "volumeName") == "" {
			return Result{InProgress, field, "the claim is pending (with volumeBindingMode WaitForFirstConsumer until a pod uses it)"}
		}
		return Result{InProgress, field, "the claim is pending"}
	case "":
		return Result{InProgress, field, "the claim has no phase yet"}
	default:
		return Result{Unknown, field, fmt.Sprintf("phase is %q", phase)}
	}
}

func service(o *object) Result {
	const addresses = "status.loadBalancer.ingress"
	switch {
	case o.string("spec", "type") != "LoadBalancer":
		return Result{Current, "spec.clusterIP", "the service has what it needs of the API server"}
	case o.string("spec", "clusterIP") == "":
		return Result{InProgress, "spec.clusterIP", "the service has no cluster IP"}
	case len(o.list("status", "loadBalancer", "ingress")) > 0:
		return Result{Current, addresses, "the load balancer has an address"}
	case len(o.list("spec", "externalIPs")) > 0:
		return Result{Current, "spec.externalIPs", "the service has external IPs"}
	default:
		return Result{InProgress, addresses, "the load balancer has no address yet"}
	}
}

// ingress does not wait for an address: many controllers never publish one.
func ingress(o *object) Result {
	const addresses = "status.loadBalancer.ingress"
	if len(o.list("status", "loadBalancer", "ingress")) == 0 {
		return Result{Current, addresses, "no controller has published an address, which not all controllers do"}
	}
	return Result{Current, addresses, "the ingress has an address"}
}

// autoscaler reads the conditions of autoscaling/v2. v1 has them as JSON in an annotation.
func autoscaler(o *object) Result {
	const annotation = "autoscaling.alpha.kubernetes.io/conditions"
	text := o.string("metadata", "annotations", annotation)
	if text == "" {
		return scaling(o, o.conditions())
	}
	result := Result{Status: Unknown}
	var items []any
	if err := json.Unmarshal([]byte(text), &items); err != nil {
		result.Message = annotation + ": " + err.Error()
	} else {
		result = scaling(o, o.parseConditions("metadata.annotations", items))
	}
	result.Field = `metadata.annotations["` + annotation + `"]`
	return result
}

func scaling(o *object, conditions []condition) Result {
	able, _ := findCondition(conditions, "AbleToScale")
	active, _ := findCondition(conditions, "ScalingActive")
	switch {
	case able.status != "True":
		return o.missing(able)
	case active.status != "True" && active.reason != "ScalingDisabled": // the target has no replicas on purpose
		return o.missing(active)
	default:
		return active.result(Current)
	}
}

func podDisruptionBudget(o *object) Result {
	allowed, _ := o.condition("DisruptionAllowed")
	if allowed.status == "False" && allowed.reason == "SyncFailed" {
		return cmp.Or(o.behind(allowed), allowed.result(InProgress))
	}
	message := fmt.Sprintf("disruptions allowed: %d", o.count(0, "status", "disruptionsAllowed"))
	return cmp.Or(o.notObserved(), Result{Current, "status.observedGeneration", message})
}

func customResourceDefinition(o *object) Result {
	names, _ := o.condition("NamesAccepted")
	established, _ := o.condition("Established")
	switch {
	case names.status == "False": // also after a change of an established definition, which keeps its old names
		return cmp.Or(o.behind(names), names.result(Failed))
	case established.status == "True":
		return cmp.Or(o.behind(established), established.result(Current))
	case established.status == "False" && established.reason != "Installing":
		return cmp.Or(o.behind(established), established.result(Failed))
	default:
		return o.missing(established)
	}
}
