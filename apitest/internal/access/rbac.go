package access

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

const rbacGroup = "rbac.authorization.k8s.io"

// rule is a PolicyRule of a Role or ClusterRole.
type rule struct {
	Verbs           []string `json:"verbs"`
	APIGroups       []string `json:"apiGroups,omitempty"`
	Resources       []string `json:"resources,omitempty"`
	ResourceNames   []string `json:"resourceNames,omitempty"`
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
}

// role is a Role or ClusterRole.
type role struct {
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Rules           []rule            `json:"rules"`
	AggregationRule *struct {
		ClusterRoleSelectors []metav1.LabelSelector `json:"clusterRoleSelectors"`
	} `json:"aggregationRule"`
}

// binding is a RoleBinding or ClusterRoleBinding.
type binding struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Subjects []subject         `json:"subjects"`
	RoleRef  struct {
		APIGroup string `json:"apiGroup"`
		Kind     string `json:"kind"`
		Name     string `json:"name"`
	} `json:"roleRef"`
}

type subject struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// rbacAllows reports whether a rule allows the request, with the name of the binding or the errors as the reason.
func (a *Access) rbacAllows(user *User, attributes Attributes) (bool, string) {
	allowedBy := ""
	errs := a.visitRules(user, attributes.Namespace, func(source string, r rule) bool {
		if r.allows(attributes) {
			allowedBy = source
		}
		return allowedBy == ""
	})
	switch {
	case allowedBy != "":
		return true, "RBAC: allowed by " + allowedBy
	case len(errs) == 1:
		return false, "RBAC: " + errs[0]
	case len(errs) > 1:
		return false, "RBAC: [" + strings.Join(errs, ", ") + "]"
	}
	return false, ""
}

// visitRules calls visit with the rules of the user until it returns false. It returns errors for bindings to missing roles.
func (a *Access) visitRules(user *User, namespace string, visit func(source string, r rule) bool) (errs []string) {
	visitBindings := func(resource, namespace string) bool {
		for _, b := range decodeAll[binding](a.objects, resource, namespace) {
			i := slices.IndexFunc(b.Subjects, func(s subject) bool { return s.matches(user, namespace) })
			if i < 0 {
				continue
			}
			rules, err := a.rulesOf(b.RoleRef.Kind, b.RoleRef.Name, namespace)
			if err != "" {
				errs = append(errs, err)
			}
			for _, r := range rules {
				if !visit(b.describe(b.Subjects[i]), r) {
					return false
				}
			}
		}
		return true
	}
	if visitBindings("clusterrolebindings", "") && namespace != "" {
		visitBindings("rolebindings", namespace)
	}
	return errs
}

// rulesOf returns the rules of a role, including aggregated rules, or an error text if the role does not exist.
func (a *Access) rulesOf(kind, name, namespace string) (rules []rule, err string) {
	resource := strings.ToLower(kind) + "s"
	switch kind {
	case "ClusterRole":
		namespace = ""
	case "Role":
	default:
		return nil, fmt.Sprintf("unsupported role reference kind: %q", kind)
	}
	roles := decodeAll[role](a.objects, resource, namespace)
	i := slices.IndexFunc(roles, func(r role) bool { return r.Metadata.Name == name })
	if i < 0 {
		return nil, fmt.Sprintf("%s.%s %q not found", strings.ToLower(kind), rbacGroup, name)
	}
	rules = roles[i].Rules
	if roles[i].AggregationRule == nil {
		return rules, ""
	}
	for _, selector := range roles[i].AggregationRule.ClusterRoleSelectors {
		matches, err := metav1.LabelSelectorAsSelector(&selector)
		if err != nil {
			continue
		}
		for _, other := range roles {
			if other.Metadata.Name != name && matches.Matches(labels.Set(other.Metadata.Labels)) {
				rules = append(slices.Clip(rules), other.Rules...)
			}
		}
	}
	return rules, ""
}

func (s subject) matches(user *User, namespace string) bool {
	switch s.Kind {
	case "User":
		return s.Name == user.Name
	case "Group":
		return slices.Contains(user.Groups, s.Name)
	case "ServiceAccount":
		if s.Namespace != "" {
			namespace = s.Namespace
		}
		return namespace != "" && user.Name == serviceAccountPrefix+namespace+":"+s.Name
	}
	return false
}

// describe formats the binding as in the API server's reasons: NAME/NAMESPACE.
func (b binding) describe(s subject) string {
	kind := "ClusterRoleBinding"
	name := b.Metadata.Name
	subjectName := s.Name
	namespace := s.Namespace
	if b.Metadata.Namespace != "" {
		kind = "RoleBinding"
		name = name + "/" + b.Metadata.Namespace
		if namespace == "" {
			namespace = b.Metadata.Namespace
		}
	}
	if s.Kind == "ServiceAccount" {
		subjectName += "/" + namespace
	}
	return fmt.Sprintf("%s %q of %s %q to %s %q", kind, name, b.RoleRef.Kind, b.RoleRef.Name, s.Kind, subjectName)
}

func (r rule) allows(attributes Attributes) bool {
	if !has(r.Verbs, attributes.Verb) {
		return false
	}
	if attributes.Resource == "" {
		return slices.ContainsFunc(r.NonResourceURLs, func(url string) bool {
			prefix, isPattern := strings.CutSuffix(url, "*")
			return url == attributes.Path || isPattern && strings.HasPrefix(attributes.Path, prefix)
		})
	}
	return has(r.APIGroups, attributes.Group) && r.hasResource(attributes.Resource, attributes.Subresource) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, attributes.Name))
}

func (r rule) hasResource(resource, subresource string) bool {
	if subresource == "" {
		return has(r.Resources, resource)
	}
	return has(r.Resources, resource+"/"+subresource) || slices.Contains(r.Resources, "*/"+subresource)
}

// has reports whether the list contains the value or "*".
func has(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// decodeAll returns the stored objects of an RBAC resource. Undecodable objects grant nothing.
func decodeAll[T any](objects Objects, resource, namespace string) []T {
	stored, _, err := objects.List(rbacGroup, resource, namespace, 0)
	if err != nil {
		return nil
	}
	all := make([]T, 0, len(stored))
	for _, object := range stored {
		var one T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &one); err == nil {
			all = append(all, one)
		}
	}
	return all
}

// bootstrapRoles are the user-facing ClusterRoles and bindings created by a real API server, as stored by Kubernetes 1.36.
//
//go:embed bootstrap.json
var bootstrapRoles []byte

// Bootstrap returns the initial ClusterRoles and ClusterRoleBindings with RBAC: cluster-admin, admin, edit and view with their
// aggregated roles, and the roles for discovery by every user.
func Bootstrap() ([]map[string]any, error) {
	var objects []map[string]any
	if err := json.Unmarshal(bootstrapRoles, &objects); err != nil {
		return nil, fmt.Errorf("read the bootstrap roles: %w", err)
	}
	return objects, nil
}
