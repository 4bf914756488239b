package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

// definition is a CustomResourceDefinition of widgets and the like, as a file has it.
func definition(plural, group string) string {
	kind := strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.%[2]s
spec:
  group: %[2]s
  scope: Namespaced
  names: {plural: %[1]s, kind: %[3]s}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`, plural, group, kind)
}

func TestRegisterCRDs_KindsWorkAtOnce(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	crds := controllertest.Resource(t, client, "crd")
	group := namespace + ".example.com"
	file := "# two kinds\n---\n" + definition("widgets", group) + "---\n" + definition("gears", group)
	registered, err := controller.RegisterCRDs(t.Context(), client, []byte(file), nil)
	require.NoError(t, err)
	controllertest.DeleteAfter(t, crds, "widgets."+group)
	controllertest.DeleteAfter(t, crds, "gears."+group)
	require.Len(t, registered, 2)
	assert.Equal(t, "widgets."+group, registered[0].String())
	assert.Equal(t, "gears."+group, registered[1].String())
	for _, known := range []*dynamic.Client{client, controllertest.Connect(t)} {
		for _, name := range []string{"widgets." + group, "widgets.v1." + group, "Gear." + group} {
			_, err := known.Resource(t.Context(), name)
			require.NoError(t, err)
		}
		_, err := known.ForKind(t.Context(), schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"})
		require.NoError(t, err)
	}
	for _, of := range registered {
		obj, err := of.Namespace(namespace).Create(t.Context(), &unstructured.Object{Object: map[string]any{
			"metadata": map[string]any{"name": "one"}, "spec": map[string]any{"size": 1},
		}}, nil)
		require.NoError(t, err)
		_, err = controller.SetStatus(t.Context(), of, obj, map[string]any{"ready": true})
		require.NoError(t, err)
	}
}

func TestRegisterCRDs_EqualDefinitionIsNotWritten(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	crds := controllertest.Resource(t, client, "crd")
	group := namespace + ".example.com"
	widgets(t, client, namespace)
	before, err := crds.Get(t.Context(), "widgets."+group, nil)
	require.NoError(t, err)
	_, err = controller.RegisterCRDs(t.Context(), client, []byte(definition("widgets", group)), nil)
	require.NoError(t, err)
	after, err := crds.Get(t.Context(), "widgets."+group, nil)
	require.NoError(t, err)
	assert.Equal(t, before.GetResourceVersion(), after.GetResourceVersion())
}

func TestRegisterCRDs_UpdatesDefinition(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	group := namespace + ".example.com"
	widgets(t, client, namespace)
	file := strings.Replace(definition("widgets", group), "  versions:\n", `  versions:
  - name: v2
    served: true
    storage: false
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, 1)
	file = strings.Replace(file, "kind: Widget}", "kind: Widget, shortNames: [wdg]}", 1)
	registered, err := controller.RegisterCRDs(t.Context(), client, []byte(file), nil)
	require.NoError(t, err)
	assert.Equal(t, "v2", registered[0].APIResource().GVK.Version)
	_, knowsScale := registered[0].APIResource().Subresource("scale")
	assert.True(t, knowsScale)
	short := controllertest.Resource(t, client, "wdg."+group)
	_, err = short.ListPage(t.Context(), nil)
	assert.NoError(t, err)

	t.Run("and what others have set besides stays", func(t *testing.T) {
		crds := controllertest.Resource(t, client, "crd")
		_, err := crds.Patch(t.Context(), "widgets."+group, "application/merge-patch+json", []byte(`{"metadata":{"labels":{"other":"yes"}}}`), nil)
		require.NoError(t, err)
		_, err = controller.RegisterCRDs(t.Context(), client, []byte(file), nil)
		require.NoError(t, err)
		now, err := crds.Get(t.Context(), "widgets."+group, nil)
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"other": "yes"}, now.GetLabels())
	})
}

func TestRegisterCRDs_NameConflict(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	group := namespace + ".example.com"
	widgets(t, client, namespace)
	file := strings.Replace(definition("gears", group), "kind: Gear", "kind: Widget", 1)
	controllertest.DeleteCRDAfter(t, client, "gears."+group)
	_, err := controller.RegisterCRDs(t.Context(), client, []byte(file), nil)
	assert.ErrorContains(t, err, `register gears.`+group+`: names rejected by the server: `)
	assert.ErrorContains(t, err, "Widget")
}

func TestRegisterCRDs_ReturnsServerError(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	file := strings.Replace(definition("widgets", namespace+".example.com"), "  scope: Namespaced\n", "  scope: Everywhere\n", 1)
	_, err := controller.RegisterCRDs(t.Context(), client, []byte(file), nil)
	assert.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, "register widgets."+namespace+".example.com: ")
}

func TestRegisterCRDs_WithoutForce(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	widgets(t, client, namespace)
	file := strings.Replace(definition("widgets", namespace+".example.com"), "subresources: {status: {}}", "subresources: {}", 1)
	_, err := controller.RegisterCRDs(t.Context(), client, []byte(file), &metav1.ApplyOptions{FieldManager: "somebody-else"})
	assert.True(t, apierrors.IsConflict(err), "%v", err)
}

func TestRegisterCRDs_EndsWithContext(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	_, err := controller.RegisterCRDs(ctx, client, []byte(definition("widgets", namespace+".example.com")), nil)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestRegisterCRDs_RejectsOtherKinds(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	good := definition("widgets", namespace+".example.com")
	for name, tc := range map[string]struct{ file, want string }{
		"another kind":    {good + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "register definitions: document 2 is a ConfigMap of v1, not a CustomResourceDefinition of apiextensions.k8s.io/v1"},
		"an old version":  {strings.Replace(good, "io/v1", "io/v1beta1", 1), "register definitions: document 1 is a CustomResourceDefinition of apiextensions.k8s.io/v1beta1, not a CustomResourceDefinition of apiextensions.k8s.io/v1"},
		"nothing":         {"# only this\n", "register definitions: the file has no document"},
		"no YAML":         {good + "---\n{", "register definitions: document 2, line "},
		"an unnamed kind": {"metadata: {}\n", "register definitions: document 1, line 1: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := controller.RegisterCRDs(t.Context(), client, []byte(tc.file), nil)
			assert.ErrorContains(t, err, tc.want)
			_, err = controllertest.Resource(t, client, "crd").Get(t.Context(), "widgets."+namespace+".example.com", nil)
			assert.True(t, apierrors.IsNotFound(err))
		})
	}
}
