package builtin

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/structural"
)

// Validate returns the validation errors of a built-in object, except for its metadata, and the fields that the write sets or
// changes although their rules are incomplete, as paths such as "spec.podFailurePolicy". old is nil for a creation. An error has
// the server's type and field, but a text of its own.
func Validate(resource schema.GroupResource, subresource string, obj, old map[string]any) (errs field.ErrorList, notValidated []string) {
	errs, notValidated = check(resource, subresource, obj, old)
	if validate := validators()[resource.String()]; validate != nil && subresource == "" {
		errs = append(errs, validate(obj, old)...)
	}
	errs = withoutUnexamined(errs)
	if subresource == "" {
		errs = append(errs, mountsOfInvalidVolumes(resource, obj, errs)...)
		if resource.String() == "statefulsets.apps" {
			countClaimVolumes(obj, errs)
		}
	}
	return append(errs, checkDeclared(resource, subresource, obj, old, errs)...), notValidated
}

// notExamined is the detail of a forbidden field whose content the server does not validate.
const notExamined = "must not be set here"

// withoutUnexamined removes the errors at and below forbidden fields with the detail notExamined.
func withoutUnexamined(errs field.ErrorList) field.ErrorList {
	for _, forbidden := range slices.Clone(errs) {
		if forbidden.Type != field.ErrorTypeForbidden || forbidden.Detail != notExamined {
			continue
		}
		errs = slices.DeleteFunc(errs, func(err *field.Error) bool {
			return err != forbidden && isWithinField(err.Field, forbidden.Field)
		})
		for name, reported := range map[string]string{".cephfs": ".cephFS", ".downwardAPI": ".downwarAPI"} { // the server's spellings
			if prefix, found := strings.CutSuffix(forbidden.Field, name); found {
				forbidden.Field = prefix + reported
			}
		}
	}
	return errs
}

// validators returns the rules of resources that depend on several fields or on the stored object. Other rules are in rules.txt.
// old is nil for a creation.
var validators = sync.OnceValue(func() map[string]func(obj, old object) field.ErrorList {
	return map[string]func(obj, old object) field.ErrorList{
		"clusterrolebindings.rbac.authorization.k8s.io":  validateSubjects,
		"clusterroles.rbac.authorization.k8s.io":         validateClusterRole,
		"configmaps":                                     validateConfigMap,
		"cronjobs.batch":                                 validateCronJob,
		"customresourcedefinitions.apiextensions.k8s.io": structural.ValidateDefinition,
		"daemonsets.apps":                                validateWorkload,
		"deployments.apps":                               validateDeployment,
		"events":                                         validateCoreEvent,
		"events.events.k8s.io":                           validateEvent,
		"jobs.batch":                                     validateJob,
		"persistentvolumeclaims":                         validateClaim,
		"pods":                                           validatePod,
		"priorityclasses.scheduling.k8s.io":              validatePriorityClass,
		"replicasets.apps":                               validateWorkload,
		"replicationcontrollers":                         validateReplicationController,
		"rolebindings.rbac.authorization.k8s.io":         validateSubjects,
		"secrets":                                        validateSecret,
		"services":                                       validateService,
		"statefulsets.apps":                              validateStatefulSet,
	}
})

func validatePriorityClass(class, old object) field.ErrorList {
	if name := nested.String(class, "metadata", "name"); strings.HasPrefix(name, "system-") && old == nil {
		return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), "the prefix system- is reserved")}
	}
	return nil
}

// validateClusterRole checks the selectors of an aggregated cluster role.
func validateClusterRole(role, _ object) field.ErrorList {
	c := &checker{}
	for i, selector := range nested.Maps(role, "aggregationRule", "clusterRoleSelectors") {
		if selectorOf(selector) == nil {
			c.invalid(field.NewPath("aggregationRule", "clusterRoleSelectors").Index(i), "", "invalid label selector")
		}
	}
	return c.errs
}

// validateSubjects checks the subjects of a role binding or cluster role binding.
func validateSubjects(binding, _ object) field.ErrorList {
	c := &checker{}
	for i, subject := range nested.Maps(binding, "subjects") {
		at := field.NewPath("subjects").Index(i)
		name := nested.String(subject, "name")
		group := rbacGroup
		if subject["kind"] == "ServiceAccount" {
			group = ""
			if name != "" {
				c.invalid(at.Child("name"), name, apivalidation.ValidateServiceAccountName(name, false)...)
			}
			if binding["kind"] == "ClusterRoleBinding" && nested.String(subject, "namespace") == "" {
				c.add(field.Required(at.Child("namespace"), ""))
			}
		}
		if isKnown := slices.Contains([]any{"ServiceAccount", "User", "Group"}, subject["kind"]); isKnown && nested.String(subject, "apiGroup") != group {
			c.add(field.NotSupported(at.Child("apiGroup"), nested.String(subject, "apiGroup"), []string{group}))
		}
	}
	return c.errs
}

// maxConfigSize is the maximum total size of the values of a Secret or ConfigMap.
const maxConfigSize = 1024 * 1024

func validateConfigMap(config, old object) field.ErrorList {
	c := &checker{}
	c.immutableContent(config, old, "data", "binaryData")
	for key := range nested.Map(config, "data") {
		if nested.Map(config, "binaryData")[key] != nil {
			c.invalid(field.NewPath("data").Key(key), key, "key is in binaryData, too")
		}
	}
	if contentSize(config, "data", false)+contentSize(config, "binaryData", true) > maxConfigSize {
		c.add(field.TooLong(field.NewPath(""), "", maxConfigSize))
	}
	return c.errs
}

func validateSecret(secret, old object) field.ErrorList {
	c := &checker{}
	c.immutableContent(secret, old, "data")
	if contentSize(secret, "data", true) > maxConfigSize {
		c.add(field.TooLong(field.NewPath("data"), "", maxConfigSize))
	}
	c.secretType(secret)
	return c.errs
}

// secretType checks the data required by the type of a secret.
func (c *checker) secretType(secret object) {
	data := nested.Map(secret, "data")
	at := field.NewPath("data")
	require := func(keys ...string) {
		for _, key := range keys {
			if data[key] == nil {
				c.add(field.Required(at.Key(key), ""))
			}
		}
	}
	switch typ := nested.String(secret, "type"); typ {
	case "kubernetes.io/tls":
		require("tls.crt", "tls.key")
	case "kubernetes.io/basic-auth":
		if data["username"] == nil && data["password"] == nil {
			require("username", "password")
		}
	case "kubernetes.io/ssh-auth":
		if data["ssh-privatekey"] == "" {
			c.add(field.Required(at.Key("ssh-privatekey"), ""))
		}
		require("ssh-privatekey")
	case "kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson":
		key := "." + strings.TrimPrefix(typ, "kubernetes.io/")
		require(key)
		content, err := base64.StdEncoding.DecodeString(nested.String(data, key))
		if data[key] != nil && (err != nil || json.Unmarshal(content, &map[string]any{}) != nil) {
			c.invalid(at.Key(key), "", "must be JSON")
		}
	case "kubernetes.io/service-account-token":
		const name = "kubernetes.io/service-account.name"
		if nested.String(secret, "metadata", "annotations", name) == "" {
			c.add(field.Required(field.NewPath("metadata", "annotations").Key(name), ""))
		}
	}
}

// immutableContent adds an error for each changed field of an immutable Secret or ConfigMap.
func (c *checker) immutableContent(obj, old object, names ...string) {
	if old == nil || !nested.Bool(old, "immutable") {
		return
	}
	for _, name := range append(names, "immutable") {
		if isChanged(obj[name], old[name]) {
			c.add(field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set"))
		}
	}
}

// contentSize returns the size of the values of a field, decoded from base64 or not.
func contentSize(obj object, name string, isBase64 bool) (size int) {
	for _, value := range nested.Map(obj, name) {
		text, _ := value.(string)
		if isBase64 {
			size += len(text) / 4 * 3
		} else {
			size += len(text)
		}
	}
	return size
}

// validateClaim checks the requested storage of a claim, and that an update changes the binding or the size only.
func validateClaim(claim, old object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(claim, "spec")
	storage := nested.Map(spec, "resources", "requests")["storage"]
	size := quantity(storage)
	if inStorage := at.Child("resources").Key("storage"); storage == nil {
		c.add(field.Required(inStorage, ""))
	} else if size.Sign() <= 0 {
		c.invalid(inStorage, size.String(), "must be greater than zero")
	}
	if old == nil {
		return c.errs
	}
	before := nested.Map(old, "spec")
	mutable := []string{"dataSource", "dataSourceRef"} // dropped or checked by the kind of source
	if nested.String(before, "volumeName") == "" {
		mutable = append(mutable, "volumeName") // set once, by binding
	}
	if nested.String(old, "status", "phase") == "Bound" {
		mutable = append(mutable, "resources", "volumeAttributesClassName")
	}
	if changedExcept(spec, before, mutable...) {
		c.add(field.Forbidden(at, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"))
	}
	if isChanged(spec["volumeMode"], before["volumeMode"]) {
		c.invalid(field.NewPath("volumeMode"), spec["volumeMode"], "field is immutable")
	}
	if size.Cmp(quantity(nested.Map(before, "resources", "requests")["storage"])) < 0 && size.Cmp(quantity(nested.Map(old, "status", "capacity")["storage"])) <= 0 {
		c.add(field.Forbidden(at.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
	}
	return c.errs
}

// changedExcept reports whether an update changes fields beside the named fields.
func changedExcept(obj, old object, names ...string) bool {
	munged := runtimeCopy(obj)
	for _, name := range names {
		copyField(munged, old, name)
	}
	return isChanged(munged, old)
}

// runtimeCopy returns a shallow copy.
func runtimeCopy(obj object) object {
	out := make(object, len(obj))
	for name, value := range obj {
		out[name] = value
	}
	return out
}

// validateCronJob checks the name, from which the names of jobs are made.
func validateCronJob(cron, _ object) field.ErrorList {
	c := &checker{}
	const maxName = validation.DNS1123LabelMaxLength - 11
	if name := nested.String(cron, "metadata", "name"); len(name) > maxName {
		c.invalid(field.NewPath("metadata", "name"), name, "must be no more than 52 characters")
	}
	c.jobTemplate(field.NewPath("spec", "jobTemplate", "spec"), nested.Map(cron, "spec", "jobTemplate", "spec"))
	return c.errs
}
