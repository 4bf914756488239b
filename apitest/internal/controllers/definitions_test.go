package controllers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/controllers"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/store"
	"github.com/anykind/anykind/apitest/internal/write"
)

// fixture is a store whose definitions are processed.
type fixture struct {
	store    *store.Store
	registry *kinds.Registry
	writer   *write.Writer
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{store: store.New(store.DefaultLimit), registry: kinds.New(nil)}
	f.writer = write.New(write.Config{Store: f.store, Registry: f.registry})
	controller := controllers.NewDefinitions(t.Context(), f.store, f.registry, f.writer, time.Now)
	f.store.SetOnWrite(controller.Observe)
	return f
}

func definition(plural, kind string, shortNames ...any) map[string]any {
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Cluster",
			"names":    map[string]any{"plural": plural, "kind": kind, "singular": strings.ToLower(kind), "listKind": kind + "List", "shortNames": shortNames},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}},
		},
	}
}

func key(name string) store.Key {
	return store.Key{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: name + ".example.com"}
}

// conditions returns those of a definition as "Type=Status Reason Message".
func (f *fixture) conditions(t *testing.T, plural string) []string {
	stored, found := f.store.Get(key(plural))
	require.True(t, found)
	list, _, _ := unstructuredv1.NestedSlice(stored, "status", "conditions")
	var texts []string
	for _, item := range list {
		c, _ := item.(map[string]any)
		texts = append(texts, c["type"].(string)+"="+c["status"].(string)+" "+c["reason"].(string)+": "+c["message"].(string))
	}
	return texts
}

func TestController_EstablishesInTwoWrites(t *testing.T) {
	f := newFixture(t)
	_, err := f.store.Create(key("widgets"), definition("widgets", "Widget", "wd"))
	require.NoError(t, err)
	assert.NotNil(t, f.registry.Lookup("example.com", "v1", "widgets"))
	assert.Equal(t, []string{"NamesAccepted=True NoConflicts: no conflicts found", "Established=True InitialNamesAccepted: the initial names have been accepted"}, f.conditions(t, "widgets"))
	assert.Len(t, f.store.History(key("widgets")), 3)
}

func TestController_NameConflicts(t *testing.T) {
	tests := []struct{ name, plural, kind, short, want string }{
		{"kind", "others", "Widget", "o", `NamesAccepted=False ListKindConflict: "WidgetList" is already in use`},
		{"short name", "others", "Other", "wd", `NamesAccepted=False ShortNamesConflict: "wd" is already in use`},
		{"singular", "others", "WD", "o", `NamesAccepted=False SingularConflict: "wd" is already in use`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			_, err := f.store.Create(key("widgets"), definition("widgets", "Widget", "wd"))
			require.NoError(t, err)
			_, err = f.store.Create(key(test.plural), definition(test.plural, test.kind, test.short))
			require.NoError(t, err)
			assert.Equal(t, []string{test.want, "Established=False NotAccepted: not all names are accepted"}, f.conditions(t, test.plural))
			assert.Nil(t, f.registry.Lookup("example.com", "v1", test.plural))

			_, err = f.store.Delete(key("widgets"), "", nil)
			require.NoError(t, err)
			assert.NotNil(t, f.registry.Lookup("example.com", "v1", test.plural), "the name is free")
		})
	}
}

func TestController_DeletesObjectsFirst(t *testing.T) {
	f := newFixture(t)
	_, err := f.store.Create(key("widgets"), definition("widgets", "Widget"))
	require.NoError(t, err)
	resource := f.registry.OfKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	for name, finalizers := range map[string][]any{"free": nil, "held": {"example.com/hold"}} {
		_, err := f.writer.Create(t.Context(), &write.Request{Resource: resource}, write.Body{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name, "finalizers": finalizers},
		}})
		require.NoError(t, err)
	}
	definitionResource := f.registry.OfKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	_, err = f.writer.Delete(t.Context(), &write.Request{Resource: definitionResource, Name: "widgets.example.com"}, write.Body{})
	require.NoError(t, err)
	assert.Equal(t, 1, f.store.Len("example.com", "widgets"))
	assert.Contains(t, f.conditions(t, "widgets"), "Terminating=True InstanceDeletionInProgress: CustomResource deletion is in progress")

	held, _ := f.store.Get(store.Key{Group: "example.com", Resource: "widgets", Name: "held"})
	free := (&unstructuredv1.Unstructured{Object: held}).DeepCopy()
	free.SetFinalizers(nil)
	_, err = f.writer.Update(t.Context(), &write.Request{Resource: f.registry.Lookup("example.com", "v1", "widgets"), Name: "held"}, write.Body{Object: free.Object})
	require.NoError(t, err)
	_, found := f.store.Get(key("widgets"))
	assert.False(t, found)
	assert.Nil(t, f.registry.Lookup("example.com", "v1", "widgets"))
}
