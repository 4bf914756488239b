package builtin

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// workload checks the selector and the template of a workload. Its restartPolicy must be Always.
func (c *checker) workload(at *field.Path, spec object, kind, name string) {
	selector := nested.Map(spec, "selector")
	if selector == nil && kind != "DaemonSet" {
		c.add(field.Required(at.Child("selector"), ""))
	}
	parsed := labels.Nothing()
	if selector != nil {
		parsed = c.selector(at.Child("selector"), selector)
		if len(selector) == 0 {
			c.invalid(at.Child("selector"), labelSelector(selector), "empty selector is invalid for "+name)
		}
	}
	template := nested.Map(spec, "template")
	if parsed != nil && (!parsed.Empty() || kind == "DaemonSet") {
		if set := nested.StringMap(template, "metadata", "labels"); !parsed.Matches(labels.Set(set)) {
			c.invalid(at.Child("template", "metadata", "labels"), set, "`selector` does not match template `labels`")
		}
	}
	c.podTemplate(at.Child("template"), template)
	inTemplate := at.Child("template", "spec")
	if policy := nested.String(template, "spec", "restartPolicy"); policy != "Always" {
		c.add(field.NotSupported(inTemplate.Child("restartPolicy"), policy, []string{"Always"}))
	}
	if nested.Map(template, "spec")["activeDeadlineSeconds"] != nil {
		c.add(field.Forbidden(inTemplate.Child("activeDeadlineSeconds"), "activeDeadlineSeconds in "+kind+" is not Supported"))
	}
}

func validateDeployment(deployment, old object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(deployment, "spec")
	c.nonNegative(at, spec, "replicas")
	c.workload(at, spec, "ReplicaSet", "deployment")
	strategy := nested.Map(spec, "strategy")
	inStrategy := at.Child("strategy")
	rolling := nested.Map(strategy, "rollingUpdate")
	switch nested.String(strategy, "type") {
	case "Recreate":
		if rolling != nil {
			c.add(field.Forbidden(inStrategy.Child("rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'"))
		}
	case "RollingUpdate":
		at := inStrategy.Child("rollingUpdate")
		unavailable := c.intOrPercent(at.Child("maxUnavailable"), rolling["maxUnavailable"])
		if surge := c.intOrPercent(at.Child("maxSurge"), rolling["maxSurge"]); unavailable == 0 && surge == 0 {
			c.invalid(at.Child("maxUnavailable"), rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0")
		}
		c.notMoreThanAll(at.Child("maxUnavailable"), rolling["maxUnavailable"])
	default:
		c.add(field.NotSupported(inStrategy, strategy, []string{"Recreate", "RollingUpdate"}))
	}
	c.nonNegative(at, spec, "progressDeadlineSeconds")
	if deadline := nested.Int64(spec, "progressDeadlineSeconds"); deadline <= nested.Int64(spec, "minReadySeconds") {
		c.invalid(at.Child("progressDeadlineSeconds"), deadline, "must be greater than minReadySeconds")
	}
	c.selectorUpdate(at, spec, old)
	return c.errs
}

// selectorUpdate adds an error if the selector changes. The error shows the selector's Go type.
func (c *checker) selectorUpdate(at *field.Path, spec, old object) {
	if before := nested.Map(old, "spec", "selector"); old != nil && !equality.Semantic.DeepEqual(nested.Map(spec, "selector"), before) {
		c.invalid(at.Child("selector"), labelSelector(nested.Map(spec, "selector")), "field is immutable")
	}
}

func validateReplicaSet(set, old object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(set, "spec")
	c.nonNegative(at, spec, "replicas")
	c.workload(at, spec, "ReplicaSet", "deployment")
	c.selectorUpdate(at, spec, old)
	return c.errs
}

func validateDaemonSet(set, old object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(set, "spec")
	c.workload(at, spec, "DaemonSet", "daemonset")
	strategy := nested.Map(spec, "updateStrategy")
	inStrategy := at.Child("updateStrategy")
	switch nested.String(strategy, "type") {
	case "OnDelete":
	case "RollingUpdate":
		rolling := nested.Map(strategy, "rollingUpdate")
		at := inStrategy.Child("rollingUpdate")
		unavailable := c.intOrPercent(at.Child("maxUnavailable"), rolling["maxUnavailable"])
		surge := c.intOrPercent(at.Child("maxSurge"), rolling["maxSurge"])
		c.notMoreThanAll(at.Child("maxUnavailable"), rolling["maxUnavailable"])
		c.notMoreThanAll(at.Child("maxSurge"), rolling["maxSurge"])
		if unavailable != 0 && surge != 0 {
			c.invalid(at.Child("maxSurge"), rolling["maxSurge"], "may not be set when maxUnavailable is non-zero")
		} else if unavailable == 0 && surge == 0 {
			c.add(field.Required(at.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
		}
	default:
		c.add(field.NotSupported(inStrategy, daemonSetStrategy(strategy), []string{"RollingUpdate", "OnDelete"}))
	}
	c.selectorUpdate(at, spec, old)
	return c.errs
}

// daemonSetStrategy returns the strategy as shown in the server's errors: as a Go type without JSON names.
func daemonSetStrategy(strategy object) any {
	type rollingUpdate struct{ MaxUnavailable, MaxSurge any }
	printed := struct {
		Type          string
		RollingUpdate *rollingUpdate
	}{Type: nested.String(strategy, "type")}
	if rolling := nested.Map(strategy, "rollingUpdate"); rolling != nil {
		printed.RollingUpdate = &rollingUpdate{rolling["maxUnavailable"], rolling["maxSurge"]}
	}
	return printed
}

func validateStatefulSet(set, old object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(set, "spec")
	switch policy := nested.String(spec, "podManagementPolicy"); policy {
	case "OrderedReady", "Parallel":
	default:
		c.invalid(at.Child("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'")
	}
	switch typ := nested.String(spec, "updateStrategy", "type"); typ {
	case "OnDelete", "RollingUpdate":
		c.nonNegative(at.Child("updateStrategy", "rollingUpdate"), nested.Map(spec, "updateStrategy", "rollingUpdate"), "partition")
	default:
		c.invalid(at.Child("updateStrategy"), nested.Map(spec, "updateStrategy"), "must be 'RollingUpdate' or 'OnDelete'")
	}
	c.nonNegative(at, spec, "replicas")
	if old == nil || !equality.Semantic.DeepEqual(nested.Map(spec, "template"), nested.Map(old, "spec", "template")) {
		claims := map[string]any{"spec": runtimeCopy(nested.Map(spec, "template", "spec"))}
		c.workload(at, withClaims(spec, claims), "StatefulSet", "statefulset")
	}
	if old != nil {
		munged, _ := deepCopy(spec).(object)
		for _, name := range []string{"replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy"} {
			copyField(munged, nested.Map(old, "spec"), name)
		}
		for i, claim := range nested.Maps(munged, "volumeClaimTemplates") {
			if before := nested.Maps(old, "spec", "volumeClaimTemplates"); i < len(before) {
				copyField(claim, before[i], "apiVersion")
				copyField(claim, before[i], "kind")
			}
		}
		if !equality.Semantic.DeepEqual(munged, nested.Map(old, "spec")) {
			c.add(field.Forbidden(at, "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "+
				"'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"))
		}
	}
	return c.errs
}

// withClaims returns a StatefulSet's spec with the names of its claims as volumes of the template.
func withClaims(spec, template object) object {
	names := []any{}
	for _, claim := range nested.Maps(spec, "volumeClaimTemplates") {
		names = append(names, object{"name": nested.String(claim, "metadata", "name")})
	}
	out := runtimeCopy(spec)
	copied := runtimeCopy(nested.Map(spec, "template"))
	podSpec := nested.Map(template, "spec")
	podSpec["volumeClaimTemplateNames"] = names
	copied["spec"] = podSpec
	out["template"] = copied
	return out
}

// runtimeCopy returns a shallow copy.
func runtimeCopy(obj object) object {
	out := make(object, len(obj))
	for name, value := range obj {
		out[name] = value
	}
	return out
}

func validateJob(job, old object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(job, "spec")
	c.jobSpec(at, spec)
	c.jobSelector(at, spec)
	c.generatedSelector(at, job, spec)
	if old == nil {
		return c.errs
	}
	before := nested.Map(old, "spec")
	if !isElastic(spec, before) {
		c.immutable(at, spec, before, "completions")
	}
	c.immutable(at, spec, before, "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
	c.selectorUpdate(at, spec, old)
	c.jobTemplateUpdate(at.Child("template"), spec, old)
	return c.errs
}

// isElastic reports whether an update changes the completions of an indexed job together with its parallelism.
func isElastic(spec, old object) bool {
	return spec["completionMode"] == "Indexed" && spec["completions"] == spec["parallelism"] && spec["parallelism"] != old["parallelism"]
}

// jobTemplateUpdate adds an error if the template changes. The labels, annotations and scheduling directives of a suspended job
// that has not started may change.
func (c *checker) jobTemplateUpdate(at *field.Path, spec, old object) {
	before := nested.Map(old, "spec", "template")
	template, _ := deepCopy(spec["template"]).(object)
	if nested.Bool(old, "spec", "suspend") && nested.Map(old, "status")["startTime"] == nil {
		copyField(template, before, "metadata")
		for _, name := range []string{"nodeSelector", "affinity", "tolerations", "schedulingGates"} {
			copyField(nested.EnsureMap(template, "spec"), nested.Map(before, "spec"), name)
		}
		if !equality.Semantic.DeepEqual(template, before) {
			c.invalid(at.Child("spec"), "", "field is immutable")
		}
		return
	}
	if !equality.Semantic.DeepEqual(template, before) {
		c.invalid(at, "", "field is immutable")
	}
}

func (c *checker) jobSpec(at *field.Path, spec object) {
	c.nonNegative(at, spec, "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes")
	c.podTemplate(at.Child("template"), nested.Map(spec, "template"))
	policy := nested.String(spec, "template", "spec", "restartPolicy")
	if policy == "Always" {
		c.add(field.Required(at.Child("template", "spec", "restartPolicy"), `valid values: "OnFailure", "Never"`))
	}
	if nested.String(spec, "completionMode") != "Indexed" {
		return
	}
	const maxParallel = 100000
	if spec["completions"] == nil {
		c.add(field.Required(at.Child("completions"), "when completion mode is Indexed"))
	}
	if n := nested.Int64(spec, "parallelism"); n > maxParallel {
		c.invalid(at.Child("parallelism"), n, "must be less than or equal to 100000 when completion mode is Indexed")
	}
}

// jobSelector checks that the selector of a job matches its pod template.
func (c *checker) jobSelector(at *field.Path, spec object) {
	selector := nested.Map(spec, "selector")
	set := nested.StringMap(spec, "template", "metadata", "labels")
	if selector == nil {
		c.add(field.Required(at.Child("selector"), ""))
	}
	if parsed := c.selector(at.Child("selector"), selector); parsed != nil && !parsed.Matches(labels.Set(set)) {
		c.invalid(at.Child("template", "metadata", "labels"), set, "`selector` does not match template `labels`")
	}
}

// generatedSelector checks the generated selector and labels, unless manualSelector is set.
func (c *checker) generatedSelector(at *field.Path, job, spec object) {
	selector := nested.Map(spec, "selector")
	set := nested.StringMap(spec, "template", "metadata", "labels")
	if nested.Bool(spec, "manualSelector") || selector == nil {
		return
	}
	metadata := nested.Map(job, "metadata")
	uid := nested.String(metadata, "uid")
	name := nested.String(metadata, "name")
	inLabels := at.Child("template", "metadata", "labels")
	for _, label := range []struct{ key, value string }{
		{"controller-uid", uid}, {"batch.kubernetes.io/controller-uid", uid}, {"job-name", name}, {"batch.kubernetes.io/job-name", name},
	} {
		if value, found := set[label.key]; !found {
			c.add(field.Required(inLabels.Key(label.key), "must be '"+label.value+"'"))
		} else if value != label.value {
			c.invalid(inLabels.Key(label.key), set, "must be '"+label.value+"'")
		}
	}
	if match := nested.Map(selector, "matchLabels"); len(selector) != 1 || len(match) != 1 || match["batch.kubernetes.io/controller-uid"] != uid {
		c.invalid(at.Child("selector"), labelSelector(selector), "`selector` not auto-generated")
	}
}

func validateCronJob(cron, old object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(cron, "spec")
	if c.require(at, spec, "schedule") {
		c.schedule(at, spec, nested.Map(old, "spec"))
	}
	if old == nil || spec["timeZone"] != nested.Map(old, "spec")["timeZone"] {
		c.timeZone(at, spec)
	}
	c.oneOf(at, spec, "concurrencyPolicy", "Allow", "Forbid", "Replace")
	c.nonNegative(at, spec, "startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
	c.jobSpec(at.Child("jobTemplate", "spec"), nested.Map(spec, "jobTemplate", "spec"))
	const maxName = validation.DNS1123LabelMaxLength - 11 // a job's name is the CronJob's name and the minute
	if name := nested.String(cron, "metadata", "name"); len(name) > maxName {
		c.invalid(field.NewPath("metadata").Child("name"), name, "must be no more than 52 characters")
	}
	return c.errs
}

func validateReplicationController(controller, _ object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(controller, "spec")
	c.nonNegative(at, spec, "replicas", "minReadySeconds")
	if len(nested.Map(spec, "selector")) == 0 {
		c.add(field.Required(at.Child("selector"), ""))
	}
	if template := nested.Map(spec, "template"); template == nil {
		c.add(field.Required(at.Child("template"), ""))
	} else {
		set := nested.StringMap(template, "metadata", "labels")
		if !labels.SelectorFromSet(nested.StringMap(spec, "selector")).Matches(labels.Set(set)) {
			c.invalid(at.Child("template", "metadata", "labels"), set, "`selector` does not match template `labels`")
		}
		c.podTemplate(at.Child("template"), template)
		if nested.Map(template, "spec")["activeDeadlineSeconds"] != nil {
			c.add(field.Forbidden(at.Child("template", "spec", "activeDeadlineSeconds"), "not supported"))
		}
	}
	return c.errs
}
