package controllerruntime

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
)

// cache returns a cache of the side, and a function that starts it and waits until it has synced.
func (s *side) cache(t *testing.T, options ctrlcache.Options) (c ctrlcache.Cache, start func()) {
	t.Helper()
	newCache := ctrlcache.New
	if s.from != nil {
		newCache = s.from.NewCache
	}
	c, err := newCache(s.config, options)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	return c, func() {
		go func() { done <- c.Start(ctx) }()
		t.Cleanup(func() {
			cancel()
			assert.NoError(t, <-done)
		})
		require.True(t, c.WaitForCacheSync(ctx))
	}
}

// sorted sorts the items of a list by name, as caches return them in no order.
func sorted(list ctrlclient.ObjectList) ctrlclient.ObjectList {
	items, err := meta.ExtractList(list)
	if err == nil {
		slices.SortFunc(items, func(a, b runtime.Object) int {
			return strings.Compare(a.(ctrlclient.Object).GetName(), b.(ctrlclient.Object).GetName())
		})
		err = meta.SetList(list, items)
	}
	if err != nil {
		panic(err)
	}
	return list
}

// cacheStep is one call of a cache.
type cacheStep struct {
	name string
	run  func(ctx context.Context, s *side, c ctrlcache.Cache) (any, error)
}

// compareCaches creates config maps on both sides, starts a cache of the sides' namespaces and compares the outcome of steps.
func compareCaches(t *testing.T, options ctrlcache.Options, prepare func(*side, ctrlcache.Cache) error, steps []cacheStep) {
	t.Helper()
	ours, theirs := sides(t)
	caches := map[*side]ctrlcache.Cache{}
	for _, s := range []*side{ours, theirs} {
		writer := s.client(t, ctrlclient.Options{})
		for _, name := range []string{"a", "b", "c"} {
			require.NoError(t, writer.Create(t.Context(), s.configMap(name)))
		}
		of := options
		if of.DefaultNamespaces == nil {
			of.DefaultNamespaces = map[string]ctrlcache.Config{s.namespace: {}}
		}
		c, start := s.cache(t, of)
		if prepare != nil {
			require.NoError(t, prepare(s, c))
		}
		err := c.Get(t.Context(), ctrlclient.ObjectKey{Namespace: s.namespace, Name: "a"}, &corev1.ConfigMap{})
		if !options.ReaderFailOnMissingInformer {
			var notStarted *ctrlcache.ErrCacheNotStarted
			require.ErrorAs(t, err, &notStarted)
		}
		start()
		caches[s] = c
	}
	for _, step := range steps {
		want, wantErr := step.run(t.Context(), theirs, caches[theirs])
		got, gotErr := step.run(t.Context(), ours, caches[ours])
		assert.Equal(t, theirs.outcome(t, want, wantErr), ours.outcome(t, got, gotErr), step.name)
		assert.Equal(t, apierrors.IsNotFound(wantErr), apierrors.IsNotFound(gotErr), step.name)
		assert.Equal(t, meta.IsNoMatchError(wantErr), meta.IsNoMatchError(gotErr), step.name)
	}
}

func indexData(obj ctrlclient.Object) []string {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		return []string{obj.Data["k"]}
	default:
		return []string{obj.GetName()}
	}
}

func untypedList() *unstructuredv1.UnstructuredList {
	list := &unstructuredv1.UnstructuredList{}
	list.SetGroupVersionKind(configMaps.GroupVersion().WithKind("ConfigMapList"))
	return list
}

func metadataList() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(configMaps.GroupVersion().WithKind("ConfigMapList"))
	return list
}

func TestCache_Reads(t *testing.T) {
	indexed := func(s *side, c ctrlcache.Cache) error {
		ctx := context.Background()
		return errors.Join(
			c.IndexField(ctx, &corev1.ConfigMap{}, "data.k", indexData),
			c.IndexField(ctx, untyped(configMaps, "", ""), "name", indexData),
			c.IndexField(ctx, metadataOf(configMaps, "", ""), "name", indexData),
		)
	}
	listing := func(name string, newList func() ctrlclient.ObjectList, opts ...ctrlclient.ListOption) cacheStep {
		return cacheStep{name, func(ctx context.Context, s *side, c ctrlcache.Cache) (any, error) {
			list := newList()
			err := c.List(ctx, list, append([]ctrlclient.ListOption{ctrlclient.InNamespace(s.namespace)}, opts...)...)
			return sorted(list), err
		}}
	}
	typedList := func() ctrlclient.ObjectList { return &corev1.ConfigMapList{} }
	byName := func(name string) ctrlclient.ListOption {
		return ctrlclient.MatchingLabelsSelector{Selector: labels.SelectorFromSet(labels.Set{"app": name})}
	}
	steps := []cacheStep{
		{"get typed", func(ctx context.Context, s *side, c ctrlcache.Cache) (any, error) {
			obj := &corev1.ConfigMap{Data: map[string]string{"stale": "true"}}
			return obj, c.Get(ctx, ctrlclient.ObjectKey{Namespace: s.namespace, Name: "a"}, obj)
		}},
		{"get untyped", func(ctx context.Context, s *side, c ctrlcache.Cache) (any, error) {
			obj := untyped(configMaps, "", "")
			return obj, c.Get(ctx, ctrlclient.ObjectKey{Namespace: s.namespace, Name: "a"}, obj)
		}},
		{"get metadata", func(ctx context.Context, s *side, c ctrlcache.Cache) (any, error) {
			obj := metadataOf(configMaps, "", "")
			return obj, c.Get(ctx, ctrlclient.ObjectKey{Namespace: s.namespace, Name: "a"}, obj)
		}},
		{"get none", func(ctx context.Context, s *side, c ctrlcache.Cache) (any, error) {
			return nil, c.Get(ctx, ctrlclient.ObjectKey{Namespace: s.namespace, Name: "none"}, &corev1.ConfigMap{})
		}},
		{"get cluster-scoped", func(ctx context.Context, s *side, c ctrlcache.Cache) (any, error) {
			obj := &corev1.Namespace{}
			return obj.Name, c.Get(ctx, ctrlclient.ObjectKey{Name: s.namespace}, obj)
		}},
		{"get from another namespace", func(ctx context.Context, s *side, c ctrlcache.Cache) (any, error) {
			return nil, c.Get(ctx, ctrlclient.ObjectKey{Namespace: "other", Name: "a"}, &corev1.ConfigMap{})
		}},
		{"get unknown kind", func(ctx context.Context, s *side, c ctrlcache.Cache) (any, error) {
			obj := untyped(configMaps.GroupKind().WithVersion("v9"), "", "")
			return nil, c.Get(ctx, ctrlclient.ObjectKey{Namespace: s.namespace, Name: "a"}, obj)
		}},
		listing("list untyped", func() ctrlclient.ObjectList { return untypedList() }, byName("a")),
		listing("list metadata", func() ctrlclient.ObjectList { return metadataList() }, byName("a")),
		listing("list typed", typedList, byName("a")),
		listing("list by index", typedList, ctrlclient.MatchingFields{"data.k": "v"}, byName("b")),
		listing("list none by index", typedList, ctrlclient.MatchingFields{"data.k": "other"}),
		listing("list untyped by index", func() ctrlclient.ObjectList { return untypedList() }, ctrlclient.MatchingFields{"name": "b"}),
		listing("list metadata by index", func() ctrlclient.ObjectList { return metadataList() }, ctrlclient.MatchingFields{"name": "b"}),
		listing("list by an unknown index", typedList, ctrlclient.MatchingFields{"unknown": "b"}),
		listing("list with continue", typedList, ctrlclient.Continue("token")),
		listing("list without copies", typedList, byName("a"), ctrlclient.UnsafeDisableDeepCopy),
		{"limit", func(ctx context.Context, s *side, c ctrlcache.Cache) (any, error) {
			list := &corev1.ConfigMapList{}
			err := c.List(ctx, list, ctrlclient.InNamespace(s.namespace), ctrlclient.Limit(2))
			return []any{len(list.Items), list.Continue}, err
		}},
		{"an index after the start", func(ctx context.Context, s *side, c ctrlcache.Cache) (any, error) {
			if err := c.IndexField(ctx, &corev1.ConfigMap{}, "late", func(obj ctrlclient.Object) []string { return []string{obj.GetName()} }); err != nil {
				return nil, err
			}
			list := &corev1.ConfigMapList{}
			return list, c.List(ctx, list, ctrlclient.InNamespace(s.namespace), ctrlclient.MatchingFields{"late": "c"})
		}},
		{"an index twice", func(ctx context.Context, _ *side, c ctrlcache.Cache) (any, error) {
			return nil, c.IndexField(ctx, &corev1.ConfigMap{}, "data.k", indexData)
		}},
		{"remove an informer", func(ctx context.Context, s *side, c ctrlcache.Cache) (any, error) {
			if err := c.RemoveInformer(ctx, &corev1.ConfigMap{}); err != nil {
				return nil, err
			}
			obj := &corev1.ConfigMap{}
			return obj, c.Get(ctx, ctrlclient.ObjectKey{Namespace: s.namespace, Name: "a"}, obj)
		}},
		{"start again", func(ctx context.Context, _ *side, c ctrlcache.Cache) (any, error) { return c.Start(ctx) != nil, nil }},
	}
	compareCaches(t, ctrlcache.Options{}, indexed, steps)
}

func TestCache_Options(t *testing.T) {
	get := func(name string) cacheStep {
		return cacheStep{"get " + name, func(ctx context.Context, s *side, c ctrlcache.Cache) (any, error) {
			obj := &corev1.ConfigMap{}
			return obj, c.Get(ctx, ctrlclient.ObjectKey{Namespace: s.namespace, Name: name}, obj)
		}}
	}
	for name, options := range map[string]ctrlcache.Options{
		"selector":    {DefaultLabelSelector: labels.SelectorFromSet(labels.Set{"app": "a"})},
		"by object":   {ByObject: map[ctrlclient.Object]ctrlcache.ByObject{&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{"app": "b"})}}},
		"transform":   {DefaultTransform: ctrlcache.TransformStripManagedFields()},
		"no copies":   {DefaultUnsafeDisableDeepCopy: ptr(true)},
		"no informer": {ReaderFailOnMissingInformer: true},
	} {
		t.Run(name, func(t *testing.T) {
			compareCaches(t, options, nil, []cacheStep{get("a"), get("b")})
		})
	}
}

func TestCache_SeveralNamespaces(t *testing.T) {
	compareCaches(t, ctrlcache.Options{DefaultNamespaces: map[string]ctrlcache.Config{"default": {}, "": {LabelSelector: labels.SelectorFromSet(labels.Set{"app": "a"})}}}, nil, []cacheStep{
		{"get", func(ctx context.Context, s *side, c ctrlcache.Cache) (any, error) {
			obj := &corev1.ConfigMap{}
			return obj, c.Get(ctx, ctrlclient.ObjectKey{Namespace: s.namespace, Name: "a"}, obj)
		}},
		{"list", func(ctx context.Context, s *side, c ctrlcache.Cache) (any, error) {
			list := &corev1.ConfigMapList{}
			return sorted(list), c.List(ctx, list, ctrlclient.InNamespace(s.namespace))
		}},
	})
}

func TestCache_ForbiddenIsReportedAndRetried(t *testing.T) {
	failures := make(chan error, 100)
	c, err := New(t.Context(), connectLimited(t)).NewCache(nil, ctrlcache.Options{
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolsReflector, err error) {
			select {
			case failures <- err:
			default:
			}
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	informer, err := c.GetInformer(ctx, &corev1.Secret{}, ctrlcache.BlockUntilSynced(false))
	require.NoError(t, err)
	for range 2 {
		select {
		case err := <-failures:
			assert.True(t, apierrors.IsForbidden(err), "%v", err)
		case <-time.After(2 * time.Minute):
			t.Fatal("no error was reported")
		}
	}
	assert.False(t, informer.HasSynced())
	cancel()
	require.NoError(t, <-done)
	assert.Eventually(t, informer.IsStopped, time.Minute, time.Millisecond)
}
