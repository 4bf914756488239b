package rbac

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/anykind/anykind/unstructured"
)

// Roles returns the smallest roles of that name for all recorded requests. The first is a ClusterRole for permissions in all
// namespaces, for cluster-scoped resources and for non-resource paths. A Role for each namespace follows, sorted. Removing any
// verb, resource, name or path from a rule would forbid a recorded request; the options of [NewRecorder] bound that precision.
// The objects are ready for [unstructured.EncodeYAML], Create and Apply. There are no roles before the first request. The caller
// may change the result.
//
// Roles omit permissions granted to every user by the ClusterRoles system:discovery and system:basic-user. They include known
// additional checks of the server: create for an apply with a new object, and create for exec, attach and port-forward (only
// checked since Kubernetes 1.35). They lack permissions derived from the content of objects, such as escalate and bind for roles,
// approve and sign for certificate requests, or impersonate: the roles are for the user of the requests.
func (r *Recorder) Roles(name string) []*unstructured.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	namespaces := sets.Set[string]{}
	for _, needed := range r.permissions {
		namespaces = namespaces.Union(sets.KeySet(needed))
	}
	var roles []*unstructured.Object
	for _, namespace := range sets.List(namespaces) { // "" is the first
		if rules := r.rules(namespace); len(rules) > 0 {
			roles = append(roles, newRole(namespace, name, rules))
		}
	}
	return roles
}

func newRole(namespace, name string, rules []any) *unstructured.Object {
	kind := "ClusterRole"
	metadata := map[string]any{"name": name}
	if namespace != "" {
		kind = "Role"
		metadata["namespace"] = namespace
	}
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules,
	}}
}

// rule is a rule on resources of a group, or on paths. Empty names mean all objects.
type rule struct {
	isPath                  bool
	group                   string
	resources, names, verbs []string
}

// rules returns the rules for a namespace, or for all namespaces. Resources share a rule only if their verbs and names are equal,
// so that the rule allows nothing more.
func (r *Recorder) rules(namespace string) []any {
	rules := merge(r.needed(namespace), func(r *rule) *[]string { return &r.verbs })
	rules = merge(rules, func(r *rule) *[]string { return &r.resources })
	var encoded []any
	for _, one := range rules {
		fields := map[string]any{"verbs": list(one.verbs)}
		if one.isPath {
			fields["nonResourceURLs"] = list(one.resources)
		} else {
			fields["apiGroups"] = []any{one.group}
			fields["resources"] = list(one.resources)
		}
		if len(one.names) > 0 {
			fields["resourceNames"] = list(one.names)
		}
		encoded = append(encoded, fields)
	}
	return encoded
}

// needed returns a rule for each verb on each resource, without permissions included in a wider rule.
func (r *Recorder) needed(namespace string) []rule {
	var rules []rule
	for p, scopes := range r.permissions {
		names := scopes[namespace]
		if namespace != "" {
			names = without(names, scopes[""])
		}
		if p.verb != "*" {
			wider := p
			wider.verb = "*"
			names = without(without(names, r.permissions[wider][namespace]), r.permissions[wider][""])
		}
		if len(names) > 0 {
			listed := sets.List(names.Difference(sets.New("")))
			rules = append(rules, rule{p.isPath, p.group, []string{p.resource}, listed, []string{p.verb}})
		}
	}
	return rules
}

// without returns names - wider. "" in wider includes all names.
func without(names, wider sets.Set[string]) sets.Set[string] {
	switch {
	case wider.Has(""):
		return nil
	case names.Has(""):
		return names
	default:
		return names.Difference(wider)
	}
}

// merge joins rules with a difference in a single list, and sorts them.
func merge(rules []rule, differing func(*rule) *[]string) []rule {
	merged := map[string]*rule{}
	for _, one := range rules {
		element := *differing(&one)
		*differing(&one) = nil
		key := one.key()
		if merged[key] == nil {
			merged[key] = &one
		}
		all := differing(merged[key])
		*all = append(*all, element...)
	}
	result := make([]rule, 0, len(merged))
	for _, one := range merged {
		slices.Sort(*differing(one))
		result = append(result, *one)
	}
	slices.SortFunc(result, func(a, b rule) int { return cmp.Compare(a.key(), b.key()) })
	return result
}

// key returns a text for grouping equal rules.
func (r *rule) key() string {
	return fmt.Sprintf("%t %q %q %q %q", r.isPath, r.group, r.resources, r.verbs, r.names)
}

func list(texts []string) []any {
	elements := make([]any, len(texts))
	for i, text := range texts {
		elements[i] = text
	}
	return elements
}
