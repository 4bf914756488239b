package managedfields_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/anykind/anykind/internal/testing/fieldsets"
)

// randomSet returns a set of paths. Sets of the same random share most elements.
func randomSet(random *rand.Rand) *fieldpath.Set {
	set := fieldpath.NewSet()
	for range random.IntN(12) {
		var path fieldpath.Path
		for range 1 + random.IntN(4) {
			path = append(path, randomElement(random))
		}
		set.Insert(path)
	}
	return set
}

func randomElement(random *rand.Rand) fieldpath.PathElement {
	switch random.IntN(6) {
	case 0:
		return fieldpath.PathElement{Value: new(value.NewValueInterface([]any{"a", int64(1), true, 1.5, nil}[random.IntN(5)]))}
	case 1:
		return fieldpath.PathElement{Index: new(random.IntN(3))}
	case 2:
		key := value.FieldList{{Name: "name", Value: value.NewValueInterface("a\"b")}}
		if random.IntN(2) == 0 {
			key = append(key, value.Field{Name: "port", Value: value.NewValueInterface(int64(random.IntN(2)))})
		}
		key.Sort()
		return fieldpath.PathElement{Key: &key}
	default:
		return fieldpath.PathElement{FieldName: new([]string{"a", "b", "c.d/e", ".", "", "f:a"}[random.IntN(6)])}
	}
}

func decode(t *testing.T, set *fieldpath.Set) map[string]any {
	t.Helper()
	text, err := set.ToJSON()
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(text, &fields))
	return fields
}

func encode(t *testing.T, fields map[string]any) *fieldpath.Set {
	t.Helper()
	text, err := json.Marshal(fields)
	require.NoError(t, err)
	set := fieldpath.NewSet()
	require.NoError(t, set.FromJSON(bytes.NewReader(text)))
	return set
}

func TestFields_EqualStructuredMergeDiff(t *testing.T) {
	nonEmpty := 0
	for seed := range uint64(5000) {
		random := rand.New(rand.NewPCG(seed, 0))
		a := randomSet(random)
		b := randomSet(random)
		if seed%2 == 0 { // large intersections
			b = a.Union(b)
		}
		fieldsA := decode(t, a)
		fieldsB := decode(t, b)
		for name, c := range map[string]struct {
			want *fieldpath.Set
			have map[string]any
		}{
			"union":        {a.Union(b), fieldsets.Union(fieldsA, fieldsB)},
			"intersection": {a.Intersection(b), fieldsets.Intersection(fieldsA, fieldsB)},
			"difference":   {a.Difference(b), fieldsets.Difference(fieldsA, fieldsB)},
			"reverse":      {b.Difference(a), fieldsets.Difference(fieldsB, fieldsA)},
		} {
			require.Equal(t, decode(t, c.want), c.have, "seed %d: %s of %s and %s", seed, name, a, b)
			require.True(t, c.want.Equals(encode(t, c.have)), "seed %d: %s", seed, name)
			require.Len(t, fieldsets.Paths(c.have), c.want.Size(), "seed %d: %s", seed, name)
			if !c.want.Empty() {
				nonEmpty++
			}
		}
		require.Equal(t, a.Difference(b).Empty(), fieldsets.Contains(fieldsB, fieldsA), "seed %d", seed)
	}
	assert.Greater(t, nonEmpty, 10000)
}

// randomObject returns an object with entries of one version and without subresources, for which csaupgrade loses nothing.
func randomObject(t *testing.T, random *rand.Rand) *unstructuredv1.Unstructured {
	t.Helper()
	var entries []metav1.ManagedFieldsEntry
	for _, manager := range []string{"to", "a", "b", "x"} {
		for _, operation := range []metav1.ManagedFieldsOperationType{metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate} {
			set := randomSet(random)
			if set.Empty() || random.IntN(3) == 0 {
				continue
			}
			text, err := set.ToJSON()
			require.NoError(t, err)
			entries = append(entries, metav1.ManagedFieldsEntry{
				Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(text)),
			})
		}
	}
	obj := &unstructuredv1.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	obj.SetManagedFields(entries)
	return obj
}

// ownership returns the sets of managedFields by their manager and operation.
func ownership(t *testing.T, obj *unstructuredv1.Unstructured) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, entry := range obj.GetManagedFields() {
		set := fieldpath.NewSet()
		require.NoError(t, set.FromJSON(entry.FieldsV1.GetRawReader()))
		all[fmt.Sprintf("%s %s %s", entry.Manager, entry.Operation, entry.APIVersion)] = set.String()
	}
	require.Len(t, obj.GetManagedFields(), len(all))
	return all
}

func TestMigrate_EqualsCSAUpgrade(t *testing.T) {
	migrated := 0
	for seed := range uint64(3000) {
		obj := randomObject(t, rand.New(rand.NewPCG(seed, 1)))
		theirs := obj.DeepCopy()
		require.NoError(t, csaupgrade.UpgradeManagedFields(theirs, sets.New("a", "b"), "to"))

		entries, err := fieldsets.Read(obj.Object)
		require.NoError(t, err)
		result, err := fieldsets.Migration{Manager: "to", APIVersion: "v1", Moves: func(e fieldsets.Entry) bool {
			return e.Operation == "Update" && slices.Contains([]string{"a", "b"}, e.Manager)
		}}.Migrate(entries)
		require.NoError(t, err)
		ours := obj.DeepCopy()
		if len(entries) > 0 {
			require.NoError(t, unstructuredv1.SetNestedSlice(ours.Object, fieldsets.Encode(result.Entries), "metadata", "managedFields"))
		}
		require.Equal(t, ownership(t, theirs), ownership(t, ours), "seed %d", seed)
		if len(result.Moved) > 0 {
			migrated++
		}
	}
	assert.Greater(t, migrated, 2000)
}

// TestMigrate_WhereCSAUpgradeLoses shows the entries that csaupgrade drops or keeps, and that the migration moves.
func TestMigrate_WhereCSAUpgradeLoses(t *testing.T) {
	obj := &unstructuredv1.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "a": int64(1), "b": int64(2), "c": int64(3)}}
	entry := func(apiVersion, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: "a", Operation: "Update", APIVersion: apiVersion, Subresource: subresource, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{entry("v1", "", `{"f:a":{}}`), entry("v1beta1", "", `{"f:b":{}}`), entry("v1", "scale", `{"f:c":{}}`)})
	theirs := obj.DeepCopy()
	require.NoError(t, csaupgrade.UpgradeManagedFields(theirs, sets.New("a"), "to"))
	assert.Equal(t, map[string]string{"to Apply v1": ".a", "a Update v1": ".c"}, ownership(t, theirs), "b has no owner any more")

	entries, err := fieldsets.Read(obj.Object)
	require.NoError(t, err)
	result, err := fieldsets.Migration{
		Manager: "to", APIVersion: "v1", Moves: func(fieldsets.Entry) bool { return true },
		Object: func(string) (map[string]any, error) { return obj.Object, nil },
	}.Migrate(entries)
	require.NoError(t, err)
	require.Len(t, result.Entries, 1)
	assert.Equal(t, map[string]any{"f:a": map[string]any{}, "f:b": map[string]any{}, "f:c": map[string]any{}}, result.Entries[0].Fields)
}
