package change

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/unstructured"
)

func setSelectorCommand(s *command.State) *cobra.Command {
	o := &setOptions{isPlain: true}
	cmd := &cobra.Command{
		Use:     "selector (-f FILENAME | TYPE NAME) EXPRESSIONS [--resource-version=version]",
		Short:   "Set the selector on a resource",
		Long:    "Set the selector of services. The new selector replaces the old one.",
		Example: "  anyctl set selector service web app=web,tier=front",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("one selector is required")
			}
			selector, err := metav1.ParseToLabelSelector(args[len(args)-1])
			if err != nil {
				return err
			}
			const operation = "selector updated"
			return o.run(cmd.Context(), s, args[:len(args)-1], operation, operation, func(_ *resource.Info, obj *unstructured.Object) error {
				return setSelector(obj, selector)
			})
		},
	}
	o.addFlags(cmd, s)
	cmd.Flags().StringVar(&o.resourceVersion, "resource-version", "", "If non-empty, the selectors update will only succeed if this is the current resource-version for the object. Only valid when specifying a single resource.")
	return cmd
}

func setSelector(obj *unstructured.Object, selector *metav1.LabelSelector) error {
	switch {
	case obj.GetKind() != "Service" || obj.GetAPIVersion() != "v1":
		return errors.New("setting a selector is only supported for Services")
	case len(selector.MatchExpressions) > 0:
		return fmt.Errorf("match expression %v not supported on this object", selector.MatchExpressions)
	}
	labels := map[string]any{}
	for key, value := range selector.MatchLabels {
		labels[key] = value
	}
	return unstructured.Set(obj, any(labels), "spec", "selector")
}

// subjectOptions are the subjects to add with set subject.
type subjectOptions struct{ users, groups, accounts []string }

func setSubjectCommand(s *command.State) *cobra.Command {
	o := &setOptions{failure: "failed to patch subjects to rolebinding: "}
	subjects := &subjectOptions{}
	cmd := &cobra.Command{
		Use:     "subject (-f FILENAME | TYPE NAME) [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname]",
		Short:   "Update the user, group, or service account in a role binding or cluster role binding",
		Long:    "Add users, groups and service accounts to role bindings and cluster role bindings.",
		Example: "  anyctl set subject rolebinding admin --user=user1 --user=user2 --group=group1\n  anyctl set subject clusterrolebinding admin --serviceaccount=namespace:robot",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := subjects.validate(); err != nil {
				return err
			}
			namespace, _, err := s.Connection.Namespace(cmd.Context())
			if err != nil && !o.objects.Local {
				return err
			}
			return o.run(cmd.Context(), s, args, "subjects updated", "", func(t *resource.Info, obj *unstructured.Object) error {
				return subjects.add(t, obj, namespace)
			})
		},
	}
	o.addFlags(cmd, s)
	fs := cmd.Flags()
	fs.StringArrayVar(&subjects.users, "user", nil, "Usernames to bind to the role")
	fs.StringArrayVar(&subjects.groups, "group", nil, "Groups to bind to the role")
	fs.StringArrayVar(&subjects.accounts, "serviceaccount", nil, "Service accounts to bind to the role")
	return cmd
}

func (o *subjectOptions) validate() error {
	if len(o.users)+len(o.groups)+len(o.accounts) == 0 {
		return errors.New("you must specify at least one value of user, group or serviceaccount")
	}
	for _, account := range o.accounts {
		_, name, found := strings.Cut(account, ":")
		if !found || name == "" || strings.Contains(name, ":") {
			return errors.New("serviceaccount must be <namespace>:<name>")
		}
	}
	return nil
}

// add appends missing subjects to a binding. A service account without a namespace gets namespace.
func (o *subjectOptions) add(t *resource.Info, obj *unstructured.Object, namespace string) error {
	const group = "rbac.authorization.k8s.io"
	kind := obj.GetKind()
	if kind != "RoleBinding" && kind != "ClusterRoleBinding" || !strings.HasPrefix(obj.GetAPIVersion(), group+"/") {
		return fmt.Errorf("%s setting subjects is only supported for RoleBinding/ClusterRoleBinding", pair(t))
	}
	var added []any
	for _, user := range sortedUnique(o.users) {
		added = append(added, map[string]any{"kind": "User", "apiGroup": group, "name": user})
	}
	for _, name := range sortedUnique(o.groups) {
		added = append(added, map[string]any{"kind": "Group", "apiGroup": group, "name": name})
	}
	for _, account := range sortedUnique(o.accounts) {
		own, name, _ := strings.Cut(account, ":")
		if own == "" && kind == "ClusterRoleBinding" {
			return errors.New("serviceaccount must be <namespace>:<name>, namespace must be specified")
		}
		if own == "" {
			own = namespace
		}
		added = append(added, map[string]any{"kind": "ServiceAccount", "name": name, "namespace": own})
	}
	current, _, err := unstructured.Get[[]any](obj, "subjects")
	if err != nil {
		return err
	}
	for _, subject := range added {
		if !containsSubject(current, subject) {
			current = append(current, subject)
		}
	}
	return unstructured.Set(obj, any(current), "subjects")
}

func containsSubject(subjects []any, subject any) bool {
	identity := func(subject any) [4]any {
		return [4]any{
			nested.Value(subject, "kind"), nested.Value(subject, "apiGroup"), nested.Value(subject, "namespace"), nested.Value(subject, "name"),
		}
	}
	return slices.ContainsFunc(subjects, func(other any) bool { return identity(other) == identity(subject) })
}

func sortedUnique(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}
