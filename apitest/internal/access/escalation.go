package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// Grant is a creation or an update of a role or binding.
type Grant struct {
	Resource        string         // roles, clusterroles, rolebindings or clusterrolebindings
	Namespace, Name string         // of the request; Name is empty for a creation
	Object          map[string]any // new object
	Old             map[string]any // replaced object, nil for a creation
}

// ConfirmNoEscalation returns a Status 403 if the grant exceeds the user's own rights. The verb escalate on the role, or bind on
// a binding's existing role, permits it. Without RBAC, and for members of system:masters, everything is allowed.
func (a *Access) ConfirmNoEscalation(user *User, grant Grant) error {
	if !a.options.RBAC || slices.Contains(user.Groups, GroupMasters) {
		return nil
	}
	switch grant.Resource {
	case "roles", "clusterroles":
		return a.confirmRole(user, grant)
	case "rolebindings", "clusterrolebindings":
		return a.confirmBinding(user, grant)
	}
	return nil
}

func (g Grant) forbidden(reason error) error {
	name := nested.String(g.Object, "metadata", "name")
	return apierrors.NewForbidden(schema.GroupResource{Group: rbacGroup, Resource: g.Resource}, name, reason)
}

func (a *Access) confirmRole(user *User, grant Grant) error {
	escalate := Attributes{Verb: "escalate", Group: rbacGroup, Resource: grant.Resource, Namespace: grant.Namespace, Name: grant.Name}
	if allowed, _ := a.rbacAllows(user, escalate); allowed {
		return nil
	}
	var wanted, old role
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(grant.Object, &wanted); err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(grant.Old, &old); err != nil {
		return err
	}
	if err := a.covers(user, grant.Namespace, wanted.Rules); err != nil {
		return grant.forbidden(err)
	}
	if !wanted.isAggregated() && !old.isAggregated() {
		return nil
	}
	everything := []rule{
		{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
		{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
	}
	if a.covers(user, grant.Namespace, everything) != nil {
		return grant.forbidden(errors.New("must have cluster-admin privileges to use the aggregationRule"))
	}
	return nil
}

func (r role) isAggregated() bool {
	return r.AggregationRule != nil && len(r.AggregationRule.ClusterRoleSelectors) > 0
}

func (a *Access) confirmBinding(user *User, grant Grant) error {
	var wanted binding
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(grant.Object, &wanted); err != nil {
		return err
	}
	kind := wanted.RoleRef.Kind
	name := wanted.RoleRef.Name
	if kind == "Role" || kind == "ClusterRole" {
		bind := Attributes{Verb: "bind", Group: wanted.RoleRef.APIGroup, Resource: strings.ToLower(kind) + "s", Namespace: grant.Namespace, Name: name}
		if allowed, _ := a.rbacAllows(user, bind); allowed {
			return nil
		}
	}
	rules, missing := a.rulesOf(kind, name, grant.Namespace)
	switch {
	case missing != "" && (kind == "Role" || kind == "ClusterRole"):
		return apierrors.NewNotFound(schema.GroupResource{Group: rbacGroup, Resource: grant.Resource}, name)
	case missing != "":
		return errors.New(missing)
	}
	if err := a.covers(user, grant.Namespace, rules); err != nil {
		return grant.forbidden(err)
	}
	return nil
}

// covers returns an error listing the wanted rights missing in the user's rules for the namespace.
func (a *Access) covers(user *User, namespace string, wanted []rule) error {
	var own []rule
	resolution := a.visitRules(user, namespace, func(_ string, r rule) bool {
		own = append(own, r)
		return true
	})
	missing := map[string]*rule{}
	for _, r := range wanted {
		for _, right := range r.rights() {
			if slices.ContainsFunc(own, func(o rule) bool { return o.covers(right) }) {
				continue
			}
			key := fmt.Sprintf("%q %q %q", right.APIGroups, right.Resources, right.ResourceNames)
			if right.NonResourceURLs != nil {
				key = fmt.Sprintf("%q %q", right.NonResourceURLs, right.Verbs)
			}
			if known, found := missing[key]; found {
				known.Verbs = append(known.Verbs, right.Verbs...)
			} else {
				missing[key] = &right
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var lines []string
	for _, r := range missing {
		lines = append(lines, r.describe())
	}
	slices.Sort(lines)
	text := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s", user.Name, user.Groups, strings.Join(slices.Compact(lines), "\n"))
	switch {
	case len(resolution) == 1:
		text += "; resolution errors: " + resolution[0]
	case len(resolution) > 1:
		text += "; resolution errors: [" + strings.Join(resolution, ", ") + "]"
	}
	return errors.New(text)
}

// rights splits the rule into rules with a single verb and a single resource, name or path.
func (r rule) rights() (rights []rule) {
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				right := rule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
				if len(r.ResourceNames) == 0 {
					rights = append(rights, right)
				}
				for _, name := range r.ResourceNames {
					right.ResourceNames = []string{name}
					rights = append(rights, right)
				}
			}
		}
	}
	for _, url := range r.NonResourceURLs {
		for _, verb := range r.Verbs {
			rights = append(rights, rule{NonResourceURLs: []string{url}, Verbs: []string{verb}})
		}
	}
	return rights
}

// covers reports whether the rule includes a right.
func (r rule) covers(right rule) bool {
	if !has(r.Verbs, right.Verbs[0]) {
		return false
	}
	for _, url := range right.NonResourceURLs {
		return slices.ContainsFunc(r.NonResourceURLs, func(own string) bool {
			return own == url || strings.HasSuffix(own, "*") && strings.HasPrefix(url, strings.TrimRight(own, "*"))
		})
	}
	resource, subresource, _ := strings.Cut(right.Resources[0], "/")
	if !has(r.APIGroups, right.APIGroups[0]) || !r.hasResource(resource, subresource) && !slices.Contains(r.Resources, "*") {
		return false
	}
	return len(r.ResourceNames) == 0 || len(right.ResourceNames) > 0 && slices.Contains(r.ResourceNames, right.ResourceNames[0])
}

// describe formats the rule as in the API server's errors.
func (r rule) describe() string {
	var parts []string
	for _, part := range []struct {
		name   string
		values []string
	}{
		{"APIGroups", r.APIGroups}, {"Resources", r.Resources}, {"NonResourceURLs", r.NonResourceURLs},
		{"ResourceNames", r.ResourceNames}, {"Verbs", r.Verbs},
	} {
		if len(part.values) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", part.name, part.values))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
