package admin

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/unstructured"
)

// rule is a rule of a role, with the fields of the API in their order: it is printed by %+v.
type rule struct {
	Verbs           []string `json:"verbs"`
	APIGroups       []string `json:"apiGroups,omitempty"`
	Resources       []string `json:"resources,omitempty"`
	ResourceNames   []string `json:"resourceNames,omitempty"`
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
}

type role struct {
	Rules           []rule       `json:"rules"`
	AggregationRule *aggregation `json:"aggregationRule"`
}

type aggregation struct {
	ClusterRoleSelectors []metav1.LabelSelector `json:"clusterRoleSelectors,omitempty"`
}

// role plans the change of a role.
func (o *reconcileOptions) role(existing, expected *unstructured.Object) (*reconciliation, error) {
	want, err := unstructured.As[role](expected)
	if err != nil {
		return nil, err
	}
	if existing == nil {
		return &reconciliation{obj: expected.DeepCopy(), operation: operationCreate, what: "rules", missing: texts(want.Rules)}, nil
	}
	have, err := unstructured.As[role](existing)
	if err != nil {
		return nil, err
	}
	done := merged(existing, expected)
	done.what = "rules"
	done.isExtraReported = o.removeRules
	var extra []rule
	if want.AggregationRule == nil || have.AggregationRule == nil {
		extra = uncovered(want.Rules, have.Rules)
	}
	missing := uncovered(have.Rules, want.Rules)
	done.missing = texts(missing)
	done.extra = texts(extra)
	switch {
	case o.removeRules && len(missing)+len(extra) > 0:
		done.operation = operationUpdate
		err = setList(done.obj, want.Rules, "rules")
	case len(missing) > 0:
		done.operation = operationUpdate
		err = setList(done.obj, append(have.Rules, missing...), "rules")
	}
	if err != nil {
		return nil, err
	}
	return done, o.aggregate(done, have.AggregationRule, want.AggregationRule)
}

// aggregate plans the change of a role's aggregation rule.
func (o *reconcileOptions) aggregate(done *reconciliation, have, want *aggregation) error {
	if want == nil {
		if have == nil {
			return nil
		}
		done.operation = operationUpdate
		_, err := unstructured.Delete(done.obj, "aggregationRule")
		return err
	}
	if have == nil {
		have = &aggregation{}
	}
	missing := otherSelectors(want.ClusterRoleSelectors, have.ClusterRoleSelectors)
	extra := otherSelectors(have.ClusterRoleSelectors, want.ClusterRoleSelectors)
	selectors := append(have.ClusterRoleSelectors, missing...)
	if o.removeRules {
		selectors = want.ClusterRoleSelectors
	}
	if len(missing) == 0 && (len(extra) == 0 || !o.removeRules) {
		return nil
	}
	done.operation = operationUpdate
	converted, err := unstructured.From(map[string]any{"apiVersion": "v1", "kind": "List", "rule": aggregation{selectors}})
	if err != nil {
		return err
	}
	return unstructured.Set(done.obj, converted.Object["rule"], "aggregationRule")
}

// otherSelectors returns the selectors of list missing from a second list.
func otherSelectors(list, other []metav1.LabelSelector) []metav1.LabelSelector {
	var result []metav1.LabelSelector
	for _, item := range list {
		if !slices.ContainsFunc(other, func(o metav1.LabelSelector) bool { return reflect.DeepEqual(o, item) }) {
			result = append(result, item)
		}
	}
	return result
}

// uncovered returns the parts of rules that owners do not permit: a rule for each group, resource, verb and name.
func uncovered(owners, rules []rule) []rule {
	var result []rule
	for _, one := range rules {
		for _, part := range splitRule(one) {
			if !slices.ContainsFunc(owners, func(owner rule) bool { return covers(owner, part) }) {
				result = append(result, part)
			}
		}
	}
	return result
}

// splitRule splits a rule into rules with a single verb, resource and name.
func splitRule(r rule) []rule {
	var result []rule
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				part := rule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}
				if len(r.ResourceNames) == 0 {
					result = append(result, part)
				}
				for _, name := range r.ResourceNames {
					part.ResourceNames = []string{name}
					result = append(result, part)
				}
			}
		}
	}
	for _, url := range r.NonResourceURLs {
		for _, verb := range r.Verbs {
			result = append(result, rule{Verbs: []string{verb}, NonResourceURLs: []string{url}})
		}
	}
	return result
}

// covers reports whether owner permits part, a result of splitRule.
func covers(owner, part rule) bool {
	has := func(list []string, values []string) bool {
		return !slices.ContainsFunc(values, func(value string) bool { return !slices.Contains(list, value) })
	}
	hasNames := len(owner.ResourceNames) == 0 || len(part.ResourceNames) > 0 && has(owner.ResourceNames, part.ResourceNames)
	return hasNames &&
		(slices.Contains(owner.Verbs, "*") || has(owner.Verbs, part.Verbs)) &&
		(slices.Contains(owner.APIGroups, "*") || has(owner.APIGroups, part.APIGroups)) &&
		coversResources(owner.Resources, part.Resources) && coversURLs(owner.NonResourceURLs, part.NonResourceURLs)
}

func coversResources(owner, resources []string) bool {
	return !slices.ContainsFunc(resources, func(resource string) bool {
		_, subresource, isSubresource := strings.Cut(resource, "/")
		isCovered := slices.Contains(owner, "*") || slices.Contains(owner, resource) || isSubresource && slices.Contains(owner, "*/"+subresource)
		return !isCovered
	})
}

func coversURLs(owner, urls []string) bool {
	return !slices.ContainsFunc(urls, func(url string) bool {
		return !slices.ContainsFunc(owner, func(o string) bool {
			return o == url || strings.HasSuffix(o, "*") && strings.HasPrefix(url, strings.TrimRight(o, "*"))
		})
	})
}
