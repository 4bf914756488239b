package definitioncheck_test

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/apitest/definitioncheck"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/corpus"
	"github.com/anykind/anykind/unstructured"
)

const (
	corpusKinds   = 25
	objectsOfKind = 5
)

// TestCheck_CorpusUnchanged checks unchanged definitions of projects with objects of these projects: there is nothing to find.
func TestCheck_CorpusUnchanged(t *testing.T) {
	t.Parallel()
	c := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, c)
	definitions := client.Resource(t, c, "customresourcedefinitions")
	type kind struct{ group, kind string }
	objects := map[kind][]corpus.File{}
	for _, file := range corpus.Objects(t, 6000) {
		objects[kind{file.Group, file.Kind}] = append(objects[kind{file.Group, file.Kind}], file)
	}
	var chosen []*unstructured.Object
	files := map[string][]corpus.File{}
	for _, file := range corpus.Definitions(t, 300) {
		ofKind := objects[kind{file.Group, file.Kind}]
		if len(ofKind) == 0 || len(chosen) == corpusKinds {
			continue
		}
		definition := decode(t, file.JSON)
		delete(definition.Object, "status")
		delete(definition.Object["spec"].(map[string]any), "conversion")
		_, err := definitions.Create(t.Context(), definition, nil)
		if apierrors.IsInvalid(err) {
			continue
		}
		require.NoError(t, err, file.Source)
		client.DeleteAtEnd(t, definitions, definition.GetName())
		chosen = append(chosen, definition)
		files[definition.GetName()] = ofKind[:min(len(ofKind), objectsOfKind)]
	}
	var all sync.WaitGroup
	for _, definition := range chosen { // the first object of a new kind waits a second or two
		all.Go(func() {
			_, err := definitions.Wait(t.Context(), definition.GetName(), dynamic.Condition("Established"))
			assert.NoError(t, err)
			for _, file := range files[definition.GetName()] {
				createCorpusObject(t, c, namespace, file)
			}
		})
	}
	all.Wait()
	var checked atomic.Int64
	t.Run("checked", func(t *testing.T) {
		for _, definition := range chosen {
			t.Run(definition.GetName(), func(t *testing.T) {
				t.Parallel()
				report, err := definitioncheck.Check(t.Context(), c, definition, nil)
				require.NoError(t, err)
				assert.Empty(t, report.Findings)
				assert.Empty(t, report.Definition)
				checked.Add(int64(report.Objects))
			})
		}
	})
	t.Logf("%d kinds, %d objects", len(chosen), checked.Load())
	assert.Greater(t, checked.Load(), int64(20))
}

func decode(t *testing.T, text []byte) *unstructured.Object {
	t.Helper()
	obj := &unstructured.Object{}
	require.NoError(t, json.Unmarshal(text, &obj.Object))
	return obj
}

// createCorpusObject creates an object if the server accepts it.
func createCorpusObject(t *testing.T, c *dynamic.Client, namespace string, file corpus.File) {
	t.Helper()
	obj := decode(t, file.JSON)
	resource, err := c.ForObject(t.Context(), obj)
	if err != nil {
		return // of a version that is not served
	}
	for _, name := range []string{"namespace", "uid", "resourceVersion", "ownerReferences", "finalizers"} { // no controller removes a finalizer
		delete(obj.Object["metadata"].(map[string]any), name)
	}
	if resource.APIResource().Namespaced {
		resource = resource.Namespace(namespace)
	}
	require.EventuallyWithT(t, func(ct *assert.CollectT) {
		_, err := resource.Create(t.Context(), obj, nil)
		assert.False(ct, apierrors.IsTooManyRequests(err) || apierrors.IsNotFound(err), "%v", err)
	}, time.Minute, 50*time.Millisecond)
}
