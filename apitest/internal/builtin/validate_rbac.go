package builtin

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

func validateRole(role, _ object) field.ErrorList {
	c := &checker{}
	c.policyRules(role, true)
	return c.errs
}

func validateClusterRole(role, _ object) field.ErrorList {
	c := &checker{}
	c.policyRules(role, false)
	if aggregation := nested.Map(role, "aggregationRule"); aggregation != nil {
		at := field.NewPath("aggregationRule", "clusterRoleSelectors")
		selectors := nested.Maps(aggregation, "clusterRoleSelectors")
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
	for i, rule := range nested.Maps(role, "rules") {
		at := field.NewPath("rules").Index(i)
		if len(nested.Slice(rule, "verbs")) == 0 {
			c.add(field.Required(at.Child("verbs"), "verbs must contain at least one value"))
		}
		if urls := nested.Slice(rule, "nonResourceURLs"); len(urls) > 0 {
			if namespaced {
				c.invalid(at.Child("nonResourceURLs"), urls, "namespaced rules cannot apply to non-resource URLs")
			}
			if len(nested.Slice(rule, "apiGroups"))+len(nested.Slice(rule, "resources"))+len(nested.Slice(rule, "resourceNames")) > 0 {
				c.invalid(at.Child("nonResourceURLs"), urls, "rules cannot apply to both regular resources and non-resource URLs")
			}
			continue
		}
		if len(nested.Slice(rule, "apiGroups")) == 0 {
			c.add(field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(nested.Slice(rule, "resources")) == 0 {
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
	ref := nested.Map(binding, "roleRef")
	if group := nested.String(ref, "apiGroup"); group != rbacGroup {
		c.add(field.NotSupported(at.Child("apiGroup"), group, []string{rbacGroup}))
	}
	if kind := nested.String(ref, "kind"); !slices.Contains(kinds, kind) {
		c.add(field.NotSupported(at.Child("kind"), kind, kinds))
	}
	if c.require(at, ref, "name") {
		c.invalid(at.Child("name"), nested.String(ref, "name"), content.IsPathSegmentName(nested.String(ref, "name"))...)
	}
	for i, subject := range nested.Maps(binding, "subjects") {
		c.subject(field.NewPath("subjects").Index(i), subject, len(kinds) == 2)
	}
	if old != nil && !equality.Semantic.DeepEqual(ref, nested.Map(old, "roleRef")) {
		c.invalid(at, roleRef{nested.String(ref, "apiGroup"), nested.String(ref, "kind"), nested.String(ref, "name")}, "cannot change roleRef")
	}
	return c.errs
}

func (c *checker) subject(at *field.Path, subject object, namespaced bool) {
	name := nested.String(subject, "name")
	group := nested.String(subject, "apiGroup")
	c.require(at, subject, "name")
	switch kind := nested.String(subject, "kind"); kind {
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
