package builtin

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// validateWorkload checks the selector and the template of a workload. Its restartPolicy must be Always.
func validateWorkload(obj, old object) field.ErrorList {
	c := &checker{}
	c.workload(obj)
	c.selectorUpdate(field.NewPath("spec"), nested.Map(obj, "spec"), old)
	return c.errs
}

func (c *checker) workload(obj object) {
	at := field.NewPath("spec")
	spec := nested.Map(obj, "spec")
	selector := nested.Map(spec, "selector")
	if selector != nil && len(selector) == 0 {
		c.invalid(at.Child("selector"), "", "an empty selector is invalid")
	}
	template := nested.Map(spec, "template")
	switch parsed := selectorOf(selector); {
	case parsed != nil && (!parsed.Empty() || obj["kind"] == "DaemonSet"):
		c.matches(at, parsed, template)
	case obj["kind"] != "DaemonSet":
		c.parsedSelector(at, spec)
	}
	var claims []string
	for _, claim := range nested.Maps(spec, "volumeClaimTemplates") {
		claims = append(claims, nested.String(claim, "metadata", "name"))
	}
	c.alwaysRunning(at.Child("template"), template, claims)
}

// parsedSelector adds an error for an invalid selector.
func (c *checker) parsedSelector(at *field.Path, spec object) {
	if selectorOf(nested.Map(spec, "selector")) == nil {
		c.invalid(at.Child("selector"), "", "invalid label selector")
	}
}

// alwaysRunning checks a template whose pods run until they are deleted.
func (c *checker) alwaysRunning(at *field.Path, template object, claims []string) {
	c.podTemplate(at, template, claims)
	if policy := nested.String(template, "spec", "restartPolicy"); policy != "Always" {
		c.add(field.NotSupported(at.Child("spec", "restartPolicy"), policy, []string{"Always"}))
	}
	if nested.Map(template, "spec")["activeDeadlineSeconds"] != nil {
		c.add(field.Forbidden(at.Child("spec", "activeDeadlineSeconds"), "not supported"))
	}
}

// matches adds an error if a selector does not match the labels of a template.
func (c *checker) matches(at *field.Path, selector labels.Selector, template object) {
	if set := nested.StringMap(template, "metadata", "labels"); !selector.Matches(labels.Set(set)) {
		c.invalid(at.Child("template", "metadata", "labels"), set, "`selector` does not match template `labels`")
	}
}

// selectorUpdate adds an error if the selector changes.
func (c *checker) selectorUpdate(at *field.Path, spec, old object) {
	if old != nil && isChanged(nested.Map(spec, "selector"), nested.Map(old, "spec", "selector")) {
		c.invalid(at.Child("selector"), "", "field is immutable")
	}
}

func validateDeployment(deployment, old object) field.ErrorList {
	c := &checker{errs: validateWorkload(deployment, old)}
	isNone := func(value any) bool { return isZero(value) || value == "0%" }
	rolling := nested.Map(deployment, "spec", "strategy", "rollingUpdate")
	if rolling != nil && isNone(rolling["maxUnavailable"]) && isNone(rolling["maxSurge"]) {
		c.invalid(field.NewPath("spec", "strategy", "rollingUpdate", "maxUnavailable"), rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0")
	}
	return c.errs
}

func validateStatefulSet(set, old object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(set, "spec")
	before := nested.Map(old, "spec")
	if old == nil || isChanged(spec["template"], before["template"]) {
		c.workload(set)
	} else {
		c.parsedSelector(at, spec)
	}
	if old == nil {
		return c.errs
	}
	munged, _ := deepCopy(spec).(object)
	for i, claim := range nested.Maps(munged, "volumeClaimTemplates") {
		if claims := nested.Maps(before, "volumeClaimTemplates"); i < len(claims) {
			copyField(claim, claims[i], "apiVersion")
			copyField(claim, claims[i], "kind")
		}
	}
	if changedExcept(munged, before, "replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy") {
		c.add(field.Forbidden(at, "updates to fields such as selector, serviceName and volumeClaimTemplates are forbidden"))
	}
	return c.errs
}

// countClaimVolumes changes the index of volumes in errors: in the server's pod template, the volumes of claim templates come first.
func countClaimVolumes(set object, errs field.ErrorList) {
	claims := len(nested.Slice(set, "spec", "volumeClaimTemplates"))
	for _, err := range errs {
		rest, isVolume := strings.CutPrefix(err.Field, "spec.template.spec.volumes[")
		if number, rest, found := strings.Cut(rest, "]"); isVolume && found {
			index, _ := strconv.Atoi(number)
			err.Field = fmt.Sprintf("spec.template.spec.volumes[%d]%s", index+claims, rest)
		}
	}
}

func validateReplicationController(controller, _ object) field.ErrorList {
	c := &checker{}
	if template := nested.Map(controller, "spec", "template"); template != nil {
		at := field.NewPath("spec")
		c.matches(at, labels.SelectorFromSet(nested.StringMap(controller, "spec", "selector")), template)
		c.alwaysRunning(at.Child("template"), template, nil)
	}
	return c.errs
}

func validateJob(job, old object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(job, "spec")
	c.jobTemplate(at, spec)
	if parsed := selectorOf(nested.Map(spec, "selector")); parsed != nil {
		c.matches(at, parsed, nested.Map(spec, "template"))
	}
	c.generatedSelector(at, job, spec)
	if old == nil {
		return c.errs
	}
	before := nested.Map(old, "spec")
	if !isElastic(spec, before) && isChanged(spec["completions"], before["completions"]) {
		c.invalid(at.Child("completions"), spec["completions"], "field is immutable")
	}
	c.selectorUpdate(at, spec, old)
	c.jobTemplateUpdate(at.Child("template"), spec, old)
	return c.errs
}

// isElastic reports whether an update changes the completions of an indexed job together with its parallelism.
func isElastic(spec, old object) bool {
	return spec["completionMode"] == "Indexed" && spec["completions"] == spec["parallelism"] && spec["parallelism"] != old["parallelism"]
}

// jobTemplate checks the pod template of a job.
func (c *checker) jobTemplate(at *field.Path, spec object) {
	c.podTemplate(at.Child("template"), nested.Map(spec, "template"), nil)
	if nested.String(spec, "template", "spec", "restartPolicy") == "Always" {
		c.add(field.Required(at.Child("template", "spec", "restartPolicy"), `valid values: "OnFailure", "Never"`))
	}
}

// jobTemplateUpdate adds an error if the template changes. A suspended job without active pods, which has not started or has the
// condition Suspended, may change the labels, annotations, scheduling directives and container resources of its template.
func (c *checker) jobTemplateUpdate(at *field.Path, spec, old object) {
	before := nested.Map(old, "spec", "template")
	template, _ := deepCopy(spec["template"]).(object)
	for _, list := range []string{"containers", "initContainers"} {
		containers := nested.Maps(before, "spec", list)
		for i, container := range nested.Maps(template, "spec", list) {
			if i < len(containers) {
				copyStopSignal(container, containers[i])
			}
		}
	}
	if podSpec := nested.Map(template, "spec"); podSpec != nil { // dropped without the gate GenericWorkload
		copyField(podSpec, nested.Map(before, "spec"), "schedulingGroup")
	}
	if isSuspendedJob(old) {
		at = at.Child("spec")
		copyField(template, before, "metadata")
		podSpec := nested.EnsureMap(template, "spec")
		podSpecBefore := nested.Map(before, "spec")
		for _, name := range []string{"nodeSelector", "tolerations", "schedulingGates"} {
			copyField(podSpec, podSpecBefore, name)
		}
		copyNodeAffinity(podSpec, podSpecBefore)
		copyResources(podSpec, podSpecBefore, "containers")
		copyResources(podSpec, podSpecBefore, "initContainers")
	}
	if isChanged(template, before) {
		c.invalid(at, "", "field is immutable")
	}
}

func isSuspendedJob(job object) bool {
	status := nested.Map(job, "status")
	return nested.Bool(job, "spec", "suspend") && (status["startTime"] == nil || nested.HasCondition(job, "Suspended")) &&
		nested.Int64(status, "active") == 0
}

// copyNodeAffinity sets the node affinity of a pod spec to the node affinity of a second pod spec. An affinity without fields is absent.
func copyNodeAffinity(podSpec, from object) {
	affinity := nested.EnsureMap(podSpec, "affinity")
	copyField(affinity, nested.Map(from, "affinity"), "nodeAffinity")
	if len(affinity) == 0 {
		copyField(podSpec, from, "affinity")
	}
}

// copyResources sets the resources of containers to those in a second pod spec, if the containers have the same names and order.
func copyResources(podSpec, from object, list string) {
	containers, _ := podSpec[list].([]any)
	before, _ := from[list].([]any)
	if len(containers) != len(before) {
		return
	}
	for i := range containers {
		container, _ := containers[i].(object)
		containerBefore, _ := before[i].(object)
		if container["name"] == containerBefore["name"] {
			copyField(container, containerBefore, "resources")
		}
	}
}

// generatedSelector checks the generated selector and labels, unless manualSelector is set.
func (c *checker) generatedSelector(at *field.Path, job, spec object) {
	selector := nested.Map(spec, "selector")
	if nested.Bool(spec, "manualSelector") || selector == nil {
		return
	}
	uid := nested.String(job, "metadata", "uid")
	for _, label := range []string{"controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name"} {
		want := uid
		if strings.HasSuffix(label, "job-name") {
			want = nested.String(job, "metadata", "name")
		}
		at := at.Child("template", "metadata", "labels").Key(label)
		if value, found := nested.Map(spec, "template", "metadata", "labels")[label]; !found {
			c.add(field.Required(at, "must be '"+want+"'"))
		} else if value != want {
			c.invalid(at, value, "must be '"+want+"'")
		}
	}
	generated := labels.Set{
		"controller-uid": uid, "batch.kubernetes.io/controller-uid": uid,
		"job-name": nested.String(job, "metadata", "name"), "batch.kubernetes.io/job-name": nested.String(job, "metadata", "name"),
	}
	if parsed := selectorOf(selector); parsed != nil && !parsed.Matches(generated) {
		c.invalid(at.Child("selector"), "", "`selector` not auto-generated")
	}
}
