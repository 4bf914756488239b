package access_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

const rbacObject = `{apiVersion: rbac.authorization.k8s.io/v1, kind: `

// role returns a ClusterRole or, in the test's namespace, a Role.
func role(kind, name, rules string) string {
	return rbacObject + fmt.Sprintf(`%s, metadata: {name: NAMESPACE-%s}, rules: [%s]}`, kind, name, rules)
}

// roleBinding returns a binding of that kind to a role.
func roleBinding(kind, name, roleKind, roleName, user string) string {
	return rbacObject + fmt.Sprintf(`%s, metadata: {name: NAMESPACE-%s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: NAMESPACE-%s}, subjects: [{kind: User, name: NAMESPACE-%s}]}`, kind, name, roleKind, roleName, user)
}

// grantors are users who may write RBAC objects: plainly, escalating and binding all roles, and escalating or binding one by name.
func grantors(t *testing.T, s *compare.Server) map[string]*compare.Server {
	t.Helper()
	const all = `{apiGroups: [rbac.authorization.k8s.io], resources: [roles, clusterroles, rolebindings, clusterrolebindings], verbs: [get, list, create, update, patch, delete]}`
	const own = `, {apiGroups: [""], resources: [configmaps], verbs: [get, list]}, {apiGroups: [apps], resources: ["*/scale", deployments], verbs: ["*"]}, {apiGroups: [""], resources: [secrets], resourceNames: [mine], verbs: [get]}, {nonResourceURLs: ["/metrics/*", /healthz], verbs: [get]}`
	users := map[string]*compare.Server{}
	for name, more := range map[string]string{
		"plain":    own,
		"escalate": `, {apiGroups: [rbac.authorization.k8s.io], resources: [roles, clusterroles], verbs: [escalate]}`,
		"binder":   `, {apiGroups: [rbac.authorization.k8s.io], resources: [roles, clusterroles], verbs: [bind]}`,
		"one":      `, {apiGroups: [rbac.authorization.k8s.io], resources: [roles, clusterroles], resourceNames: [NAMESPACE-strong], verbs: [bind, escalate]}`,
		"admin":    `, {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}, {nonResourceURLs: ["*"], verbs: ["*"]}`,
	} {
		s.Need(t, role("ClusterRole", name, all+more), roleBinding("ClusterRoleBinding", name, "ClusterRole", name, name))
		users[name] = s.As(t, transport.Impersonation{User: s.Namespace + "-" + name, Groups: []string{"grantors"}})
		users[name].Eventually(t, func() bool {
			_, err := users[name].Handle(t, s.Object(t, role("Role", "x", ""))).ListPage(t.Context(), nil)
			return err == nil
		})
	}
	users["master"] = s.As(t, transport.Impersonation{User: "master", Groups: []string{"system:masters"}})
	return users
}

func TestConfirmNoEscalation_AsOnServer(t *testing.T) {
	dryRun := []string{metav1.DryRunAll}
	const strong = `{apiGroups: [""], resources: [secrets, configmaps], verbs: [get, list, delete]}, {apiGroups: [""], resources: [secrets], resourceNames: [a, b], verbs: [patch]}`
	const strongPaths = strong + `, {nonResourceURLs: [/logs, "/healthz/*"], verbs: [get, post]}`
	created := map[string]string{
		"role":             role("Role", "role", strong),
		"cluster role":     role("ClusterRole", "role", strongPaths),
		"held":             role("Role", "held", `{apiGroups: [""], resources: [configmaps], verbs: [list, get]}, {apiGroups: [apps], resources: [deployments/scale], verbs: [get]}`),
		"held by name":     role("Role", "named", `{apiGroups: [""], resources: [secrets], resourceNames: [mine], verbs: [get]}`),
		"not by name":      role("Role", "named", `{apiGroups: [""], resources: [secrets], resourceNames: [mine, other], verbs: [get]}`),
		"paths":            role("ClusterRole", "paths", `{nonResourceURLs: [/metrics/a, /healthz], verbs: [get]}`),
		"all":              role("ClusterRole", "all", `{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}`),
		"subresource":      role("Role", "subresource", `{apiGroups: [apps], resources: [deployments/status], verbs: [get]}, {apiGroups: [apps], resources: ["*/scale"], verbs: ["*"]}`),
		"empty":            role("Role", "empty", ""),
		"invalid":          role("Role", "invalid", `{resources: [pods], verbs: [get]}`),
		"aggregated":       rbacObject + `ClusterRole, metadata: {name: NAMESPACE-aggregated}, rules: [], aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}`,
		"binding":          roleBinding("RoleBinding", "b", "Role", "strong", "x"),
		"cluster binding":  roleBinding("ClusterRoleBinding", "b", "ClusterRole", "strong", "x"),
		"mixed binding":    roleBinding("RoleBinding", "b", "ClusterRole", "strong", "x"),
		"weak binding":     roleBinding("RoleBinding", "b", "Role", "weak", "x"),
		"absent":           roleBinding("RoleBinding", "b", "Role", "absent", "x"),
		"absent cluster":   roleBinding("ClusterRoleBinding", "b", "ClusterRole", "absent", "x"),
		"unsupported kind": roleBinding("RoleBinding", "b", "User", "absent", "x"),
	}
	updated := map[string]struct{ object, patch string }{
		"labels of a role":    {role("Role", "strong", ""), `{"metadata":{"labels":{"a":"b"}}}`},
		"nothing of a role":   {role("Role", "strong", ""), `{}`},
		"finalizer of a role": {role("Role", "strong", ""), `{"metadata":{"finalizers":["example.com/a"]}}`},
		"rules of a role":     {role("Role", "weak", ""), `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`},
		"fewer rules":         {role("Role", "strong", ""), `{"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}]}`},
		"subjects":            {roleBinding("RoleBinding", "strong", "", "", ""), `{"subjects":[]}`},
		"owner of a binding":  {roleBinding("RoleBinding", "strong", "", "", ""), `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"b"}]}}`},
		"cluster role":        {role("ClusterRole", "strong", ""), `{"metadata":{"labels":{"a":"b"}}}`},
		"aggregation":         {role("ClusterRole", "weak", ""), `{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}}`},
	}
	compare.Responses(t, &apitest.Options{RBAC: true}, 150, func(t *testing.T, s *compare.Server) map[string]string {
		const weak = `{apiGroups: [""], resources: [configmaps], verbs: [get]}`
		s.Need(t, role("Role", "strong", strong), role("ClusterRole", "strong", strongPaths), role("Role", "weak", weak), role("ClusterRole", "weak", weak),
			roleBinding("RoleBinding", "strong", "Role", "strong", "x"))
		all := map[string]string{}
		for user, as := range grantors(t, s) {
			for name, text := range created {
				obj := s.Object(t, text)
				_, err := as.Handle(t, obj).Create(t.Context(), obj, &metav1.CreateOptions{DryRun: dryRun})
				all[user+" creates "+name] = outcome(s, err)
				_, err = as.Handle(t, obj).Apply(t.Context(), withName(obj, obj.GetName()+"-applied"), &metav1.ApplyOptions{DryRun: dryRun, FieldManager: "m"})
				all[user+" applies "+name] = outcome(s, err)
			}
			for name, tc := range updated {
				obj := s.Object(t, tc.object)
				_, err := as.Handle(t, obj).Patch(t.Context(), obj.GetName(), types.MergePatchType, []byte(tc.patch), &metav1.PatchOptions{DryRun: dryRun})
				all[user+" patches "+name] = outcome(s, err)
			}
		}
		return all
	})
}

// outcome returns the outcome of a write. The texts of validation of built-in kinds are not those of the real server.
func outcome(s *compare.Server, err error) string {
	if !apierrors.IsInvalid(err) {
		return s.Outcome(nil, err)
	}
	var status *apierrors.StatusError
	_ = errors.As(err, &status) // by IsInvalid
	text := "422"
	for _, cause := range status.ErrStatus.Details.Causes {
		text += " " + string(cause.Type) + " " + cause.Field
	}
	return text
}

func withName(obj *unstructured.Object, name string) *unstructured.Object {
	renamed := obj.DeepCopy()
	renamed.SetName(name)
	return renamed
}
