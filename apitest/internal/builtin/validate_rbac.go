package builtin

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateRole(role, _ object) field.ErrorList {
	c := &checker{}
	c.policyRules(role, true)
	return c.errs
}

func validateClusterRole(role, _ object) field.ErrorList {
	c := &checker{}
	c.policyRules(role, false)
	if aggregation := child(role, "aggregationRule"); aggregation != nil {
		at := field.NewPath("aggregationRule", "clusterRoleSelectors")
		selectors := objects(aggregation, "clusterRoleSelectors")
		if len(selectors) == 0 {
			c.add(field.Required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
		}
		for i, selector := range selectors {
			c.selector(at.Index(i), selector)
		}
	}
	return c.errs
}

func (c *checker) policyRules(role object, namespaced bool) {
	for i, rule := range objects(role, "rules") {
		at := field.NewPath("rules").Index(i)
		if len(list(rule, "verbs")) == 0 {
			c.add(field.Required(at.Child("verbs"), "verbs must contain at least one value"))
		}
		if urls := list(rule, "nonResourceURLs"); len(urls) > 0 {
			if namespaced {
				c.invalid(at.Child("nonResourceURLs"), urls, "namespaced rules cannot apply to non-resource URLs")
			}
			if len(list(rule, "apiGroups"))+len(list(rule, "resources"))+len(list(rule, "resourceNames")) > 0 {
				c.invalid(at.Child("nonResourceURLs"), urls, "rules cannot apply to both regular resources and non-resource URLs")
			}
			continue
		}
		if len(list(rule, "apiGroups")) == 0 {
			c.add(field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(list(rule, "resources")) == 0 {
			c.add(field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
}

func validateRoleBinding(binding, old object) field.ErrorList {
	return validateBinding(binding, old, "Role", "ClusterRole")
}

func validateClusterRoleBinding(binding, old object) field.ErrorList {
	return validateBinding(binding, old, "ClusterRole")
}

// roleRef is a reference as shown in the server's errors.
type roleRef struct{ APIGroup, Kind, Name string }

func validateBinding(binding, old object, kinds ...string) field.ErrorList {
	c := &checker{}
	at := field.NewPath("roleRef")
	ref := child(binding, "roleRef")
	if group := text(ref, "apiGroup"); group != rbacGroup {
		c.add(field.NotSupported(at.Child("apiGroup"), group, []string{rbacGroup}))
	}
	if kind := text(ref, "kind"); !slices.Contains(kinds, kind) {
		c.add(field.NotSupported(at.Child("kind"), kind, kinds))
	}
	if c.require(at, ref, "name") {
		c.invalid(at.Child("name"), text(ref, "name"), content.IsPathSegmentName(text(ref, "name"))...)
	}
	for i, subject := range objects(binding, "subjects") {
		c.subject(field.NewPath("subjects").Index(i), subject, len(kinds) == 2)
	}
	if old != nil && !equality.Semantic.DeepEqual(ref, child(old, "roleRef")) {
		c.invalid(at, roleRef{text(ref, "apiGroup"), text(ref, "kind"), text(ref, "name")}, "cannot change roleRef")
	}
	return c.errs
}

func (c *checker) subject(at *field.Path, subject object, namespaced bool) {
	name := text(subject, "name")
	group := text(subject, "apiGroup")
	c.require(at, subject, "name")
	switch kind := text(subject, "kind"); kind {
	case "ServiceAccount":
		if name != "" {
			c.invalid(at.Child("name"), name, apivalidation.ValidateServiceAccountName(name, false)...)
		}
		if group != "" {
			c.add(field.NotSupported(at.Child("apiGroup"), group, []string{""}))
		}
		if !namespaced {
			c.require(at, subject, "namespace")
		}
	case "User", "Group":
		if group != rbacGroup {
			c.add(field.NotSupported(at.Child("apiGroup"), group, []string{rbacGroup}))
		}
	default:
		c.add(field.NotSupported(at.Child("kind"), kind, []string{"ServiceAccount", "User", "Group"}))
	}
}
