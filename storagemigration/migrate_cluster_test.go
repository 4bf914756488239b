package storagemigration_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/storagemigration"
	"github.com/anykind/anykind/unstructured"
)

var byClient = &storagemigration.Options{Method: storagemigration.ByClient}

func TestMigrate_RewritesEveryObject(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.create(t, "v1", 5)
	e.setStorage(t, "v2")
	e.create(t, "v2", 3)
	assert.Equal(t, map[string]int{"v1": 5, "v2": 3}, count(e.stored(t)))

	dryRun, err := storagemigration.Migrate(t.Context(), e.client, e.name, &storagemigration.Options{DryRun: true})
	require.NoError(t, err)
	assert.Equal(t, &storagemigration.Result{StorageVersion: "v2", Objects: 8, Pruned: []string{"v1"}}, dryRun)
	assert.Equal(t, map[string]int{"v1": 5, "v2": 3}, count(e.stored(t)))
	assert.Equal(t, []string{"v1", "v2"}, e.storedVersions(t))

	var last dynamic.ForEachProgress
	result, err := storagemigration.Migrate(t.Context(), e.client, e.name, &storagemigration.Options{
		Method: storagemigration.ByClient, OnProgress: func(p dynamic.ForEachProgress) { last = p },
	})
	require.NoError(t, err)
	assert.Equal(t, &storagemigration.Result{StorageVersion: "v2", Objects: 8, Rewritten: 5, Pruned: []string{"v1"}}, result)
	assert.Equal(t, 8, last.Done)
	assert.Equal(t, map[string]int{"v2": 8}, count(e.stored(t)))
	assert.Equal(t, []string{"v2"}, e.storedVersions(t))

	again, err := storagemigration.Migrate(t.Context(), e.client, e.name, byClient)
	require.NoError(t, err)
	assert.Equal(t, &storagemigration.Result{StorageVersion: "v2", Objects: 8}, again)
}

// TestMigrate_PatchWithoutChangeWritesNothing proves that a repeated migration of a stored object costs no write.
func TestMigrate_PatchWithoutChangeWritesNothing(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.create(t, "v1", 4)
	e.setStorage(t, "v2")
	_, err := e.gears("v1").Patch(t.Context(), "v1-0", types.MergePatchType, []byte("{}"), nil)
	require.NoError(t, err)
	before, err := e.gears("v2").Get(t.Context(), "v1-0", nil)
	require.NoError(t, err)
	result, err := storagemigration.Migrate(t.Context(), e.client, e.name, byClient)
	require.NoError(t, err)
	assert.Equal(t, 3, result.Rewritten)
	after, err := e.gears("v2").Get(t.Context(), "v1-0", nil)
	require.NoError(t, err)
	assert.Equal(t, before, after)
}

func TestMigrate_ContinuesAfterFailedObjects(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.create(t, "v1", 6)
	e.setStorage(t, "v2")
	removePolicy := e.denyUpdates(t, "v1-3")
	result, err := storagemigration.Migrate(t.Context(), e.client, e.name, byClient)
	var failed *dynamic.ObjectError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, types.NamespacedName{Namespace: e.namespace, Name: "v1-3"}, failed.Key)
	assert.Contains(t, err.Error(), "migrate "+e.name+": ")
	assert.Contains(t, err.Error(), "not by migrations")
	assert.Contains(t, err.Error(), "\nstatus.storedVersions keeps [v1 v2]")
	assert.Equal(t, &storagemigration.Result{StorageVersion: "v2", Objects: 6, Failed: 1, Rewritten: 5}, result)
	assert.Equal(t, map[string]int{"v1": 1, "v2": 5}, count(e.stored(t)))
	assert.Equal(t, []string{"v1", "v2"}, e.storedVersions(t))

	removePolicy()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		result, err = storagemigration.Migrate(t.Context(), e.client, e.name, byClient)
		require.NoError(c, err)
	}, time.Minute, 100*time.Millisecond)
	assert.Equal(t, 1, result.Rewritten)
	assert.Equal(t, []string{"v2"}, e.storedVersions(t))
}

// denyUpdates makes a policy that denies updates of an object, and returns a function to delete it.
func (e *environment) denyUpdates(t *testing.T, name string) (remove func()) {
	t.Helper()
	policy := `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: GROUP}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [GROUP], apiVersions: ["*"], operations: [UPDATE], resources: [gears]}]}
  validations: [{expression: "object.metadata.name != 'NAME'", message: not by migrations}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: GROUP}
spec: {policyName: GROUP, validationActions: [Deny]}
`
	text := strings.NewReplacer("GROUP", e.group, "NAME", name).Replace(policy)
	for found, err := range e.client.ForObjects(t.Context(), unstructured.NewYAMLDecoder(strings.NewReader(text)).All()) {
		require.NoError(t, err)
		_, err = found.Resource.Create(t.Context(), found.Object, nil)
		require.NoError(t, err)
		client.DeleteAtEnd(t, found.Resource, e.group)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := e.gears("v1").Patch(t.Context(), name, types.MergePatchType, []byte("{}"), &metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		require.Error(c, err)
	}, time.Minute, 100*time.Millisecond)
	return func() {
		_, err := client.Resource(t, e.client, "validatingadmissionpolicybindings").Delete(t.Context(), e.group, nil)
		require.NoError(t, err)
	}
}

// TestMigrate_RepeatsPassAfterChange changes the storage version during the first pass.
func TestMigrate_RepeatsPassAfterChange(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.create(t, "v1", 10)
	e.setStorage(t, "v2")
	isChanged := false
	result, err := storagemigration.Migrate(t.Context(), e.client, e.name, &storagemigration.Options{
		Method: storagemigration.ByClient,
		OnProgress: func(dynamic.ForEachProgress) {
			if !isChanged {
				isChanged = true
				e.setStorage(t, "v3")
			}
		},
	})
	require.NoError(t, err)
	assert.Equal(t, "v3", result.StorageVersion)
	assert.Equal(t, []string{"v1", "v2"}, result.Pruned)
	assert.Equal(t, map[string]int{"v3": 10}, count(e.stored(t)))
	assert.Equal(t, []string{"v3"}, e.storedVersions(t))
}

func TestMigrate_UnstableDefinition(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.create(t, "v1", 1)
	storage := 0
	_, err := storagemigration.Migrate(t.Context(), e.client, e.name, &storagemigration.Options{
		Method: storagemigration.ByClient,
		OnProgress: func(dynamic.ForEachProgress) {
			storage++
			e.setStorage(t, fmt.Sprintf("v%d", storage%3+1))
		},
	})
	require.ErrorContains(t, err, "the definition changed during each of 3 passes")
	assert.Len(t, e.storedVersions(t), 3)
}

// TestMigrate_MovesManagedFields shows that the API server rejects an apply if managedFields have a version that the definition no
// longer has, and that the owner keeps its fields after the migration.
func TestMigrate_MovesManagedFields(t *testing.T) {
	t.Parallel()
	for name, removes := range map[string]bool{"a version not served": false, "an absent version": true} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t)
			require.NoError(t, e.apply(t, "v1", `{"count": 1, "values": {"a": "1", "b": "1"}}`))
			for _, patch := range []string{"v1: c", "v2: d"} {
				version, key, _ := strings.Cut(patch, ": ")
				_, err := e.gears(version).Patch(t.Context(), "applied", types.MergePatchType, fmt.Appendf(nil, `{"spec": {"values": {%q: "1"}}}`, key),
					&metav1.PatchOptions{FieldManager: "patcher"})
				require.NoError(t, err)
			}
			e.setStorage(t, "v2")
			e.stopServing(t, "v1")
			if removes {
				_, err := storagemigration.Migrate(t.Context(), e.client, e.name, byClient)
				require.NoError(t, err)
				e.spoilManagedFields(t)
				e.removeVersions(t, "v2")
				require.EventuallyWithT(t, func(c *assert.CollectT) {
					assert.ErrorContains(c, e.apply(t, "v2", `{"count": 2}`), "request to convert CR to an invalid group/version")
				}, time.Minute, 50*time.Millisecond)
			}
			result, err := storagemigration.Migrate(t.Context(), e.client, e.name, byClient)
			require.NoError(t, err)
			assert.Equal(t, 1, result.ManagedFields)
			e.removeVersions(t, "v2")
			require.NoError(t, e.apply(t, "v2", `{"count": 2, "values": {"a": "1"}}`))
			obj, err := e.gears("v2").Get(t.Context(), "applied", nil)
			require.NoError(t, err)
			values, _, err := unstructured.Get[map[string]string](obj, "spec", "values")
			require.NoError(t, err)
			assert.Equal(t, map[string]string{"a": "1", "c": "1", "d": "1"}, values, "b is removed by its owner")
			require.Len(t, obj.GetManagedFields(), 2)
			for _, entry := range obj.GetManagedFields() {
				assert.Equal(t, e.group+"/v2", entry.APIVersion)
			}
			owned, _, err := unstructured.Get[map[string]any](obj, "metadata", "managedFields", "1", "fieldsV1", "f:spec", "f:values")
			require.NoError(t, err)
			assert.Equal(t, map[string]any{"f:c": map[string]any{}, "f:d": map[string]any{}}, owned)
		})
	}
}

// TestMigrate_RemovesManagedFieldsOfWebhook migrates an object whose only entry has no fields of metadata. Its fields in other versions
// are unknown.
func TestMigrate_RemovesManagedFieldsOfWebhook(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.convertByWebhook(t)
	_, err := e.gears("v1").Create(t.Context(), e.gear("applied", "v1"), &metav1.CreateOptions{FieldManager: "creator"})
	require.NoError(t, err)
	e.setStorage(t, "v2")
	e.stopServing(t, "v1")

	result, err := storagemigration.Migrate(t.Context(), e.client, e.name, byClient)
	require.NoError(t, err)
	assert.Equal(t, 1, result.ManagedFields)
	obj, err := e.gears("v2").Get(t.Context(), "applied", nil)
	require.NoError(t, err)
	for _, entry := range obj.GetManagedFields() {
		assert.NotEqual(t, e.group+"/v1", entry.APIVersion)
	}
	again, err := storagemigration.Migrate(t.Context(), e.client, e.name, byClient)
	require.NoError(t, err)
	assert.Zero(t, again.ManagedFields)
	e.removeVersions(t, "v2")
	require.NoError(t, e.apply(t, "v2", `{"count": 2}`))
}

// convertByWebhook sets a conversion webhook that changes only the apiVersion.
func (e *environment) convertByWebhook(t *testing.T) {
	t.Helper()
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Request    struct {
				UID               string           `json:"uid"`
				DesiredAPIVersion string           `json:"desiredAPIVersion"`
				Objects           []map[string]any `json:"objects"`
			} `json:"request"`
		}
		if !assert.NoError(t, json.NewDecoder(r.Body).Decode(&review)) {
			return
		}
		for _, obj := range review.Request.Objects {
			obj["apiVersion"] = review.Request.DesiredAPIVersion
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind, "response": map[string]any{
			"uid": review.Request.UID, "convertedObjects": review.Request.Objects, "result": map[string]any{"status": "Success"},
		}})
	}))
	t.Cleanup(webhook.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw})
	_, _, err := e.definitions.Upsert(t.Context(), e.name, func(obj *unstructured.Object) error {
		return unstructured.Set(obj, map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig":             map[string]any{"url": webhook.URL + "/convert", "caBundle": base64.StdEncoding.EncodeToString(ca)},
		}}, "spec", "conversion")
	}, nil)
	require.NoError(t, err)
}

// spoilManagedFields gives the entries back their first version.
func (e *environment) spoilManagedFields(t *testing.T) {
	t.Helper()
	_, _, err := e.gears("v2").Upsert(t.Context(), "applied", func(obj *unstructured.Object) error {
		entries := obj.GetManagedFields()
		for i := range entries {
			entries[i].APIVersion = e.group + "/v1"
		}
		obj.SetManagedFields(entries)
		return nil
	}, &metav1.UpdateOptions{FieldManager: "patcher"})
	require.NoError(t, err)
}

func TestMigrate_Errors(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	_, err := storagemigration.Migrate(t.Context(), e.client, "none.example.com", nil)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	require.ErrorContains(t, err, "migrate none.example.com: ")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = storagemigration.Migrate(ctx, e.client, e.name, nil)
	require.ErrorIs(t, err, context.Canceled)
	e.setStorage(t, "v2")
	for _, version := range []string{"v1", "v2", "v3"} {
		e.stopServing(t, version)
	}
	_, err = storagemigration.Migrate(t.Context(), e.client, e.name, byClient)
	require.ErrorContains(t, err, "serves no version (serve its storage version)")
}
