package builtin

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

func validatePod(pod, old object) field.ErrorList {
	c := &checker{}
	spec := nested.Map(pod, "spec")
	at := field.NewPath("spec")
	c.podSpec(at, spec, nil)
	if old == nil && nested.String(spec, "nodeName") != "" && len(nested.Slice(spec, "schedulingGates")) > 0 {
		c.add(field.Forbidden(at.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"))
	}
	if old == nil && len(nested.Slice(spec, "ephemeralContainers")) > 0 {
		c.add(field.Forbidden(at.Child("ephemeralContainers"), "cannot be set on create"))
	}
	if old != nil {
		c.podUpdate(at, spec, nested.Map(old, "spec"))
	}
	return c.errs
}

// podUpdate adds errors for changes of immutable fields of a pod.
func (c *checker) podUpdate(at *field.Path, spec, old object) {
	munged, _ := deepCopy(spec).(object)
	for _, name := range []string{"containers", "initContainers"} {
		before := nested.Maps(old, name)
		if len(nested.Maps(spec, name)) != len(before) {
			c.add(field.Forbidden(at.Child(name), "pod updates may not add or remove containers"))
			return
		}
		for i, container := range nested.Maps(munged, name) {
			container["image"] = before[i]["image"]
			copyStopSignal(container, before[i])
		}
	}
	mutable := []string{"activeDeadlineSeconds", "schedulingGates", "tolerations", "schedulingGroup"}
	if len(nested.Slice(old, "schedulingGates")) > 0 {
		mutable = append(mutable, "affinity")
		if hasEntries(nested.Map(spec, "nodeSelector"), nested.Map(old, "nodeSelector")) {
			mutable = append(mutable, "nodeSelector")
		}
	}
	if changedExcept(munged, old, mutable...) {
		c.add(field.Forbidden(at, "pod updates may not change fields other than images, activeDeadlineSeconds and tolerations (only additions)"))
	}
	if before := nested.Int64(old, "activeDeadlineSeconds"); before > 0 && (spec["activeDeadlineSeconds"] == nil || nested.Int64(spec, "activeDeadlineSeconds") > before) {
		c.invalid(at.Child("activeDeadlineSeconds"), spec["activeDeadlineSeconds"], "must not be removed or increased")
	}
	c.keptTolerations(at.Child("tolerations"), spec, old)
}

// copyStopSignal sets the stop signal of a container to the stop signal of a second container: without an os, the server drops it.
func copyStopSignal(container, from object) {
	lifecycle := nested.Map(container, "lifecycle")
	if lifecycle == nil {
		return
	}
	hadSignal := lifecycle["stopSignal"] != nil
	copyField(lifecycle, nested.Map(from, "lifecycle"), "stopSignal")
	if hadSignal && len(lifecycle) == 0 {
		copyField(container, from, "lifecycle")
	}
}

// hasEntries reports whether a map has all entries of a second map.
func hasEntries(all, some object) bool {
	for name, value := range some {
		if all[name] != value {
			return false
		}
	}
	return true
}

// keptTolerations adds an error if an update removes or changes a toleration, except for its seconds.
func (c *checker) keptTolerations(at *field.Path, spec, old object) {
	for _, before := range nested.Maps(old, "tolerations") {
		isKept := func(after object) bool { return !changedExcept(after, before, "tolerationSeconds") }
		if !slices.ContainsFunc(nested.Maps(spec, "tolerations"), isKept) {
			c.add(field.Forbidden(at, "existing toleration can not be modified except its tolerationSeconds"))
			return
		}
	}
}

// podTemplate checks the template of a workload. claims are the names of claim templates, which are volumes of the pod.
func (c *checker) podTemplate(at *field.Path, template object, claims []string) {
	metadata := nested.Map(template, "metadata")
	c.add(metavalidation.ValidateLabels(nested.StringMap(metadata, "labels"), at.Child("labels"))...)
	c.add(apivalidation.ValidateAnnotations(nested.StringMap(metadata, "annotations"), at.Child("annotations"))...)
	spec := nested.Map(template, "spec")
	if len(nested.Slice(spec, "ephemeralContainers")) > 0 {
		c.add(field.Forbidden(at.Child("spec", "ephemeralContainers"), "must not be set in templates"))
	}
	c.podSpec(at.Child("spec"), spec, claims)
}

// mountsOfInvalidVolumes returns an error for each mount of a volume with errors: the server does not know these volumes.
func mountsOfInvalidVolumes(resource schema.GroupResource, obj object, errs field.ErrorList) field.ErrorList {
	path := podSpecPath(resource.String())
	switch {
	case resource.String() == "pods":
		path = []string{"spec"}
	case path == nil:
		return nil
	}
	c := &checker{}
	spec := nested.Map(obj, path...)
	at := field.NewPath(path[0], path[1:]...)
	invalid := map[string]bool{}
	for i, volume := range nested.Maps(spec, "volumes") {
		inVolume := at.Child("volumes").Index(i).String()
		invalid[nested.String(volume, "name")] = slices.ContainsFunc(errs, func(err *field.Error) bool {
			return isWithinField(err.Field, inVolume) && err.Type != field.ErrorTypeDuplicate
		})
	}
	for _, list := range []string{"containers", "initContainers"} {
		for i, container := range nested.Maps(spec, list) {
			for j, mount := range nested.Maps(container, "volumeMounts") {
				if name := nested.String(mount, "name"); invalid[name] {
					c.add(field.NotFound(at.Child(list).Index(i).Child("volumeMounts").Index(j).Child("name"), name))
				}
			}
		}
	}
	return c.errs
}

// podSpec checks the relations between volumes and containers, and the resources of containers.
func (c *checker) podSpec(at *field.Path, spec object, volumes []string) {
	for _, volume := range nested.Maps(spec, "volumes") {
		volumes = append(volumes, nested.String(volume, "name"))
	}
	for i, toleration := range nested.Maps(spec, "tolerations") {
		at := at.Child("tolerations").Index(i)
		hasExists := toleration["operator"] == "Exists"
		if hasExists && toleration["value"] != nil || !hasExists && toleration["key"] == nil {
			c.invalid(at.Child("operator"), toleration["operator"], "must be Exists without a key, and a key without a value")
		}
		if toleration["tolerationSeconds"] != nil && toleration["effect"] != "NoExecute" {
			c.invalid(at.Child("effect"), toleration["effect"], "must be NoExecute with tolerationSeconds")
		}
	}
	names := map[string]bool{}
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		for i, container := range nested.Maps(spec, list) {
			at := at.Child(list).Index(i)
			if list == "ephemeralContainers" {
				c.ephemeralContainer(at, container, spec["os"] != nil)
			}
			name := nested.String(container, "name")
			if names[name] && name != "" {
				c.add(field.Duplicate(at.Child("name"), name))
			}
			names[name] = true
			for j, mount := range nested.Maps(container, "volumeMounts") {
				if name := nested.String(mount, "name"); !slices.Contains(volumes, name) {
					c.add(field.NotFound(at.Child("volumeMounts").Index(j).Child("name"), name))
				}
			}
			c.resources(at.Child("resources"), nested.Map(container, "resources"))
			if isInit := list == "initContainers" && container["restartPolicy"] != "Always"; isInit {
				for _, name := range []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"} {
					if container[name] != nil && (spec["os"] != nil || !isStopSignal(container[name])) {
						c.add(field.Forbidden(at.Child(name), notExamined))
					}
				}
			}
		}
	}
}

// ephemeralContainer checks the fields without which no container is valid.
func (c *checker) ephemeralContainer(at *field.Path, container object, hasOS bool) {
	for _, name := range []string{"name", "image"} {
		if nested.String(container, name) == "" {
			c.add(field.Required(at.Child(name), ""))
		}
	}
	for _, name := range []string{"lifecycle", "livenessProbe", "readinessProbe", "startupProbe", "resources", "ports"} {
		isDropped := name == "resources" && isZero(container[name]) || !hasOS && isStopSignal(container[name])
		if container[name] != nil && !isDropped {
			c.add(field.Forbidden(at.Child(name), notExamined))
		}
	}
}

// isStopSignal reports whether a value has only a stop signal, which the server drops without an os.
func isStopSignal(value any) bool {
	fields, _ := value.(object)
	return len(fields) == 1 && fields["stopSignal"] != nil
}

// resources checks the quantities of cpu, memory and ephemeral-storage, and requests against limits. Other resources are not
// validated.
func (c *checker) resources(at *field.Path, resources object) {
	for _, list := range []string{"limits", "requests"} {
		for name, value := range nested.Map(resources, list) {
			if q := quantity(value); q.Sign() < 0 {
				c.invalid(at.Child(list).Key(name), q.String(), "must be greater than or equal to 0")
			}
		}
	}
	limits := nested.Map(resources, "limits")
	for name, value := range nested.Map(resources, "requests") {
		request := quantity(value)
		if limit := quantity(limits[name]); limits[name] != nil && request.Cmp(limit) > 0 {
			c.invalid(at.Child("requests"), request.String(), "must be less than or equal to the limit of "+name)
		}
	}
}
