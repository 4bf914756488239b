package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/unstructured"
)

// TestDependentIndex_CascadeOf deletes an owner, a Namespace and a CustomResourceDefinition. Dependents are listed before their owners.
func TestDependentIndex_CascadeOf(t *testing.T) {
	configMap := schema.GroupKind{Kind: "ConfigMap"}
	charm := schema.GroupKind{Group: "example.com", Kind: "Charm"}
	object := func(kind schema.GroupKind, namespace, name string, owners ...types.UID) dependent {
		d := dependent{ref: applyset.Reference{Kind: kind, Namespace: namespace, Name: name}, uid: types.UID(name)}
		for _, owner := range owners {
			d.owners = append(d.owners, metav1.OwnerReference{UID: owner})
		}
		return d
	}
	all := []dependent{
		object(configMap, "shop", "below-both", "owned", "below"), object(configMap, "shop", "below", "owned"), object(configMap, "shop", "owned", "owner"),
		object(configMap, "shop", "shared", "owner", "kept"), object(configMap, "shop", "owner"), object(configMap, "shop", "kept"),
		object(configMap, "more", "content"), object(charm, "shop", "custom"), object(configMap, "shop", "of-custom", "custom"),
	}
	for text, want := range map[string][]string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"owner","namespace":"shop","uid":"owner"}}`:                                                                                                        {"below", "below-both", "owned"},
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"more","uid":"n"}}`:                                                                                                                                {"content"},
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"charms.example.com","uid":"d"},"spec":{"group":"example.com","names":{"kind":"Charm"},"scope":"Namespaced"}}`: {"custom", "of-custom"},
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kept","namespace":"shop","uid":"kept"}}`:                                                                                                          nil,
	} {
		live, err := unstructured.Decode([]byte(text))
		require.NoError(t, err)
		var names []string
		change := &Change{Object: applyset.ReferenceTo(live), Live: live}
		for _, ref := range newDependentIndex(all, []*Change{change}).cascadeOf(change) {
			names = append(names, ref.Name)
		}
		assert.ElementsMatch(t, want, names, text)
	}
}

// TestDependentIndex_CascadeOfTwoDeletes deletes two owners of an object, whose children have a common child.
func TestDependentIndex_CascadeOfTwoDeletes(t *testing.T) {
	object := func(name string, owners ...types.UID) dependent {
		d := dependent{ref: applyset.Reference{Kind: schema.GroupKind{Kind: "ConfigMap"}, Name: name}, uid: types.UID(name)}
		for _, owner := range owners {
			d.owners = append(d.owners, metav1.OwnerReference{UID: owner})
		}
		return d
	}
	var deleted []*Change
	for _, name := range []string{"a", "b"} {
		live := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name, "uid": name}}}
		deleted = append(deleted, &Change{Object: applyset.ReferenceTo(live), Live: live})
	}
	index := newDependentIndex([]dependent{
		object("below-both", "of-a", "of-b"), object("shared", "a", "b"), object("kept", "a", "other"), object("of-a", "a"), object("of-b", "b"),
	}, deleted)
	for i, own := range []string{"of-a", "of-b"} {
		var names []string
		for _, ref := range index.cascadeOf(deleted[i]) {
			names = append(names, ref.Name)
		}
		assert.ElementsMatch(t, []string{"below-both", own, "shared"}, names)
	}
}

// TestCheckPrune compares a member that left the set with its planned delete.
func TestCheckPrune(t *testing.T) {
	object := func(kind, uid, version, color, status string) *unstructured.Object {
		return &unstructured.Object{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "data": map[string]any{"color": color}, "status": status,
			"metadata": map[string]any{"name": "a", "uid": uid, "resourceVersion": version},
		}}
	}
	for name, c := range map[string]struct {
		planned, live *unstructured.Object
		want          string
	}{
		"not in the plan":              {nil, object("ConfigMap", "u", "1", "red", ""), "became prunable"},
		"as planned":                   {object("ConfigMap", "u", "1", "red", ""), object("ConfigMap", "u", "1", "red", ""), ""},
		"changed status":               {object("ConfigMap", "u", "1", "red", ""), object("ConfigMap", "u", "2", "red", "new"), ""},
		"changed field":                {object("ConfigMap", "u", "1", "red", ""), object("ConfigMap", "u", "2", "blue", ""), "was changed"},
		"different object":             {object("ConfigMap", "u", "1", "red", ""), object("ConfigMap", "v", "1", "red", ""), "was deleted and created"},
		"Secret with a masked content": {object("Secret", "u", "1", "red", ""), object("Secret", "u", "2", "red", ""), "was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			var planned *Change
			if c.planned != nil {
				planned = &Change{Action: Prune, Live: c.planned}
			}
			err := checkPrune(planned, applyset.ReferenceTo(c.live), c.live)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}
