package table

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
)

func workloadCells(resource string) func(object) []any {
	switch resource {
	case "deployments.apps":
		return printDeployment
	case "replicasets.apps":
		return printReplicaSet
	case "statefulsets.apps":
		return printStatefulSet
	case "daemonsets.apps":
		return printDaemonSet
	case "controllerrevisions.apps":
		return printControllerRevision
	case "replicationcontrollers":
		return printReplicationController
	case "podtemplates":
		return printPodTemplate
	case "jobs.batch":
		return printJob
	case "cronjobs.batch":
		return printCronJob
	}
	return nil
}

var templateContainers = []string{"spec", "template", "spec", "containers"}

func printDeployment(o object) []any {
	names, images := o.containers(templateContainers...)
	selector := "<invalid>"
	if found, err := o.labelSelector("spec", "selector"); err == nil {
		if parsed, err := metav1.LabelSelectorAsSelector(found); err == nil {
			selector = parsed.String()
		}
	}
	return []any{
		o.name(), fmt.Sprintf("%d/%d", o.number("status", "readyReplicas"), o.number("spec", "replicas")),
		o.number("status", "updatedReplicas"), o.number("status", "availableReplicas"), o.age(), names, images, selector,
	}
}

func printReplicaSet(o object) []any {
	names, images := o.containers(templateContainers...)
	return []any{
		o.name(), o.number("spec", "replicas"), o.number("status", "replicas"), o.number("status", "readyReplicas"), o.age(),
		names, images, o.selector("spec", "selector"),
	}
}

func printStatefulSet(o object) []any {
	names, images := o.containers(templateContainers...)
	ready := fmt.Sprintf("%d/%d", o.number("status", "readyReplicas"), o.number("spec", "replicas"))
	return []any{o.name(), ready, o.age(), names, images}
}

func printDaemonSet(o object) []any {
	names, images := o.containers(templateContainers...)
	return []any{
		o.name(), o.number("status", "desiredNumberScheduled"), o.number("status", "currentNumberScheduled"),
		o.number("status", "numberReady"), o.number("status", "updatedNumberScheduled"), o.number("status", "numberAvailable"),
		o.labels("spec", "template", "spec", "nodeSelector"), o.age(), names, images, o.selector("spec", "selector"),
	}
}

func printControllerRevision(o object) []any {
	controller := "<none>"
	for _, owner := range o.list("metadata", "ownerReferences") {
		if owner.flag("controller") {
			version, _ := schema.ParseGroupVersion(owner.text("apiVersion"))
			controller = strings.ToLower(version.WithKind(owner.text("kind")).GroupKind().String()) + "/" + owner.text("name")
			break
		}
	}
	return []any{o.name(), controller, o.number("revision"), o.age()}
}

func printReplicationController(o object) []any {
	names, images := o.containers(templateContainers...)
	return []any{
		o.name(), o.number("spec", "replicas"), o.number("status", "replicas"), o.number("status", "readyReplicas"), o.age(),
		names, images, o.labels("spec", "selector"),
	}
}

func printPodTemplate(o object) []any {
	names, images := o.containers("template", "spec", "containers")
	return []any{o.name(), names, images, o.labels("template", "metadata", "labels")}
}

func printJob(o object) []any {
	names, images := o.containers(templateContainers...)
	return []any{
		o.name(), jobStatus(o), jobCompletions(o), jobDuration(o), o.age(), names, images, o.selector("spec", "selector"),
	}
}

func jobCompletions(o object) string {
	succeeded := o.number("status", "succeeded")
	parallelism := o.number("spec", "parallelism")
	switch {
	case o.has("spec", "completions"):
		return fmt.Sprintf("%d/%d", succeeded, o.number("spec", "completions"))
	case parallelism > 1:
		return fmt.Sprintf("%d/1 of %d", succeeded, parallelism)
	}
	return fmt.Sprintf("%d/1", succeeded)
}

func jobDuration(o object) string {
	start := o.time("status", "startTime")
	end := o.time("status", "completionTime")
	switch {
	case start.IsZero():
		return ""
	case end.IsZero():
		return o.since(start)
	}
	return duration.HumanDuration(end.Sub(start))
}

func jobStatus(o object) string {
	for _, condition := range []string{"Complete", "Failed"} {
		if o.hasCondition(condition) {
			return condition
		}
	}
	if o.isDeleted() {
		return "Terminating"
	}
	for _, condition := range []string{"Suspended", "FailureTarget", "SuccessCriteriaMet"} {
		if o.hasCondition(condition) {
			return condition
		}
	}
	return "Running"
}

func printCronJob(o object) []any {
	suspend := "<unset>"
	if o.has("spec", "suspend") {
		suspend = "False"
		if o.flag("spec", "suspend") {
			suspend = "True"
		}
	}
	last := "<none>"
	if o.has("status", "lastScheduleTime") {
		last = o.since(o.time("status", "lastScheduleTime"))
	}
	names, images := o.containers("spec", "jobTemplate", "spec", "template", "spec", "containers")
	return []any{
		o.name(), o.text("spec", "schedule"), o.textOr("<none>", "spec", "timeZone"), suspend, o.count("status", "active"), last,
		o.age(), names, images, o.selector("spec", "jobTemplate", "spec", "selector"),
	}
}
