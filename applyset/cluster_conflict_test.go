package applyset_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

// TestSet_ConflictPolicies applies an object with fields of a different manager.
func TestSet_ConflictPolicies(t *testing.T) {
	for name, tc := range map[string]struct {
		policy applyset.ConflictPolicy
		want   map[string]string // of the config map
	}{
		"fail":      {applyset.ConflictFail, map[string]string{"a": "theirs", "b.c_d": "theirs", "free": "theirs"}},
		"force":     {applyset.ConflictForce, map[string]string{"a": "ours", "b.c_d": "ours", "free": "theirs", "own": "ours"}},
		"leave out": {applyset.ConflictSkip, map[string]string{"a": "theirs", "b.c_d": "theirs", "free": "theirs", "own": "ours"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t)
			configMaps := client.Resource(t, e.Client, "configmaps").Namespace(e.namespace)
			theirs := e.objects(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {a: theirs, b.c_d: theirs, free: theirs}\n")[0]
			ours := e.objects(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {a: ours, b.c_d: ours, own: ours}\n"+
				"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: further}\n")
			_, err := configMaps.Apply(t.Context(), theirs.Object, &metav1.ApplyOptions{FieldManager: "theirs"})
			require.NoError(t, err)

			events, err := e.set("conflicts").Apply(t.Context(), ours, &applyset.ApplyOptions{Conflicts: tc.policy})
			if tc.policy == applyset.ConflictFail {
				var conflict *dynamic.ApplyConflictError
				require.ErrorAs(t, err, &conflict)
				assert.Len(t, conflict.Conflicts, 2)
				assert.ErrorContains(t, err, `test: document 1, line 1: ConfigMap "`+e.namespace+`/shared"`)
				assert.ElementsMatch(t, []string{"failed ConfigMap shared", "created ConfigMap further"}, outcomes(events), "a failure hides no object")
			} else {
				require.NoError(t, err)
			}
			if tc.policy == applyset.ConflictSkip {
				for _, event := range events {
					if event.Object.Name == "shared" {
						assert.Equal(t, `left out .data.a of "theirs", .data.b.c_d of "theirs"`, event.Reason)
					}
				}
			}
			live, err := configMaps.Get(t.Context(), "shared", nil)
			require.NoError(t, err)
			data, _, err := unstructured.Get[map[string]string](live, "data")
			require.NoError(t, err)
			assert.Equal(t, tc.want, data)
		})
	}
}

// TestSet_LeaveOutListItems leaves out a field of a list item, an item of a set and an atomic list.
func TestSet_LeaveOutListItems(t *testing.T) {
	e := newEnvironment(t)
	deployments := client.Resource(t, e.Client, "deployments").Namespace(e.namespace)
	text := `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: THEIRS, args: [THEIRS], ports: [{containerPort: 80, name: THEIRS}], env: [{name: OWN, value: ours}]}
`
	theirs := e.objects(t, replace(text, "THEIRS", "theirs", "env: [{name: OWN, value: ours}]", "env: []"))[0]
	_, err := deployments.Apply(t.Context(), theirs.Object, &metav1.ApplyOptions{FieldManager: "theirs"})
	require.NoError(t, err)
	events, err := e.set("conflicts").Apply(t.Context(), e.objects(t, replace(text, "THEIRS", "ours")), &applyset.ApplyOptions{Conflicts: applyset.ConflictSkip})
	require.NoError(t, err)
	assert.Contains(t, events[0].Reason, `.spec.template.spec.containers[name="web"].image of "theirs"`)
	live, err := deployments.Get(t.Context(), "web", nil)
	require.NoError(t, err)
	for want, path := range map[string][]string{
		"theirs": {"spec", "template", "spec", "containers", "[name=web]", "image"},
		"ours":   {"spec", "template", "spec", "containers", "[name=web]", "env", "[name=OWN]", "value"},
	} {
		value, _, err := unstructured.Get[string](live, path...)
		require.NoError(t, err)
		assert.Equal(t, want, value, "%v", path)
	}
}

// TestSet_BeforeApplyPrecondition applies an object with an outdated resourceVersion, at first and always.
func TestSet_BeforeApplyPrecondition(t *testing.T) {
	e := newEnvironment(t)
	set := e.set("precondition")
	events, err := set.Apply(t.Context(), e.configMaps(t, "red", "a"), nil)
	require.NoError(t, err)
	outdated := events[0].Live.GetResourceVersion()
	events, err = set.Apply(t.Context(), e.configMaps(t, "blue", "a"), nil)
	require.NoError(t, err)
	current := events[0].Live.GetResourceVersion()
	calls := 0
	opts := &applyset.ApplyOptions{BeforeApply: func(_ context.Context, object applyset.Reference) (string, error) {
		assert.Equal(t, "a", object.Name)
		if calls++; calls == 2 {
			return current, nil
		}
		return outdated, nil
	}}
	events, err = set.Apply(t.Context(), e.configMaps(t, "green", "a"), opts)
	require.NoError(t, err)
	assert.Equal(t, 2, calls)
	assert.Equal(t, map[string]any{"value": "green"}, events[0].Live.Object["data"])
	_, err = set.Apply(t.Context(), e.configMaps(t, "red", "a"), opts)
	require.ErrorContains(t, err, "the object has been modified")
	assert.Equal(t, 7, calls)
}

// TestSet_ParentErrors refuses parents of other tools and kinds.
func TestSet_ParentErrors(t *testing.T) {
	e := newEnvironment(t)
	secrets := client.Resource(t, e.Client, "secrets").Namespace(e.namespace)
	set := e.set("parent")
	create := func(metadata map[string]any) {
		t.Helper()
		metadata["name"] = "parent"
		_, _ = secrets.Delete(t.Context(), "parent", nil)
		_, err := secrets.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": metadata}}, nil)
		require.NoError(t, err)
	}
	kubectl := map[string]any{"applyset.kubernetes.io/tooling": "kubectl/v1.36.3", "applyset.kubernetes.io/contains-group-kinds": ""}
	for want, metadata := range map[string]map[string]any{
		"is not the parent of a set":               {},
		`managed by tooling "kubectl/v1.36.3"`:     {"labels": map[string]any{"applyset.kubernetes.io/id": set.Parent().ID()}, "annotations": kubectl},
		`label applyset.kubernetes.io/id with val`: {"labels": map[string]any{"applyset.kubernetes.io/id": "x"}, "annotations": kubectl},
	} {
		create(metadata)
		_, err := set.Apply(t.Context(), e.configMaps(t, "x", "a"), nil)
		assert.ErrorContains(t, err, want)
	}
	for want, parent := range map[string]applyset.Parent{
		"does not exist, and only a Secret or ConfigMap is created": {Kind: namespaceKind, Name: "none"},
		"lacks the label": {Kind: namespaceKind, Name: e.namespace},
		"has a namespace": {Kind: namespaceKind, Namespace: "x", Name: e.namespace},
	} {
		_, err := applyset.New(e.Client, parent, nil).Apply(t.Context(), e.configMaps(t, "x", "a"), nil)
		assert.ErrorContains(t, err, want)
	}
	_, err := client.Resource(t, e.Client, "configmaps").Namespace(e.namespace).Get(t.Context(), "a", nil)
	assert.True(t, apierrors.IsNotFound(err), "nothing was written: %v", err)
}
