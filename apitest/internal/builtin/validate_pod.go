package builtin

import (
	"math"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

func validatePod(pod, old object) field.ErrorList {
	c := &checker{}
	spec := nested.Map(pod, "spec")
	at := field.NewPath("spec")
	c.podSpec(at, spec)
	if old == nil && nested.String(spec, "nodeName") != "" && len(nested.Slice(spec, "schedulingGates")) > 0 {
		c.add(field.Forbidden(at.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"))
	}
	if old != nil {
		c.podUpdate(at, spec, nested.Map(old, "spec"))
	}
	return c.errs
}

// podUpdate adds errors for changes of immutable fields of a pod.
func (c *checker) podUpdate(at *field.Path, spec, old object) {
	for _, name := range []string{"containers", "initContainers"} {
		containers := nested.Maps(spec, name)
		if len(containers) != len(nested.Maps(old, name)) {
			c.add(field.Forbidden(at.Child(name), "pod updates may not add or remove containers"))
			return
		}
		for i, container := range containers {
			if image := nested.String(container, "image"); strings.TrimSpace(image) != image {
				c.invalid(at.Child(name).Index(i).Child("image"), image, "must not have leading or trailing whitespace")
			}
		}
	}
	munged, _ := deepCopy(spec).(object)
	for _, name := range []string{"containers", "initContainers"} {
		for i, container := range nested.Maps(munged, name) {
			before := nested.Maps(old, name)[i]
			container["image"] = before["image"]
			if lifecycle := nested.Map(container, "lifecycle"); lifecycle != nil { // dropped without an os
				copyField(lifecycle, nested.Map(before, "lifecycle"), "stopSignal")
				if len(lifecycle) == 0 {
					copyField(container, before, "lifecycle")
				}
			}
		}
	}
	for _, name := range []string{"activeDeadlineSeconds", "schedulingGates", "tolerations", "schedulingGroup"} {
		copyField(munged, old, name)
	}
	if len(nested.Slice(old, "schedulingGates")) > 0 {
		copyField(munged, old, "affinity")
		if hasEntries(nested.Map(spec, "nodeSelector"), nested.Map(old, "nodeSelector")) {
			copyField(munged, old, "nodeSelector")
		}
	}
	c.keptTolerations(at.Child("tolerations"), spec, old)
	if before := nested.Int64(old, "activeDeadlineSeconds"); before > 0 && (spec["activeDeadlineSeconds"] == nil || nested.Int64(spec, "activeDeadlineSeconds") > before) {
		c.invalid(at.Child("activeDeadlineSeconds"), spec["activeDeadlineSeconds"], "must not be removed or increased")
	}
	if !equality.Semantic.DeepEqual(munged, old) {
		c.add(field.Forbidden(at, "pod updates may not change fields other than `spec.containers[*].image`,"+
			"`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"+
			"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"))
	}
}

// hasEntries reports whether a map has all entries of another.
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
	withoutSeconds := func(toleration object) object {
		copied := runtimeCopy(toleration)
		delete(copied, "tolerationSeconds")
		return copied
	}
	for _, before := range nested.Maps(old, "tolerations") {
		isKept := func(after object) bool {
			return equality.Semantic.DeepEqual(withoutSeconds(after), withoutSeconds(before))
		}
		if !slices.ContainsFunc(nested.Maps(spec, "tolerations"), isKept) {
			c.add(field.Forbidden(at, "existing toleration can not be modified except its tolerationSeconds"))
			return
		}
	}
}

// podTemplate checks the template of a workload.
func (c *checker) podTemplate(at *field.Path, template object) {
	metadata := nested.Map(template, "metadata")
	c.add(metavalidation.ValidateLabels(nested.StringMap(metadata, "labels"), at.Child("labels"))...)
	c.add(apivalidation.ValidateAnnotations(nested.StringMap(metadata, "annotations"), at.Child("annotations"))...)
	c.podSpec(at.Child("spec"), nested.Map(template, "spec"))
	if len(nested.Slice(template, "spec", "ephemeralContainers")) > 0 {
		c.add(field.Forbidden(at.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"))
	}
}

func (c *checker) podSpec(at *field.Path, spec object) {
	volumes := c.volumes(at.Child("volumes"), spec)
	claims := nested.Maps(spec, "volumeClaimTemplateNames") // of a StatefulSet
	for _, claim := range claims {
		volumes[nested.String(claim, "name")] = true
	}
	names := map[string]bool{}
	if c.require(at, spec, "containers") {
		c.containers(at.Child("containers"), nested.Maps(spec, "containers"), volumes, names, false)
	}
	c.containers(at.Child("initContainers"), nested.Maps(spec, "initContainers"), volumes, names, true)
	c.oneOf(at, spec, "restartPolicy", "Always", "OnFailure", "Never")
	c.oneOf(at, spec, "dnsPolicy", "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
	if spec["dnsPolicy"] == "None" && len(nested.Map(spec, "dnsConfig")) == 0 {
		c.add(field.Required(at.Child("dnsConfig"), "must provide `dnsConfig` when `dnsPolicy` is None"))
	}
	for _, name := range []string{"serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"} {
		if value := nested.String(spec, name); value != "" {
			c.subdomain(at.Child(name), value)
		}
	}
	if deadline, ok := spec["activeDeadlineSeconds"].(int64); ok && (deadline < 1 || deadline > math.MaxInt32) {
		c.invalid(at.Child("activeDeadlineSeconds"), deadline, validation.InclusiveRangeError(1, math.MaxInt32))
	}
	c.tolerations(at.Child("tolerations"), nested.Maps(spec, "tolerations"))
}

func (c *checker) tolerations(at *field.Path, tolerations []object) {
	for i, toleration := range tolerations {
		at := at.Index(i)
		key := nested.String(toleration, "key")
		operator := nested.String(toleration, "operator")
		value := nested.String(toleration, "value")
		if key != "" {
			c.add(metavalidation.ValidateLabelName(key, at.Child("key"))...)
		} else if operator != "Exists" {
			c.invalid(at.Child("operator"), operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
		}
		if toleration["tolerationSeconds"] != nil && nested.String(toleration, "effect") != "NoExecute" {
			c.invalid(at.Child("effect"), nested.String(toleration, "effect"), "effect must be 'NoExecute' when `tolerationSeconds` is set")
		}
		switch operator {
		case "Equal", "":
			if messages := validation.IsValidLabelValue(value); len(messages) > 0 {
				c.invalid(at.Child("operator"), value, strings.Join(messages, ";"))
			}
		case "Exists":
			if value != "" {
				c.invalid(at.Child("operator"), toleration, "value must be empty when `operator` is 'Exists'")
			}
		default:
			c.add(field.NotSupported(at.Child("operator"), operator, []string{"Equal", "Exists"}))
		}
		if effect := nested.String(toleration, "effect"); effect != "" {
			c.oneOf(at, toleration, "effect", "NoSchedule", "PreferNoSchedule", "NoExecute")
		}
	}
}

// volumes checks the volumes and returns the valid names.
func (c *checker) volumes(at *field.Path, spec object) map[string]bool {
	names := map[string]bool{}
	for i, volume := range nested.Maps(spec, "volumes") {
		at := at.Index(i)
		own := &checker{}
		own.volumeSource(at, volume)
		name := nested.String(volume, "name")
		if name == "" {
			own.add(field.Required(at.Child("name"), ""))
		} else {
			own.label(at.Child("name"), name)
		}
		if names[name] {
			own.add(field.Duplicate(at.Child("name"), name))
		}
		if len(own.errs) == 0 {
			names[name] = true
		}
		c.add(own.errs...)
	}
	return names
}

// volumeKeys returns the sources of volumes in the server's order of validation.
func volumeKeys() []string {
	return []string{"emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi", "glusterfs", "flocker",
		"persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc", "flexVolume", "configMap", "azureFile",
		"vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO", "csi", "ephemeral", "image"}
}

func (c *checker) volumeSource(at *field.Path, volume object) {
	found := false
	for _, key := range volumeKeys() {
		source := nested.Map(volume, key)
		switch {
		case source == nil:
			continue
		case found:
			c.add(field.Forbidden(at.Child(key), "may not specify more than 1 volume type"))
			continue
		}
		found = true
		at := at.Child(key)
		switch key {
		case "secret":
			c.require(at, source, "secretName")
		case "configMap":
			c.require(at, source, "name")
		case "persistentVolumeClaim":
			c.require(at, source, "claimName")
		case "hostPath":
			if c.require(at, source, "path") {
				c.noBacksteps(at.Child("path"), nested.String(source, "path"))
			}
		case "nfs":
			c.require(at, source, "server")
			if c.require(at, source, "path") && !path.IsAbs(nested.String(source, "path")) {
				c.invalid(at.Child("path"), nested.String(source, "path"), "must be an absolute path")
			}
		case "csi":
			c.require(at, source, "driver")
		}
	}
	if !found {
		c.add(field.Required(at, "must specify a volume type"))
	}
}

func (c *checker) noBacksteps(at *field.Path, value string) {
	if slices.Contains(strings.Split(value, "/"), "..") {
		c.invalid(at, value, "must not contain '..'")
	}
}
