package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const objects = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: carts.backup.example.com}
spec:
  group: backup.example.com
  names: {plural: carts, singular: cart, kind: Cart}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: backup.example.com/v1
kind: Cart
metadata: {name: full}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a-dependent}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}
`

// The namespace and the definition are deleted between save and restore, as if the cluster were empty.
func TestBackup_SaveAndRestore(t *testing.T) {
	admin := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, admin)
	path := filepath.Join(t.TempDir(), "objects.yaml")
	require.NoError(t, os.WriteFile(path, []byte(objects), 0o600))
	reader := manifest.Reader{Paths: []string{path}}
	read, err := reader.Read(t.Context())
	require.NoError(t, err)
	all := map[string]*dynamic.Resource{}
	created := map[string]*unstructured.Object{}
	for object, err := range admin.WithDefaults(&dynamic.Defaults{Namespace: namespace}).ForObjects(t.Context(), func(yield func(*unstructured.Object, error) bool) {
		for _, object := range read {
			if !yield(object.Object, nil) {
				return
			}
		}
	}) {
		require.NoError(t, err)
		kind := object.Object.GetKind()
		if owner := created["Cart"]; kind == "ConfigMap" {
			object.Object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: "Cart", Name: "full", UID: owner.GetUID()}})
		}
		created[kind], err = object.Resource.Create(t.Context(), object.Object, nil)
		require.NoError(t, err)
		all[kind] = object.Resource
	}
	definitions := all["CustomResourceDefinition"]
	client.DeleteAtEnd(t, definitions, "carts.backup.example.com")

	folder := t.TempDir()
	require.NoError(t, save(t.Context(), admin, folder, []string{namespace}, io.Discard))
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, files, 6, "the objects and the namespace, without generated objects")

	namespaces := client.Resource(t, admin, "namespaces")
	for resource, name := range map[*dynamic.Resource]string{namespaces: namespace, definitions: "carts.backup.example.com"} {
		_, err := resource.Delete(t.Context(), name, nil)
		require.NoError(t, err)
		_, err = resource.Wait(t.Context(), name, dynamic.Deleted())
		require.NoError(t, err)
	}
	require.NoError(t, restore(t.Context(), admin, folder, io.Discard))

	owner, err := all["Cart"].Get(t.Context(), "full", nil)
	require.NoError(t, err)
	dependent, err := all["ConfigMap"].Get(t.Context(), "a-dependent", nil)
	require.NoError(t, err)
	assert.NotEqual(t, created["Cart"].GetUID(), owner.GetUID())
	require.Len(t, dependent.GetOwnerReferences(), 1)
	assert.Equal(t, owner.GetUID(), dependent.GetOwnerReferences()[0].UID)
	_, err = all["Deployment"].Get(t.Context(), "web", nil)
	require.NoError(t, err)
	service, err := all["Service"].Get(t.Context(), "web", nil)
	require.NoError(t, err)
	assert.NotEmpty(t, service.Object["spec"].(map[string]any)["clusterIP"])
	err = restore(t.Context(), admin, folder, io.Discard)
	assert.True(t, apierrors.IsAlreadyExists(err), "%v", err)
}
