package cache_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// nestedPod returns a pod with maps in lists, which pods of a version have alike.
func nestedPod(name string, version int) *object {
	obj := pod("shop", name, "web", version)
	obj.Object["spec"] = map[string]any{"containers": []any{map[string]any{"name": "web", "env": []any{map[string]any{"name": "A", "value": "1"}}}}}
	obj.Object["status"] = map[string]any{"version": fmt.Sprint(version)}
	return obj
}

func TestTransform_ObjectsShareEqualParts(t *testing.T) {
	for name, transform := range map[string]func(*object) *object{
		"changes the object": func(obj *object) *object { delete(obj.Object, "status"); return obj },
		"returns another":    func(obj *object) *object { return obj.DeepCopy() },
	} {
		t.Run(name, func(t *testing.T) {
			c, source := running(t, &cache.Options[object]{Transform: transform})
			const count = 50
			for i := range count {
				source.emit(watch.Added, nestedPod(fmt.Sprint("web-", i), 1))
			}
			source.emit(dynamic.Synced, nil)
			require.NoError(t, c.WaitForSync(t.Context()))
			specs := map[uintptr]int{}
			labels := map[uintptr]int{}
			for _, obj := range c.List("", nil) {
				specs[reflect.ValueOf(obj.Object["spec"]).Pointer()]++
				labels[reflect.ValueOf(obj.Object["metadata"].(map[string]any)["labels"]).Pointer()]++
			}
			assert.Len(t, specs, 2, "the first has its own, before it is known that it comes again")
			assert.Len(t, labels, 2)
		})
	}
}

// TestOptions_DisableInterning changes one object, with and without a Transform, and counts the objects that show it.
func TestOptions_DisableInterning(t *testing.T) {
	t.Setenv("ANYKIND_CACHE_MUTATION_DETECTOR", "false")
	for name, transform := range map[string]func(*object) *object{
		"with a Transform": func(obj *object) *object { return obj }, "without": nil,
	} {
		for _, isDisabled := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", disabled: ", isDisabled), func(t *testing.T) {
				c, source := running(t, &cache.Options[object]{Transform: transform, DisableInterning: isDisabled})
				passed := make(chan bool, 1)
				source.changes <- func(opts *dynamic.FollowOptions) (change, error) {
					passed <- opts.Intern
					return change{}, nil
				}
				assert.Equal(t, transform == nil && !isDisabled, <-passed)
				for i := range 10 {
					source.emit(watch.Added, nestedPod(fmt.Sprint("web-", i), 1))
				}
				source.emit(dynamic.Synced, nil)
				require.NoError(t, c.WaitForSync(t.Context()))
				obj, _ := c.Get("shop", "web-5")
				require.NoError(t, unstructured.Set(obj, "changed", "spec", "containers", "0", "name"))
				changed := 0
				for _, obj := range c.List("", nil) {
					if strings.Contains(fmt.Sprint(obj.Object), "changed") {
						changed++
					}
				}
				if isDisabled || transform == nil { // the script interns nothing
					assert.Equal(t, 1, changed)
				} else {
					assert.Greater(t, changed, 1)
				}
			})
		}
	}
}

// TestTransform_WritesReachNoOtherObject has a Transform that writes to nested maps of each object that it gets, while readers
// read all others: a shared map among them would be a data race.
func TestTransform_WritesReachNoOtherObject(t *testing.T) {
	constant := map[string]any{"of": []any{"all objects"}}
	c, source := running(t, &cache.Options[object]{Transform: func(obj *object) *object {
		web := obj.Object["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
		web["name"] = obj.GetName()
		web["env"].([]any)[0].(map[string]any)["value"] = obj.GetResourceVersion()
		obj.Object["metadata"].(map[string]any)["labels"].(map[string]any)["seen"] = "true"
		obj.Object["constant"] = constant
		return obj
	}})
	const count, versions = 10, 20
	var held []*object
	var texts []string
	done := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			for _, obj := range c.List("", nil) {
				held = append(held, obj)
				texts = append(texts, fmt.Sprint(obj.Object))
			}
		}
	})
	for version := range versions {
		for i := range count {
			kind := watch.Modified
			if version == 0 {
				kind = watch.Added
			}
			source.emit(kind, nestedPod(fmt.Sprint("web-", i), version+1))
		}
	}
	source.emit(dynamic.Synced, nil)
	require.NoError(t, c.WaitForSync(t.Context()))
	close(done)
	readers.Wait()
	for i, obj := range held {
		require.Equal(t, texts[i], fmt.Sprint(obj.Object))
	}
	require.Len(t, c.List("", nil), count)
	for _, obj := range c.List("", nil) {
		name, _, err := unstructured.Get[string](obj, "spec", "containers", "0", "name")
		require.NoError(t, err)
		assert.Equal(t, obj.GetName(), name)
		value, _, err := unstructured.Get[string](obj, "spec", "containers", "0", "env", "0", "value")
		require.NoError(t, err)
		assert.Equal(t, obj.GetResourceVersion(), value)
	}
}

func TestTransform_MutationsAreDetected(t *testing.T) {
	source := newScript()
	c := cache.New(source, &cache.Options[object]{DetectMutations: true, Transform: func(obj *object) *object { return obj }})
	result := make(chan error, 1)
	go func() { result <- c.Run(t.Context()) }()
	for i := range 5 {
		source.emit(watch.Added, nestedPod(fmt.Sprint("web-", i), 1))
	}
	source.emit(dynamic.Synced, nil)
	require.NoError(t, c.WaitForSync(t.Context()))
	shared, _ := c.Get("shop", "web-3")
	shared.Object["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["name"] = "changed"
	source.emit(watch.Modified, nestedPod("web-4", 2))
	var mutation *cache.MutationError
	require.ErrorAs(t, <-result, &mutation)
	assert.Equal(t, ".spec.containers[0].name", mutation.Field)
}
