package builtin

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// validateNamespace checks spec.finalizers of a new namespace. An update keeps them.
func validateNamespace(namespace, old object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec", "finalizers")
	if old != nil {
		return nil
	}
	for _, value := range nested.Slice(namespace, "spec", "finalizers") {
		name, _ := value.(string)
		c.invalid(at, name, validation.IsQualifiedName(name)...)
		if !strings.Contains(name, "/") && !slices.Contains([]string{"kubernetes", metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}, name) {
			c.invalid(at, name, "name is neither a standard finalizer name nor is it fully qualified")
		}
	}
	return c.errs
}

// validateEvent checks the namespace of the object of an event.
func validateEvent(event, _ object) field.ErrorList {
	c := &checker{}
	namespace := nested.String(event, "involvedObject", "namespace")
	if own := nested.String(event, "metadata", "namespace"); namespace != own && (namespace != "" || own != "default") {
		c.invalid(field.NewPath("involvedObject", "namespace"), namespace, "does not match event.namespace")
	}
	return c.errs
}

func validateLease(lease, _ object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(lease, "spec")
	if n, ok := spec["leaseDurationSeconds"].(int64); ok && n <= 0 {
		c.invalid(at.Child("leaseDurationSeconds"), n, "must be greater than 0")
	}
	if n, ok := spec["leaseTransitions"].(int64); ok && n < 0 {
		c.invalid(at.Child("leaseTransitions"), n, "must be greater than or equal to 0")
	}
	return c.errs
}

func validateBudget(budget, _ object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(budget, "spec")
	if spec["minAvailable"] != nil && spec["maxUnavailable"] != nil {
		c.invalid(at, printedBudget(spec), "minAvailable and maxUnavailable cannot be both set")
	}
	for _, name := range []string{"minAvailable", "maxUnavailable"} {
		if spec[name] != nil {
			c.intOrPercent(at.Child(name), spec[name])
			c.notMoreThanAll(at.Child(name), spec[name])
		}
	}
	if selector := nested.Map(spec, "selector"); selector != nil {
		c.selector(at.Child("selector"), selector)
	}
	if policy := nested.String(spec, "unhealthyPodEvictionPolicy"); policy != "" {
		c.oneOf(at, spec, "unhealthyPodEvictionPolicy", "AlwaysAllow", "IfHealthyBudget")
	}
	return c.errs
}

// printedBudget returns a budget's spec as shown in the server's errors.
func printedBudget(spec object) any {
	return struct {
		MinAvailable, Selector, MaxUnavailable, UnhealthyPodEvictionPolicy any
	}{spec["minAvailable"], spec["selector"], spec["maxUnavailable"], spec["unhealthyPodEvictionPolicy"]}
}

func validateAutoscaler(autoscaler, _ object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(autoscaler, "spec")
	minimum, hasMinimum := spec["minReplicas"].(int64)
	maximum := nested.Int64(spec, "maxReplicas")
	if hasMinimum && minimum < 1 {
		c.invalid(at.Child("minReplicas"), minimum, "must be greater than or equal to 1")
	}
	if maximum == 0 {
		c.add(field.Required(at.Child("maxReplicas"), "must be set and greater than 0"))
	} else if maximum < 0 {
		c.invalid(at.Child("maxReplicas"), maximum, "must be greater than or equal to 1")
	}
	if hasMinimum && maximum < minimum {
		c.invalid(at.Child("maxReplicas"), maximum, "must be greater than or equal to `minReplicas`")
	}
	if ref := nested.Map(spec, "scaleTargetRef"); nested.String(ref, "apiVersion") == "" {
		c.invalid(at.Child("scaleTargetRef", "apiVersion"), "", "apiVersion must specify API group")
	}
	for _, name := range []string{"kind", "name"} {
		if ref := nested.Map(spec, "scaleTargetRef"); c.require(at.Child("scaleTargetRef"), ref, name) {
			c.invalid(at.Child("scaleTargetRef", name), nested.String(ref, name), content.IsPathSegmentName(nested.String(ref, name))...)
		}
	}
	return c.errs
}

func accessModes(c *checker, at *field.Path, spec object) {
	modes := nested.Slice(spec, "accessModes")
	if len(modes) == 0 {
		c.add(field.Required(at.Child("accessModes"), "at least 1 access mode is required"))
	}
	supported := []any{"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"}
	for _, mode := range modes {
		if !slices.Contains(supported, mode) {
			c.add(field.NotSupported(at.Child("accessModes"), fmt.Sprint(mode), []string{"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"}))
		}
	}
	if slices.Contains(modes, any("ReadWriteOncePod")) && len(modes) > 1 {
		c.add(field.Forbidden(at.Child("accessModes"), "may not use ReadWriteOncePod with other access modes"))
	}
	if class := nested.String(spec, "storageClassName"); class != "" {
		c.subdomain(at.Child("storageClassName"), class)
	}
	c.oneOf(at, spec, "volumeMode", "Block", "Filesystem")
}

func validateClaim(claim, old object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(claim, "spec")
	accessModes(c, at, spec)
	if selector := nested.Map(spec, "selector"); selector != nil {
		c.selector(at.Child("selector"), selector)
	}
	storage := nested.Map(spec, "resources", "requests")["storage"]
	inStorage := at.Child("resources").Key("storage")
	if q := quantity(storage); storage == nil {
		c.add(field.Required(inStorage, ""))
	} else if q.Sign() <= 0 {
		c.invalid(inStorage, q.String(), "must be greater than zero")
	}
	if old == nil {
		return c.errs
	}
	munged, _ := deepCopy(spec).(object)
	before := nested.Map(old, "spec")
	for _, name := range []string{"dataSource", "dataSourceRef"} { // dropped or checked by the kind of source
		copyField(munged, before, name)
	}
	if nested.String(before, "volumeName") == "" {
		copyField(munged, before, "volumeName") // set once, by binding
	}
	if nested.String(old, "status", "phase") == "Bound" {
		copyField(munged, before, "resources")
		copyField(munged, before, "volumeAttributesClassName")
	}
	if !equality.Semantic.DeepEqual(munged, before) {
		c.add(field.Forbidden(at, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"))
	}
	size := quantity(storage)
	oldSize := quantity(nested.Map(before, "resources", "requests")["storage"])
	if size.Cmp(oldSize) < 0 && size.Cmp(quantity(nested.Map(old, "status", "capacity")["storage"])) <= 0 {
		c.add(field.Forbidden(at.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
	}
	return c.errs
}

func validateVolume(volume, _ object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(volume, "spec")
	accessModes(c, at, spec)
	if capacity := nested.Map(spec, "capacity"); len(capacity) == 0 {
		c.add(field.Required(at.Child("capacity"), ""))
	} else if capacity["storage"] == nil || len(capacity) > 1 {
		c.add(field.NotSupported(at.Child("capacity"), capacity, []string{"storage"}))
	}
	c.oneOf(at, spec, "persistentVolumeReclaimPolicy", "Delete", "Recycle", "Retain")
	for _, key := range append(volumeKeys(), "local") {
		if spec[key] != nil {
			return c.errs
		}
	}
	c.add(field.Required(at, "must specify a volume type"))
	return c.errs
}

func validateStorageClass(class, old object) field.ErrorList {
	c := &checker{}
	if c.require(nil, class, "provisioner") {
		c.invalid(field.NewPath("provisioner"), strings.ToLower(nested.String(class, "provisioner")), validation.IsQualifiedName(strings.ToLower(nested.String(class, "provisioner")))...)
	}
	c.oneOf(nil, class, "volumeBindingMode", "Immediate", "WaitForFirstConsumer")
	if old != nil {
		if !equality.Semantic.DeepEqual(class["parameters"], old["parameters"]) {
			c.add(field.Forbidden(field.NewPath("parameters"), "updates to parameters are forbidden."))
		}
		if class["provisioner"] != old["provisioner"] {
			c.add(field.Forbidden(field.NewPath("provisioner"), "updates to provisioner are forbidden."))
		}
		c.immutable(nil, class, old, "reclaimPolicy", "volumeBindingMode")
	}
	return c.errs
}

func validateWebhooks(configuration, _ object) field.ErrorList {
	c := &checker{}
	names := map[string]bool{}
	for i, hook := range nested.Maps(configuration, "webhooks") {
		at := field.NewPath("webhooks").Index(i)
		name := nested.String(hook, "name")
		c.add(validation.IsFullyQualifiedName(at.Child("name"), name)...)
		if name != "" && names[name] {
			c.add(field.Duplicate(at.Child("name"), name))
		}
		names[name] = true
		c.webhook(at, hook)
	}
	return c.errs
}

func (c *checker) webhook(at *field.Path, hook object) {
	if versions := nested.Slice(hook, "admissionReviewVersions"); len(versions) == 0 {
		c.add(field.Required(at.Child("admissionReviewVersions"), "must specify one of v1, v1beta1"))
	} else if !slices.Contains(versions, any("v1")) && !slices.Contains(versions, any("v1beta1")) {
		c.invalid(at.Child("admissionReviewVersions"), versions, "must include at least one of v1, v1beta1")
	}
	for i, rule := range nested.Maps(hook, "rules") {
		c.webhookRule(at.Child("rules").Index(i), rule)
	}
	c.oneOf(at, hook, "failurePolicy", "Fail", "Ignore")
	c.oneOf(at, hook, "matchPolicy", "Equivalent", "Exact")
	switch effects := nested.String(hook, "sideEffects"); effects {
	case "None", "NoneOnDryRun":
	case "":
		c.add(field.Required(at.Child("sideEffects"), "must specify one of None, NoneOnDryRun"))
	default:
		c.add(field.NotSupported(at.Child("sideEffects"), effects, []string{"None", "NoneOnDryRun"}))
	}
	if timeout := nested.Int64(hook, "timeoutSeconds"); timeout < 1 || timeout > 30 {
		c.invalid(at.Child("timeoutSeconds"), timeout, "the timeout value must be between 1 and 30 seconds")
	}
	for _, name := range []string{"namespaceSelector", "objectSelector"} {
		c.selector(at.Child(name), nested.Map(hook, name))
	}
	config := nested.Map(hook, "clientConfig")
	if (config["url"] == nil) == (config["service"] == nil) {
		c.add(field.Required(at.Child("clientConfig"), "exactly one of url or service is required"))
	} else if service := nested.Map(config, "service"); service != nil {
		c.require(at.Child("clientConfig", "service"), service, "name")
		c.require(at.Child("clientConfig", "service"), service, "namespace")
	}
}

func (c *checker) webhookRule(at *field.Path, rule object) {
	operations := nested.Slice(rule, "operations")
	c.require(at, rule, "operations")
	supported := []string{"*", "CONNECT", "CREATE", "DELETE", "UPDATE"}
	for i, operation := range operations {
		if operation, _ := operation.(string); !slices.Contains(supported, operation) {
			c.add(field.NotSupported(at.Child("operations").Index(i), operation, supported))
		}
	}
	if len(operations) > 1 && slices.Contains(operations, any("*")) {
		c.invalid(at.Child("operations"), operations, "if '*' is present, must not specify other operations")
	}
	for _, name := range []string{"apiGroups", "apiVersions", "resources"} {
		values := nested.Slice(rule, name)
		c.require(at, rule, name)
		if name != "resources" && len(values) > 1 && slices.Contains(values, any("*")) {
			c.invalid(at.Child(name), values, "if '*' is present, must not specify other "+map[string]string{"apiGroups": "API groups", "apiVersions": "API versions"}[name])
		}
	}
	if scope := nested.String(rule, "scope"); scope != "" {
		c.oneOf(at, rule, "scope", "*", "Cluster", "Namespaced")
	}
}

func validatePriorityClass(class, old object) field.ErrorList {
	c := &checker{}
	if name, value := nested.String(class, "metadata", "name"), nested.Int64(class, "value"); strings.HasPrefix(name, "system-") && old == nil {
		c.add(field.Forbidden(field.NewPath("metadata", "name"), "priority class names with 'system-' prefix are reserved for system use only. error: "+name+" is not a known system priority class"))
	} else if value > 1000000000 {
		c.add(field.Forbidden(field.NewPath("value"), "maximum allowed value of a user defined priority is 1000000000"))
	}
	if old != nil && nested.Int64(class, "value") != nested.Int64(old, "value") {
		c.add(field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
	}
	c.oneOf(nil, class, "preemptionPolicy", "Never", "PreemptLowerPriority")
	return c.errs
}

func validateAdmissionPolicy(policy, _ object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(policy, "spec")
	if len(nested.Slice(spec, "validations"))+len(nested.Slice(spec, "auditAnnotations")) == 0 {
		for _, name := range []string{"validations", "auditAnnotations"} {
			c.add(field.Required(at.Child(name), "validations or auditAnnotations must contain at least one item"))
		}
	}
	constraints := nested.Map(spec, "matchConstraints")
	if constraints == nil {
		c.add(field.Required(at.Child("matchConstraints"), ""))
		return c.errs
	}
	rules := nested.Maps(constraints, "resourceRules")
	if len(rules) == 0 {
		c.add(field.Required(at.Child("matchConstraints", "resourceRules"), ""))
	}
	for i, rule := range rules {
		c.webhookRule(at.Child("matchConstraints", "resourceRules").Index(i), rule)
	}
	return c.errs
}

func validateAdmissionBinding(binding, _ object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(binding, "spec")
	c.require(at, spec, "policyName")
	if ref := nested.Map(spec, "paramRef"); ref != nil && nested.String(ref, "parameterNotFoundAction") == "" {
		c.add(field.Required(at.Child("paramRef", "parameterNotFoundAction"), ""))
	}
	if len(nested.Slice(spec, "validationActions")) == 0 {
		c.add(field.Required(at.Child("validationActions"), "at least one validation action is required"))
	}
	return c.errs
}
