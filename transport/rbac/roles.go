package rbac

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Roles returns the smallest roles of that name that allow every recorded request: a ClusterRole for what needs all
// namespaces, for cluster-scoped resources and for paths that are not a resource's, and after it a Role for every other
// namespace, sorted. If any verb, resource, name or path is removed from a rule, a recorded request is forbidden; options of
// [NewRecorder] bound that precision. The objects are ready for [unstructured.EncodeYAML], Create and Apply. There are none
// before the first request, and the caller may change them.
//
// Roles leave out what Kubernetes allows every user by the ClusterRoles system:discovery and system:basic-user. They have
// what the server checks besides a request's own verb if that is known from the request and its response: create for an
// apply that creates an object, and create for exec, attach and port-forward, which servers before Kubernetes 1.35 do not
// check. They do not have what depends on the content of objects, such as escalate and bind for roles, approve and sign for
// certificate requests, or impersonate: the roles are for the user as whom the requests are made.
func (r *Recorder) Roles(name string) []*unstructured.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	var roles []*unstructured.Object
	if rules := append(r.resourceRules(""), r.pathRules()...); len(rules) > 0 {
		roles = append(roles, newRole("ClusterRole", "", name, rules))
	}
	namespaces := sets.Set[string]{}
	for _, where := range r.permissions {
		namespaces = namespaces.Union(sets.KeySet(where.namespaces))
	}
	for _, namespace := range sets.List(namespaces) {
		if rules := r.resourceRules(namespace); len(rules) > 0 {
			roles = append(roles, newRole("Role", namespace, name, rules))
		}
	}
	return roles
}

func newRole(kind, namespace, name string, rules []any) *unstructured.Object {
	role := &unstructured.Object{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": name}, "rules": rules,
	}}
	if namespace != "" {
		role.SetNamespace(namespace)
	}
	return role
}

// rule is a rule on resources of one group. names is empty for all.
type rule struct {
	group                   string
	resources, names, verbs []string
}

// resourceRules returns the rules for one namespace, or for all. Resources share a rule if their verbs and names are the
// same, so that it allows nothing else.
func (r *Recorder) resourceRules(namespace string) []any {
	rules := merge(r.needed(namespace), func(r *rule) *[]string { return &r.verbs })
	rules = merge(rules, func(r *rule) *[]string { return &r.resources })
	var encoded []any
	for _, one := range rules {
		fields := map[string]any{"apiGroups": []any{one.group}, "resources": list(one.resources), "verbs": list(one.verbs)}
		if len(one.names) > 0 {
			fields["resourceNames"] = list(one.names)
		}
		encoded = append(encoded, fields)
	}
	return encoded
}

// needed returns a rule for each verb on each resource that no wider one includes.
func (r *Recorder) needed(namespace string) []rule {
	var rules []rule
	for p, where := range r.permissions {
		needed := where.in(namespace)
		if namespace != "" {
			needed = needed.without(where.all)
		}
		if p.verb != "*" {
			all := r.permissions[permission{"*", p.group, p.resource}]
			needed = needed.without(all.in(namespace)).without(all.in(""))
		}
		if needed != nil {
			rules = append(rules, rule{p.group, []string{p.resource}, sets.List(needed.some), []string{p.verb}})
		}
	}
	return rules
}

// without returns the names that wider does not have, nil for none.
func (n *names) without(wider *names) *names {
	switch {
	case n == nil || wider == nil:
		return n
	case wider.all:
		return nil
	case n.all:
		return n
	}
	if rest := n.some.Difference(wider.some); len(rest) > 0 {
		return &names{some: rest}
	}
	return nil
}

// merge joins rules that differ in one list only, and sorts them.
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

// key is a text that equal rules share.
func (r *rule) key() string {
	return fmt.Sprintf("%q %q %q %q", r.group, r.resources, r.verbs, r.names)
}

// pathRules returns the rules for paths that are not a resource's: one for each set of verbs.
func (r *Recorder) pathRules() []any {
	var rules []rule
	for p := range r.paths {
		rules = append(rules, rule{resources: []string{p.path}, verbs: []string{p.verb}})
	}
	rules = merge(rules, func(r *rule) *[]string { return &r.verbs })
	var encoded []any
	for _, one := range merge(rules, func(r *rule) *[]string { return &r.resources }) {
		encoded = append(encoded, map[string]any{"nonResourceURLs": list(one.resources), "verbs": list(one.verbs)})
	}
	return encoded
}

func list(texts []string) []any {
	elements := make([]any, len(texts))
	for i, text := range texts {
		elements[i] = text
	}
	return elements
}
