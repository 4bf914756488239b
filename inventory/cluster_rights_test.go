package inventory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/parallel"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/transport"
)

// drawnResources are the resources of the drawn rules.
var drawnResources = []string{"configmaps", "secrets", "services", "leases.coordination.k8s.io", "priorityclasses.scheduling.k8s.io"}

func isDrawn(r *discovery.Resource) bool {
	return slices.Contains(drawnResources, r.GVR.GroupResource().String())
}

// drawRule returns a rule of a ClusterRole. Only some rules permit a list.
func drawRule(r *rand.Rand) map[string]any {
	draw := func(choices ...[]any) []any { return choices[r.IntN(len(choices))] }
	rule := map[string]any{
		"verbs":     draw([]any{"list"}, []any{"list", "watch"}, []any{"*"}, []any{"get"}),
		"apiGroups": draw([]any{""}, []any{"", "coordination.k8s.io"}, []any{"scheduling.k8s.io"}, []any{"*"}),
		"resources": draw([]any{"configmaps"}, []any{"secrets", "services"}, []any{"leases", "configmaps"}, []any{"priorityclasses"}, []any{"services/status"}, []any{"*"}),
	}
	if r.IntN(6) == 0 {
		rule["resourceNames"] = []any{"settings"}
	}
	return rule
}

// bindUsers binds each user to drawn ClusterRoles, in all namespaces or in some.
func bindUsers(t *testing.T, admin *dynamic.Client, r *rand.Rand, users, namespaces []string) {
	const rbac = "rbac.authorization.k8s.io"
	prefix := namespaces[0]
	roles := make([]string, 40)
	for i := range roles {
		roles[i] = fmt.Sprintf("%s-%d", prefix, i)
		rules := []any{drawRule(r)}
		if r.IntN(2) == 0 {
			rules = append(rules, drawRule(r))
		}
		create(t, admin, rbac+"/v1", "ClusterRole", "", roles[i], map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"drawn": prefix}}, "rules": rules,
		})
	}
	for i, user := range users {
		for n := range r.IntN(3) {
			name := fmt.Sprintf("%s-%d-%d", prefix, i, n)
			kind := "RoleBinding"
			namespace := namespaces[r.IntN(len(namespaces))]
			if r.IntN(5) == 0 {
				kind = "ClusterRoleBinding"
				namespace = ""
			}
			create(t, admin, rbac+"/v1", kind, namespace, name, map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"drawn": prefix}},
				"roleRef":  map[string]any{"apiGroup": rbac, "kind": "ClusterRole", "name": roles[r.IntN(len(roles))]},
				"subjects": []any{map[string]any{"apiGroup": rbac, "kind": "User", "name": user}},
			})
		}
	}
	t.Cleanup(func() {
		for _, plural := range []string{"clusterroles", "clusterrolebindings"} {
			resource, err := admin.Resource(context.WithoutCancel(t.Context()), plural)
			if assert.NoError(t, err) {
				_, err = resource.DeleteCollection(context.WithoutCancel(t.Context()), nil, &metav1.ListOptions{LabelSelector: "drawn=" + prefix})
				assert.NoError(t, err)
			}
		}
	})
}

// permittedLists returns the objects that a user can list, by requests of the user.
func permittedLists(ctx context.Context, user *dynamic.Client, namespaces []string) (permitted []string, err error) {
	for _, name := range drawnResources {
		resource, err := user.Resource(ctx, name)
		if err != nil {
			return nil, err
		}
		scopes := []*dynamic.Resource{resource}
		if resource.APIResource().Namespaced {
			scopes = nil
			for _, namespace := range namespaces {
				scopes = append(scopes, resource.Namespace(namespace))
			}
		}
		for _, scope := range scopes {
			for obj, err := range scope.Metadata().List(ctx, nil) {
				if apierrors.IsForbidden(err) {
					break
				}
				if err != nil {
					return nil, err
				}
				permitted = append(permitted, name+" "+obj.GetNamespace()+"/"+obj.GetName())
			}
		}
	}
	slices.Sort(permitted)
	return permitted, nil
}

// TestView_UsersWithDrawnRoles compares the views of 200 users with the lists of the users themselves.
func TestView_UsersWithDrawnRoles(t *testing.T) {
	admin := client.Connect(t, "admin")
	namespaces := []string{client.NewNamespace(t, admin), client.NewNamespace(t, admin), client.NewNamespace(t, admin)}
	for _, namespace := range namespaces {
		create(t, admin, "v1", "ConfigMap", namespace, "settings", nil)
		create(t, admin, "v1", "Secret", namespace, "password", nil)
		create(t, admin, "v1", "Service", namespace, "web", map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": 80}}}})
		create(t, admin, "coordination.k8s.io/v1", "Lease", namespace, "leader", nil)
	}
	users := make([]string, 200)
	for i := range users {
		users[i] = fmt.Sprintf("%s-user-%d", namespaces[0], i)
	}
	bindUsers(t, admin, rand.New(rand.NewPCG(44, 0)), users, namespaces) //nolint:gosec // repeatable

	c := inventory.NewCache(admin, &inventory.ListOptions{Select: isDrawn})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.ErrorIs(t, <-ended, context.Canceled)
	})
	require.NoError(t, c.WaitForSync(t.Context()))
	cached := func(user *dynamic.Client) (found []string, err error) {
		page, err := c.For(user).Query(t.Context(), nil)
		if err != nil {
			return nil, err
		}
		for _, entry := range page.Entries {
			if entry.Namespace == "" || slices.Contains(namespaces, entry.Namespace) {
				found = append(found, entry.APIResource().GVR.GroupResource().String()+" "+entry.Namespace+"/"+entry.Name)
			}
		}
		slices.Sort(found)
		return found, nil
	}
	permitted := make([][]string, len(users))
	parallel.Do(8, len(users), func(i int) {
		user, err := admin.Impersonate(transport.Impersonation{User: users[i]})
		if !assert.NoError(t, err) {
			return
		}
		defer user.Close()
		assert.EventuallyWithT(t, func(t *assert.CollectT) { // the server's authorizer follows the roles
			want, err := permittedLists(ctx, user, namespaces)
			require.NoError(t, err)
			found, err := cached(user)
			require.NoError(t, err)
			assert.Equal(t, want, found, users[i])
			permitted[i] = want
		}, patience, 100*time.Millisecond)
	})
	some := slices.DeleteFunc(permitted, func(list []string) bool { return len(list) == 0 })
	assert.Greater(t, len(some), len(users)/4)
	assert.Less(t, len(some), len(users))
}
