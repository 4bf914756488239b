package storagemigration

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/unstructured"
)

const gadgetDefinition = `{"metadata": {"name": "gadgets.example.com"}, "spec": {"group": "example.com", "conversion": {"strategy": "STRATEGY"}, "versions": [
	{"name": "v1", "served": false}, {"name": "v2", "served": true}, {"name": "v3", "served": true, "storage": true}]}}`

func TestDefinition_MoveEntries(t *testing.T) {
	const entries = `[
		{"manager": "a", "operation": "Apply", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {"f:x": {}}}, "f:spec": {"f:x": {}}}},
		{"manager": "a", "operation": "Update", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:y": {}}}},
		{"manager": "a", "operation": "Update", "apiVersion": "example.com/v2", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:z": {}}}},
		{"manager": "a", "operation": "Update", "apiVersion": "example.com/v3", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:w": {}}}},
		{"manager": "b", "operation": "Update", "apiVersion": "example.com/v0", "subresource": "status", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:x": {}}}}]`
	for strategy, want := range map[string]string{
		"None": `[
			{"manager": "a", "operation": "Apply", "apiVersion": "example.com/v3", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {"f:x": {}}}, "f:spec": {"f:x": {}}}},
			{"manager": "a", "operation": "Update", "apiVersion": "example.com/v3", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:w": {}, "f:y": {}}}},
			{"manager": "a", "operation": "Update", "apiVersion": "example.com/v2", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:z": {}}}},
			{"manager": "b", "operation": "Update", "apiVersion": "example.com/v3", "subresource": "status", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:x": {}}}}]`,
		"Webhook": `[
			{"manager": "a", "operation": "Apply", "apiVersion": "example.com/v3", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {"f:x": {}}}}},
			{"manager": "a", "operation": "Update", "apiVersion": "example.com/v2", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:z": {}}}},
			{"manager": "a", "operation": "Update", "apiVersion": "example.com/v3", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:w": {}}}}]`,
	} {
		d := gadgets(t, strategy)
		obj, err := unstructured.Decode([]byte(`{"apiVersion": "example.com/v3", "kind": "Gadget", "metadata": {"name": "a", "managedFields": ` + entries + `}}`))
		require.NoError(t, err)
		moved, isMoved, err := d.moveEntries(obj)
		require.NoError(t, err)
		assert.True(t, isMoved)
		got, err := json.Marshal(moved)
		require.NoError(t, err)
		assert.JSONEq(t, want, string(got), strategy)
		require.NoError(t, unstructured.Set(obj, moved, "metadata", "managedFields"))
		_, isMoved, err = d.moveEntries(obj)
		require.NoError(t, err)
		assert.False(t, isMoved)
	}
}

func TestDefinition_MoveEntriesWithoutRemainder(t *testing.T) {
	obj, err := unstructured.Decode([]byte(`{"apiVersion": "example.com/v3", "kind": "Gadget", "metadata": {"name": "a", "managedFields": [
		{"manager": "a", "operation": "Update", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:y": {}}}}]}}`))
	require.NoError(t, err)
	moved, isMoved, err := gadgets(t, "Webhook").moveEntries(obj)
	require.NoError(t, err)
	assert.True(t, isMoved)
	assert.Equal(t, []any{map[string]any{}}, moved)
}

func gadgets(t *testing.T, strategy string) *definition {
	t.Helper()
	obj := &unstructured.Object{}
	require.NoError(t, json.Unmarshal([]byte(gadgetDefinition), &obj.Object))
	require.NoError(t, unstructured.Set(obj, strategy, "spec", "conversion", "strategy"))
	d, err := unstructured.As[definition](obj)
	require.NoError(t, err)
	return d
}

func TestDefinition_Propagation(t *testing.T) {
	before := propagationDelay
	propagationDelay = 5 * time.Second
	t.Cleanup(func() { propagationDelay = before })
	now := time.Now()
	at := func(ago time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-ago)} }
	d := &definition{}
	d.Metadata.CreationTimestamp = *at(2 * time.Hour)
	assert.Zero(t, d.propagation(now))
	d.Metadata.ManagedFields = []metav1.ManagedFieldsEntry{{Time: at(90 * time.Minute)}, {Subresource: "status", Time: at(0)}}
	assert.Zero(t, d.propagation(now))
	for _, ago := range []time.Duration{0, time.Minute, -2 * time.Hour} { // one of the clocks may be ahead
		d.Metadata.ManagedFields[0].Time = at(ago)
		assert.Equal(t, propagationDelay, d.propagation(now), ago)
	}
}
