package applyset_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/corpus"
	"github.com/anykind/anykind/unstructured"
)

// count returns the number in an environment variable, or a default for the normal tests.
func count(t *testing.T, variable string, normal int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return normal
	}
	number, err := strconv.Atoi(text)
	require.NoError(t, err, "%s", variable)
	return number
}

// TestCompare_AgreesWithApply changes objects at random, also as a different manager. An object without a difference is not changed
// by an apply. Few applies without an effect have a difference.
func TestCompare_AgreesWithApply(t *testing.T) {
	e := newEnvironment(t)
	seed := rand.Uint64()
	if text := os.Getenv("ANYKIND_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("seed %d", seed)
	c := &comparisons{environment: e, random: rand.New(rand.NewPCG(seed, 0))}
	var objects []*unstructured.Object
	for _, obj := range e.objects(t, shop) {
		objects = append(objects, obj.Object)
	}
	for _, file := range corpus.Objects(t, count(t, "ANYKIND_APPLYSET_OBJECTS", 300)) {
		obj, err := unstructured.Decode(file.JSON)
		require.NoError(t, err)
		objects = append(objects, obj)
	}
	for i, obj := range objects {
		c.object(t, i, obj)
	}
	t.Logf("%d applies, %d without an effect, %d of these with a difference", c.applies, c.noops, c.needless)
	assert.Greater(t, c.noops, 50)
	assert.Less(t, c.needless, c.applies/20, "differences without an effect")
}

type comparisons struct {
	*environment
	random                   *rand.Rand
	applies, noops, needless int
}

// object compares an object and changed copies of it, if its kind is built in and namespaced and the server accepts it.
func (c *comparisons) object(t *testing.T, index int, obj *unstructured.Object) {
	resource, err := c.ForKind(t.Context(), obj.GroupVersionKind())
	if err != nil || !resource.APIResource().Namespaced || obj.GetKind() == "Pod" {
		return // the fields of a pod are immutable
	}
	delete(obj.Object, "stringData") // a set applies it as data
	obj.SetOwnerReferences(nil)      // the garbage collector would delete the object
	obj.SetNamespace(c.namespace)
	obj.SetName(fmt.Sprintf("object-%d", index))
	obj.SetLabels(map[string]string{applyset.PartOfLabel: "test"}) // every object of a set has a field
	resource = resource.Namespace(c.namespace)
	if c.apply(t, resource, obj, "first") == nil {
		return
	}
	for range count(t, "ANYKIND_APPLYSET_MUTATIONS", 4) {
		changed := obj.DeepCopy()
		changed.SetManagedFields(nil)
		description := mutate(c.random, changed.Object)
		switch c.random.IntN(3) {
		case 0: // taken over by a different manager, then applied again
			_, err := resource.Apply(t.Context(), changed, &metav1.ApplyOptions{FieldManager: "different", Force: true})
			if err == nil {
				c.apply(t, resource, obj, "different manager: "+description)
			}
		case 1:
			c.apply(t, resource, changed, description)
			c.apply(t, resource, changed, "again: "+description)
		default:
			c.apply(t, resource, changed, description)
			c.apply(t, resource, obj, "back: "+description)
		}
	}
}

const comparedManager = "applyset/test"

// apply compares an object with the live object, applies it, and compares the effect. It returns nil if the server rejects it.
func (c *comparisons) apply(t *testing.T, resource *dynamic.Resource, obj *unstructured.Object, description string) *unstructured.Object {
	opts := &metav1.ApplyOptions{FieldManager: comparedManager, Force: true}
	if _, err := resource.Get(t.Context(), obj.GetName(), nil); err != nil {
		if _, err := resource.Apply(t.Context(), obj, opts); err != nil {
			return nil
		}
	}
	before, after := c.dryRun(t, resource, obj, opts)
	if after == nil {
		return nil
	}
	_, hasStatus := resource.APIResource().Subresource("status")
	drifts := applyset.Compare(obj, before, comparedManager, hasStatus)
	live, err := resource.Apply(t.Context(), obj, opts)
	if err != nil {
		return nil
	}
	c.applies++
	if !assert.ObjectsAreEqual(withoutVersions(before), withoutVersions(after)) {
		assert.NotEmpty(t, drifts, "%s: the effect is not reported: %s\nobject: %v\nbefore: %v\nafter: %v", obj.GroupVersionKind(), description,
			obj.Object, before.Object, after.Object)
		return live
	}
	c.noops++
	if len(drifts) > 0 {
		c.needless++
		t.Logf("%s: %s: no effect of %+v", obj.GroupVersionKind(), description, drifts)
	}
	return live
}

// dryRun returns an object and the result of a dry run of an apply of the same version: controllers write, too. after is nil if the
// server rejects the apply.
func (c *comparisons) dryRun(t *testing.T, resource *dynamic.Resource, obj *unstructured.Object, opts *metav1.ApplyOptions,
) (before, after *unstructured.Object) {
	t.Helper()
	dryRun := resource.WithDefaults(&dynamic.Defaults{DryRun: true})
	for {
		before, err := resource.Get(t.Context(), obj.GetName(), nil)
		require.NoError(t, err)
		after, err := dryRun.Apply(t.Context(), obj, opts)
		if err != nil {
			return before, nil
		}
		if before.GetResourceVersion() == after.GetResourceVersion() {
			return before, after
		}
	}
}

// withoutVersions returns the fields of an object without its resourceVersion and generation, and the fields of the compared manager.
func withoutVersions(obj *unstructured.Object) map[string]any {
	copied := obj.DeepCopy()
	copied.SetResourceVersion("")
	copied.SetGeneration(0)
	managers := slices.DeleteFunc(copied.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager != comparedManager || entry.Operation != metav1.ManagedFieldsOperationApply
	})
	for i := range managers {
		managers[i].Time = nil
	}
	copied.SetManagedFields(managers)
	return copied.Object
}

// mutate changes a random field of an object in place and returns a description.
func mutate(random *rand.Rand, fields map[string]any) string {
	parts := slices.Collect(maps.Keys(fields))
	slices.Sort(parts)
	parts = slices.DeleteFunc(parts, func(name string) bool { return name == "apiVersion" || name == "kind" || name == "status" })
	name := parts[random.IntN(len(parts))]
	if name == "metadata" {
		metadata, _ := fields[name].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		metadata["annotations"] = map[string]any{"example.com/" + strconv.Itoa(random.IntN(3)): strconv.Itoa(random.IntN(3))}
		return fmt.Sprintf("annotations %v", annotations)
	}
	changed, description := mutateValue(random, fields[name])
	if changed == nil {
		delete(fields, name)
	} else {
		fields[name] = changed
	}
	return name + description
}

// mutateValue returns a changed value, or nil for a removed value.
func mutateValue(random *rand.Rand, value any) (any, string) {
	switch value := value.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(value))
		if len(names) == 0 || random.IntN(8) == 0 {
			return nil, " removed"
		}
		name := names[random.IntN(len(names))]
		changed, description := mutateValue(random, value[name])
		if changed == nil {
			delete(value, name)
		} else {
			value[name] = changed
		}
		return value, "." + name + description
	case []any:
		if len(value) == 0 {
			return nil, " removed"
		}
		switch i := random.IntN(len(value)); random.IntN(6) {
		case 0:
			return slices.Delete(value, i, i+1), fmt.Sprintf("[%d] removed", i)
		case 1:
			slices.Reverse(value)
			return value, " reversed"
		default:
			changed, description := mutateValue(random, value[i])
			if changed == nil {
				return slices.Delete(value, i, i+1), fmt.Sprintf("[%d] removed", i)
			}
			value[i] = changed
			return value, fmt.Sprintf("[%d]%s", i, description)
		}
	case string:
		if random.IntN(3) == 0 {
			return nil, " removed"
		}
		return value + "a", " changed"
	case int64:
		if random.IntN(3) == 0 {
			return nil, " removed"
		}
		return value + 1, " changed"
	case bool:
		return !value, " changed"
	default:
		return nil, " removed"
	}
}
