package relation_test

import (
	"fmt"
	"log"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/inventory/relation"
	"github.com/anykind/anykind/unstructured"
)

func TestBuiltIn(t *testing.T) {
	seen := map[relation.Relation]bool{}
	for _, r := range relation.BuiltIn() {
		assert.False(t, seen[r], "%+v: listed twice", r)
		seen[r] = true
		assert.NotEmpty(t, r.From.Kind, r.Field)
		assert.Contains(t, []string{"selects", "mounts", "refers", "routes", "binds", "scales"}, r.Name)
		_, err := unstructured.ParsePath(r.Field)
		assert.NoError(t, err)
	}
	assert.NotEmpty(t, seen)
}

// decode returns a Cart in namespace a.
func decode(t *testing.T, spec string) *unstructured.Lazy {
	t.Helper()
	obj, err := unstructured.DecodeLazy([]byte(`{"apiVersion":"shop.example/v1","kind":"Cart","metadata":{"name":"c","namespace":"a"},"spec":` + spec + `}`))
	require.NoError(t, err)
	return obj
}

func TestRelation_References(t *testing.T) {
	cart := schema.GroupKind{Group: "shop.example", Kind: "Cart"}
	secret := schema.GroupKind{Kind: "Secret"}
	for name, c := range map[string]struct {
		field, spec string
		to          schema.GroupKind
		want        []relation.Reference
	}{
		"name":        {"spec.payment", `{"payment":"s"}`, secret, []relation.Reference{{Kind: secret, Namespace: "a", Name: "s"}}},
		"list":        {"spec.all[*]", `{"all":["s","t","s",""]}`, secret, []relation.Reference{{Kind: secret, Namespace: "a", Name: "s"}, {Kind: secret, Namespace: "a", Name: "t"}}},
		"map":         {"spec.ref", `{"ref":{"name":"s","namespace":"b"}}`, secret, []relation.Reference{{Kind: secret, Namespace: "b", Name: "s"}}},
		"kind":        {"spec.ref", `{"ref":{"name":"x","kind":"Cart","apiVersion":"shop.example/v1"}}`, schema.GroupKind{}, []relation.Reference{{Kind: cart, Namespace: "a", Name: "x"}}},
		"core group":  {"spec.ref", `{"ref":{"name":"x","kind":"Secret","apiVersion":"v1"}}`, schema.GroupKind{}, []relation.Reference{{Kind: secret, Namespace: "a", Name: "x"}}},
		"unlike kind": {"spec.ref", `{"ref":{"name":"x","kind":"Cart","apiGroup":"shop.example"}}`, secret, nil},
		"no kind":     {"spec.ref", `{"ref":{"name":"x"}}`, schema.GroupKind{}, nil},
		"optional": {"spec.all[*].ref.name", `{"all":[{"ref":{"name":"s","optional":true}},{"ref":{"name":"t","optional":true}},{"ref":{"name":"t"}},{"ref":7},{}]}`, secret,
			[]relation.Reference{{Kind: secret, Namespace: "a", Name: "s", Optional: true}, {Kind: secret, Namespace: "a", Name: "t"}}},
		"unexpected": {"spec.payment", `{"payment":{"name":7}}`, secret, nil},
		"missing":    {"spec.payment", `{}`, secret, nil},
		"not a path": {"spec..x", `{}`, secret, nil},
	} {
		r := relation.Relation{Name: "pays", From: cart, To: c.to, Field: c.field}
		assert.Equal(t, c.want, r.References(decode(t, c.spec)), name)
		r.From.Group = "other.example"
		assert.Empty(t, r.References(decode(t, c.spec)), "of a different kind")
	}
}

func TestReference_IsTo(t *testing.T) {
	cart := schema.GroupKind{Group: "shop.example", Kind: "Cart"}
	target, err := unstructured.DecodeLazy([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"a","labels":{"app":"web"}}}`))
	require.NoError(t, err)
	for spec, want := range map[string]bool{
		`{"selector":{"app":"web"}}`:                                            true,
		`{"selector":{"app":"db"}}`:                                             false,
		`{"selector":{"matchLabels":{"app":"web"}}}`:                            true,
		`{"selector":{"matchExpressions":[{"key":"app","operator":"Exists"}]}}`: true,
		`{"selector":{"matchExpressions":[{"key":"app","operator":"No"}]}}`:     false,
		`{"selector":"app"}`:                                                    false,
		`{}`:                                                                    false,
	} {
		r := relation.Relation{From: cart, To: schema.GroupKind{Kind: "Pod"}, Field: "spec.selector", IsSelector: true}
		isTo := false
		for _, ref := range r.References(decode(t, spec)) {
			isTo = isTo || ref.IsTo(target)
		}
		assert.Equal(t, want, isTo, spec)
	}
	for ref, want := range map[relation.Reference]bool{
		{Kind: schema.GroupKind{Kind: "Pod"}, Namespace: "a", Name: "p"}:             true,
		{Kind: schema.GroupKind{Kind: "Pod"}, Namespace: "b", Name: "p"}:             false,
		{Kind: schema.GroupKind{Kind: "Pod"}, Namespace: "a", Name: "q"}:             false,
		{Kind: schema.GroupKind{Kind: "Pod", Group: "x"}, Namespace: "a", Name: "p"}: false,
	} {
		assert.Equal(t, want, ref.IsTo(target), "%+v", ref)
	}
}

func ExampleRelation_References() {
	pod, err := unstructured.DecodeLazy([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop"},"spec":{
		"serviceAccountName":"robot","volumes":[{"name":"keys","secret":{"secretName":"password","optional":true}}]}}`))
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range relation.BuiltIn() {
		for _, ref := range r.References(pod) {
			fmt.Println(r.Name, ref.Kind, ref.Name, "optional:", ref.Optional)
		}
	}
	// Output:
	// mounts Secret password optional: true
	// refers ServiceAccount robot optional: false
}
