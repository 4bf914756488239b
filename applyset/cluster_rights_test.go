package applyset_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/transport"
)

// TestSet_WithoutClusterWideRights applies, waits for and deletes a set in two namespaces as a user with roles in these alone.
func TestSet_WithoutClusterWideRights(t *testing.T) {
	e := newEnvironment(t)
	more := client.NewNamespace(t, e.Client)
	user := "applier-" + e.namespace
	const role = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: applier, namespace: IN}
rules: [{apiGroups: [""], resources: [secrets, configmaps], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: applier, namespace: IN}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: applier}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: USER}]
`
	for _, namespace := range []string{e.namespace, more} {
		for _, obj := range e.objects(t, replace(role, "IN", namespace, "USER", user)) {
			resource, err := e.ForObject(t.Context(), obj.Object)
			require.NoError(t, err)
			_, err = resource.Create(t.Context(), obj.Object, nil)
			require.NoError(t, err)
		}
	}
	applier, err := e.Impersonate(transport.Impersonation{User: user})
	require.NoError(t, err)
	set := applyset.New(applier, applyset.Parent{Namespace: e.namespace, Name: "rights"}, nil)
	objects := append(e.configMaps(t, "x", "a", "b"), e.objects(t, strings.ReplaceAll("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: IN}\n", "IN", more))...)
	_, err = set.Apply(t.Context(), objects, nil)
	require.NoError(t, err)
	require.NoError(t, set.Wait(t.Context(), objects, nil))
	events, err := set.Apply(t.Context(), objects[:1], nil)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"unchanged ConfigMap a", "pruned ConfigMap b", "pruned ConfigMap c"}, outcomes(events))
}
