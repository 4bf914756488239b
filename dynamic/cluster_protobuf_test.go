package dynamic_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/protobuf"
	testclient "github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// connectRecording returns an administrator's client and a function that returns the media types of its responses since the last
// call.
func connectRecording(t *testing.T, protobuf bool) (client *dynamic.Client, received func() map[string]int) {
	t.Helper()
	var mu sync.Mutex
	types := map[string]int{}
	client = testclient.Connect(t, "admin", func(cfg *transport.Config) {
		cfg.Protobuf = protobuf
		cfg.OnAttempt = func(_ context.Context, attempt transport.Attempt) {
			mu.Lock()
			defer mu.Unlock()
			mediaType, _, _ := strings.Cut(attempt.ContentType, ";")
			types[mediaType]++
		}
	})
	return client, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		last := types
		types = map[string]int{}
		return last
	}
}

func TestProtobuf_EqualsJSONForEveryKind(t *testing.T) {
	kinds, listed, _ := compareEveryKind(t)
	assert.Greater(t, kinds, listed, "built-in kinds, and metadata of every kind")
}

// TestProtobuf_TableOfOlderVersion repeats it with the table of Kubernetes v1.35: dropped are the kinds and fields that v1.36 and v1.37
// added to messages of v1.35.
func TestProtobuf_TableOfOlderVersion(t *testing.T) {
	added, err := os.ReadFile(filepath.Join("testdata", "added_since_v1.35.txt"))
	require.NoError(t, err)
	t.Cleanup(protobuf.Replace(withoutFields(strings.Split(strings.TrimSpace(string(added)), "\n")...)))
	client := testclient.Connect(t, "admin")
	drivers := resource(t, client, "csidrivers")
	driver, err := drivers.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"generateName": "test-"}, "spec": map[string]any{"preventPodSchedulingIfMissing": true},
	}}, nil)
	require.NoError(t, err)
	testclient.DeleteAtEnd(t, drivers, driver.GetName())
	kinds, listed, fallbacks := compareEveryKind(t)
	assert.Greater(t, kinds, listed, "metadata of every kind, and most built-in kinds")
	_, isNewer, err := unstructuredv1.NestedBool(driver.Object, "spec", "preventPodSchedulingIfMissing")
	require.NoError(t, err)
	assert.Equal(t, isNewer, slices.Contains(fallbacks, drivers.String()), "from v1.36 on servers have the field")
}

// compareEveryKind compares the lists of all resources as protobuf and as JSON. It returns the number of lists that were protobuf, of
// resources and of their metadata, the number of resources, and the resources whose lists were repeated as JSON.
func compareEveryKind(t *testing.T) (kinds, listed int, fallbacks []string) {
	t.Helper()
	_, namespace := newNamespace(t)
	client, received := connectRecording(t, true)
	inJSON, receivedJSON := connectRecording(t, false)
	sharedWidgets(t, client, namespace)
	resources, err := client.PreferredResources(t.Context(), &discovery.ResourceFilter{Verbs: []string{"list"}})
	require.NoError(t, err)
	objects := 0
	for _, r := range resources {
		other := inJSON.ForAPIResource(r.APIResource())
		for _, pair := range [][2]*dynamic.Resource{{r.AllNamespaces(), other.AllNamespaces()}, {r.AllNamespaces().Metadata(), other.AllNamespaces().Metadata()}} {
			received()
			got := allListed(t, pair[0])
			types := received()
			receivedJSON()
			want := allListed(t, pair[1])
			assert.NotContains(t, receivedJSON(), protobufType)
			assertSameUnlessChanged(t, r.String(), want, got)
			switch {
			case types[protobufType] > 0 && len(types) > 1:
				fallbacks = append(fallbacks, r.String())
			case types[protobufType] > 0:
				kinds++
				objects += len(got)
			}
			for _, lazy := range allListed(t, dynamic.As[unstructured.Lazy](pair[0])) {
				obj, err := lazy.Object()
				require.NoError(t, err)
				assertSameUnlessChanged(t, r.String(), want, []*unstructured.Object{obj})
			}
		}
	}
	t.Logf("%d of %d lists as protobuf, %d objects; fallbacks: %v", kinds, 2*len(resources), objects, fallbacks)
	return kinds, len(resources), fallbacks
}

func allListed[T any](t *testing.T, r *dynamic.Handle[T]) (all []*T) {
	t.Helper()
	for obj, err := range r.List(t.Context(), nil) {
		require.NoError(t, err)
		all = append(all, obj)
	}
	return all
}

// assertSameUnlessChanged compares the objects that have the same version in both lists.
func assertSameUnlessChanged(t *testing.T, kind string, want, got []*unstructured.Object) {
	t.Helper()
	versions := map[string]*unstructured.Object{}
	for _, obj := range want {
		versions[string(obj.GetUID())+obj.GetNamespace()+"/"+obj.GetName()+"@"+obj.GetResourceVersion()] = obj
	}
	for _, obj := range got {
		if same := versions[string(obj.GetUID())+obj.GetNamespace()+"/"+obj.GetName()+"@"+obj.GetResourceVersion()]; same != nil {
			assert.Equal(t, same, obj, kind)
		}
	}
}

func TestProtobuf_GetAndWatchEqualJSON(t *testing.T) {
	_, namespace := newNamespace(t)
	client, received := connectRecording(t, true)
	inJSON, _ := connectRecording(t, false)
	configMaps := resource(t, client, "configmaps").Namespace(namespace)
	other := resource(t, inJSON, "configmaps").Namespace(namespace)
	before, err := configMaps.ListPage(t.Context(), nil)
	require.NoError(t, err)
	_, err = configMaps.Create(t.Context(), configMap("web", map[string]any{"key": "value"}), nil)
	require.NoError(t, err)
	received()
	for _, read := range []func(r *dynamic.Resource) *unstructured.Object{
		func(r *dynamic.Resource) *unstructured.Object {
			obj, err := r.Get(t.Context(), "web", nil)
			require.NoError(t, err)
			return obj
		},
		func(r *dynamic.Resource) *unstructured.Object {
			for event, err := range r.Watch(t.Context(), &metav1.ListOptions{ResourceVersion: before.ResourceVersion}) {
				require.NoError(t, err)
				if event.Object.GetName() == "web" {
					assert.Equal(t, watch.Added, event.Type)
					return event.Object
				}
			}
			return nil
		},
		func(r *dynamic.Resource) *unstructured.Object {
			for change, err := range r.Follow(t.Context(), &dynamic.FollowOptions{Intern: true}) {
				require.NoError(t, err)
				if change.Type == watch.Added && change.Object.GetName() == "web" { // not the root certificate
					return change.Object
				}
			}
			return nil
		},
	} {
		assert.Equal(t, read(other), read(configMaps))
		assert.Contains(t, received(), protobufType)
	}
}
