package generate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/unstructured"
)

const rbacVersion = "rbac.authorization.k8s.io/v1"

// ruleOptions are the options of roles.
type ruleOptions struct {
	verbs, resources, resourceNames, nonResourceURLs []string
	aggregation                                      map[string]string
}

func (o *ruleOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.verbs, "verb", nil, "Verb that applies to the resources contained in the rule")
	fs.StringSliceVar(&o.resources, "resource", nil, "Resource that the rule applies to")
	fs.StringArrayVar(&o.resourceNames, "resource-name", nil, "Resource in the white list that the rule applies to, repeat this flag for multiple items")
}

func role() *Generator {
	o := &ruleOptions{}
	return &Generator{
		Use: "role NAME --verb=verb --resource=resource.group/subresource [--resource-name=resourcename]", Short: "Create a role with single rule",
		AddFlags: o.addFlags,
		Generate: func(ctx context.Context, env *Environment, name string, _ []string) (*unstructured.Object, error) {
			if len(o.verbs) > 0 && len(o.resources) == 0 {
				return nil, errors.New("at least one resource must be specified")
			}
			rules, err := o.rules(ctx, env)
			return newObject(rbacVersion, "Role", name, object{"rules": rules}), err
		},
	}
}

func clusterRole() *Generator {
	o := &ruleOptions{}
	return &Generator{
		Use: "clusterrole NAME --verb=verb --resource=resource.group [--resource-name=resourcename]", Short: "Create a cluster role",
		AddFlags: func(fs *pflag.FlagSet) {
			o.addFlags(fs)
			fs.StringSliceVar(&o.nonResourceURLs, "non-resource-url", nil, "A partial url that user should have access to.")
			fs.StringToStringVar(&o.aggregation, "aggregation-rule", nil, "An aggregation label selector for combining ClusterRoles.")
		},
		Generate: func(ctx context.Context, env *Environment, name string, _ []string) (*unstructured.Object, error) {
			if len(o.aggregation) > 0 {
				return o.aggregated(name)
			}
			if len(o.verbs) > 0 && len(o.resources)+len(o.nonResourceURLs) == 0 {
				return nil, errors.New("one of resource or nonResourceURL must be specified")
			}
			rules, err := o.rules(ctx, env)
			return newObject(rbacVersion, "ClusterRole", name, object{"rules": rules}), err
		},
	}
}

func (o *ruleOptions) aggregated(name string) (*unstructured.Object, error) {
	if len(o.verbs)+len(o.resources)+len(o.resourceNames)+len(o.nonResourceURLs) > 0 {
		return nil, errors.New("aggregation rule must be specified without nonResourceURLs, verbs, resources or resourceNames")
	}
	labels := object{}
	for key, value := range o.aggregation {
		labels[key] = value
	}
	selectors := []any{object{"matchLabels": labels}}
	return newObject(rbacVersion, "ClusterRole", name, object{"aggregationRule": object{"clusterRoleSelectors": selectors}, "rules": nil}), nil
}

// rules returns a rule for each API group, and a rule for non-resource URLs.
func (o *ruleOptions) rules(ctx context.Context, env *Environment) ([]any, error) {
	verbs := unique(o.verbs)
	if slices.Contains(verbs, "*") {
		verbs = []string{"*"}
	}
	if len(verbs) == 0 {
		return nil, errors.New("at least one verb must be specified")
	}
	resources, err := o.byGroup(ctx, env, verbs)
	if err != nil {
		return nil, err
	}
	var rules []any
	for _, group := range slices.Sorted(maps.Keys(resources)) {
		rule := object{"verbs": list(verbs), "apiGroups": []any{group}, "resources": list(unique(resources[group]))}
		if len(o.resourceNames) > 0 {
			rule["resourceNames"] = list(unique(o.resourceNames))
		}
		rules = append(rules, rule)
	}
	if len(o.nonResourceURLs) == 0 {
		return rules, nil
	}
	if err := o.checkURLs(verbs); err != nil {
		return nil, err
	}
	return append(rules, object{"verbs": list(verbs), "nonResourceURLs": list(o.nonResourceURLs)}), nil
}

func standardVerbs() []string {
	return []string{"*", "get", "delete", "list", "create", "update", "patch", "watch", "proxy", "deletecollection", "use", "bind", "escalate", "impersonate"}
}

// byGroup maps API groups to resources and subresources.
func (o *ruleOptions) byGroup(ctx context.Context, env *Environment, verbs []string) (map[string][]string, error) {
	for _, verb := range verbs {
		if len(o.resources) > 0 && !slices.Contains(standardVerbs(), verb) {
			env.Warn("Warning: '%s' is not a standard resource verb", verb)
		}
	}
	groups := map[string][]string{}
	for _, text := range o.resources {
		if text == "*" {
			return map[string][]string{"": {"*"}}, nil
		}
		name, subresource, _ := strings.Cut(text, "/")
		plural, group, _ := strings.Cut(name, ".")
		if plural == "" {
			return nil, errors.New("resource must be specified if apiGroup/subresource specified")
		}
		if plural != "*" {
			var err error
			if group, plural, err = env.Resource(ctx, name); err != nil {
				return nil, err
			}
		}
		if subresource != "" {
			plural += "/" + subresource
		}
		groups[group] = append(groups[group], plural)
	}
	return groups, nil
}

func (o *ruleOptions) checkURLs(verbs []string) error {
	for _, verb := range verbs {
		if !slices.Contains([]string{"*", "get", "post", "put", "delete", "patch", "head", "options"}, verb) {
			return fmt.Errorf("invalid verb: '%s' for nonResourceURL", verb)
		}
	}
	for _, url := range o.nonResourceURLs {
		switch {
		case url == "*":
		case !strings.HasPrefix(url, "/"):
			return errors.New("nonResourceURL should start with /")
		case strings.Contains(url[:len(url)-1], "*"):
			return errors.New("nonResourceURL only supports wildcard matches when '*' is at the end")
		}
	}
	return nil
}

// bindingOptions are the options of role bindings.
type bindingOptions struct {
	clusterRole, role              string
	users, groups, serviceAccounts []string
}

func (o *bindingOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.clusterRole, "clusterrole", "", "ClusterRole this binding should reference")
	fs.StringArrayVar(&o.users, "user", nil, "Usernames to bind to the role. The flag can be repeated to add multiple users.")
	fs.StringArrayVar(&o.groups, "group", nil, "Groups to bind to the role. The flag can be repeated to add multiple groups.")
	fs.StringArrayVar(&o.serviceAccounts, "serviceaccount", nil, "Service accounts to bind to the role, in the format <namespace>:<name>. The flag can be repeated to add multiple service accounts.")
}

func roleBinding() *Generator {
	o := &bindingOptions{}
	return &Generator{
		Use:   "rolebinding NAME --clusterrole=NAME|--role=NAME [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname]",
		Short: "Create a role binding for a particular role or cluster role", Failure: "failed to create rolebinding: ",
		Names: map[string]string{"clusterrole": "clusterroles", "role": "roles"},
		AddFlags: func(fs *pflag.FlagSet) {
			o.addFlags(fs)
			fs.StringVar(&o.role, "role", "", "Role this RoleBinding should reference")
		},
		Generate: simple(func(name string) (*unstructured.Object, error) {
			if (o.clusterRole == "") == (o.role == "") {
				return nil, errors.New("exactly one of clusterrole or role must be specified")
			}
			return o.generate("RoleBinding", name)
		}),
	}
}

func clusterRoleBinding() *Generator {
	o := &bindingOptions{}
	return &Generator{
		Use:   "clusterrolebinding NAME --clusterrole=NAME [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname]",
		Short: "Create a cluster role binding for a particular cluster role", Failure: "failed to create clusterrolebinding: ",
		Required: []string{"clusterrole"}, AddFlags: o.addFlags, Names: map[string]string{"clusterrole": "clusterroles"},
		Generate: simple(func(name string) (*unstructured.Object, error) { return o.generate("ClusterRoleBinding", name) }),
	}
}

func (o *bindingOptions) generate(kind, name string) (*unstructured.Object, error) {
	const group = "rbac.authorization.k8s.io"
	reference := object{"apiGroup": group, "kind": "ClusterRole", "name": o.clusterRole}
	if o.role != "" {
		reference["kind"] = "Role"
		reference["name"] = o.role
	}
	var subjects []any
	for _, user := range o.users {
		subjects = append(subjects, object{"apiGroup": group, "kind": "User", "name": user})
	}
	for _, name := range o.groups {
		subjects = append(subjects, object{"apiGroup": group, "kind": "Group", "name": name})
	}
	for _, account := range o.serviceAccounts {
		namespace, name, found := strings.Cut(account, ":")
		if !found || namespace == "" || name == "" || strings.Contains(name, ":") {
			return nil, errors.New("serviceaccount must be <namespace>:<name>")
		}
		subjects = append(subjects, object{"kind": "ServiceAccount", "namespace": namespace, "name": name})
	}
	fields := object{"roleRef": reference}
	if len(subjects) > 0 {
		fields["subjects"] = subjects
	}
	return newObject(rbacVersion, kind, name, fields), nil
}
