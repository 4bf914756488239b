package cache_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/internal/testing/cluster"
)

// kubectl returns the words that kubectl prints.
func kubectl(t *testing.T, args ...string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), cluster.Kubectl(t), append([]string{"--kubeconfig", cluster.Kubeconfig(t), "--cache-dir", t.TempDir()}, args...)...)
	output, err := command.Output()
	require.NoError(t, err, "%s", command)
	words := strings.Fields(string(output))
	slices.Sort(words)
	return words
}

func TestNamespaces_AgreeWithKubectl(t *testing.T) {
	configMaps := resource(t, "cm")
	mine := []string{namespace(t), namespace(t)}
	other := namespace(t)
	for _, one := range append([]string{other}, mine...) {
		for _, name := range []string{"a", "b"} {
			_, err := configMaps.Namespace(one).Create(t.Context(), configMap(name), nil)
			require.NoError(t, err)
		}
	}
	c := cache.New(configMaps.AllNamespaces(), &cache.Options[object]{Namespaces: mine})
	run(t, c)
	require.NoError(t, c.WaitForSync(t.Context()))
	_, err := c.TrackWrites(configMaps).Namespace(mine[1]).Create(t.Context(), configMap("c"), nil)
	require.NoError(t, err)
	require.NoError(t, c.WaitForWrites(t.Context()))
	var want []string
	for _, one := range mine {
		want = append(want, kubectl(t, "get", "cm", "-n", one, "-o", `jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{"\n"}{end}`)...)
	}
	slices.Sort(want)
	assert.Equal(t, want, names(c.List("", nil)))
	assert.Empty(t, c.List(other, nil))
	assert.NoError(t, c.Health())
}

func TestNamespaces_WithoutClusterWideRights(t *testing.T) {
	admin := resource(t, "cm")
	later := namespace(t)
	_, err := admin.Namespace(later).Create(t.Context(), configMap("web"), nil)
	require.NoError(t, err)
	configMaps := resourceAs(t, "limited", "cm").AllNamespaces()
	whole := cache.New(configMaps, nil)
	run(t, whole)
	require.True(t, apierrors.IsForbidden(whole.WaitForSync(t.Context())), "the user has no rights on all namespaces")

	c := cache.New(configMaps, &cache.Options[object]{Namespaces: []string{"default", later}})
	run(t, c)
	err = c.WaitForSync(t.Context())
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	var rejected *cache.RejectedError
	require.ErrorAs(t, err, &rejected)
	assert.ErrorContains(t, err, "cache /api/v1/configmaps: rejected: namespace \""+later+"\": ")
	assert.Equal(t, err, c.Health())
	want := kubectl(t, "get", "cm", "-n", "default", "-o", `jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{"\n"}{end}`)
	assert.Equal(t, want, names(c.List("default", nil)), "the other namespace is cached")

	kubectl(t, "create", "role", "reader", "-n", later, "--verb=get,list,watch", "--resource=configmaps")
	kubectl(t, "create", "rolebinding", "reader", "-n", later, "--role=reader", "--user=limited")
	require.Eventually(t, func() bool { return c.Health() == nil }, patience, 10*time.Millisecond, "once the rights are granted")
	require.NoError(t, c.WaitForSync(t.Context()))
	_, found := c.Get(later, "web")
	assert.True(t, found)
}

// TestTrackWrites_EveryVerb reads each write from the cache as soon as it has it.
func TestTrackWrites_EveryVerb(t *testing.T) {
	home := namespace(t)
	configMaps := resource(t, "cm").Namespace(home)
	c := cache.New(configMaps, nil)
	run(t, c)
	tracked := c.TrackWrites(configMaps)
	read := func(name string) *object {
		t.Helper()
		obj, err := configMaps.Get(t.Context(), name, nil)
		if !apierrors.IsNotFound(err) {
			require.NoError(t, err)
		}
		require.NoError(t, c.WaitForWrites(t.Context(), types.NamespacedName{Namespace: home, Name: name}))
		cached, found := c.Get(home, name)
		if apierrors.IsNotFound(err) {
			require.False(t, found, "deleted")
			return nil
		}
		require.True(t, found)
		require.Equal(t, obj.GetResourceVersion(), cached.GetResourceVersion())
		return cached
	}
	patch := func(name, merge string) {
		t.Helper()
		_, err := tracked.Patch(t.Context(), name, types.MergePatchType, []byte(merge), nil)
		require.NoError(t, err)
	}
	for range 20 {
		created, err := tracked.Create(t.Context(), configMap("web", "1"), nil)
		require.NoError(t, err)
		read("web")
		created.SetLabels(map[string]string{"app": "web"})
		_, err = tracked.Update(t.Context(), created, nil)
		require.NoError(t, err)
		read("web")
		patch("web", `{"data":{"v0":"2"}}`)
		read("web")
		applied := configMap("web", "3")
		_, err = tracked.Apply(t.Context(), applied, &metav1.ApplyOptions{FieldManager: "test", Force: true})
		require.NoError(t, err)
		assert.Equal(t, map[string]any{"v0": "3"}, read("web").Object["data"])
		_, err = tracked.Delete(t.Context(), "web", nil)
		require.NoError(t, err)
		require.Nil(t, read("web"))

		_, err = tracked.Create(t.Context(), configMap("web", "4"), nil) // another object of the name, with a finalizer
		require.NoError(t, err)
		patch("web", `{"metadata":{"finalizers":["example.com/disk"]}}`)
		deleted, err := tracked.Delete(t.Context(), "web", nil)
		require.NoError(t, err)
		require.NotNil(t, deleted.Object)
		assert.NotNil(t, read("web").GetDeletionTimestamp())
		patch("web", `{"metadata":{"finalizers":null}}`)
		require.Nil(t, read("web"))
	}
	assert.Empty(t, kubectl(t, "get", "cm", "web", "-n", home, "--ignore-not-found"))
}

func TestTrackWrites_DeletedPod(t *testing.T) {
	pods := resource(t, "pods").Namespace(namespace(t))
	c := cache.New(pods, nil)
	run(t, c)
	tracked := c.TrackWrites(pods)
	for range 10 {
		created, err := tracked.Create(t.Context(), &object{Object: map[string]any{
			"metadata": map[string]any{"generateName": "web-"},
			"spec": map[string]any{
				"automountServiceAccountToken": false,
				"containers":                   []any{map[string]any{"name": "web", "image": "web"}},
				"nodeName":                     "none", "terminationGracePeriodSeconds": int64(60),
			},
		}}, nil)
		require.NoError(t, err)
		key := cache.KeyOf(created)
		_, err = tracked.Subresource("status").Patch(t.Context(), created.GetName(), types.MergePatchType, []byte(`{"status":{"message":"tracked"}}`), nil)
		require.NoError(t, err)
		require.NoError(t, c.WaitForWrites(t.Context(), key))
		cached, found := c.Get(key.Namespace, key.Name)
		require.True(t, found)
		status, _ := cached.Object["status"].(map[string]any)
		assert.Equal(t, "tracked", status["message"], "a write of a subresource")

		_, err = tracked.Delete(t.Context(), created.GetName(), nil)
		require.NoError(t, err)
		require.NoError(t, c.WaitForWrites(t.Context(), key))
		cached, found = c.Get(key.Namespace, key.Name)
		require.True(t, found)
		assert.NotNil(t, cached.GetDeletionTimestamp(), "gracefully")
		_, err = tracked.Delete(t.Context(), created.GetName(), &metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		require.NoError(t, err)
		require.NoError(t, c.WaitForWrites(t.Context(), key))
		_, found = c.Get(key.Namespace, key.Name)
		assert.False(t, found, "at once")
	}
}
