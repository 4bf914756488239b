package cache_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	testclient "github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/faultproxy"
)

// TestAudit_LostDeletionOfRealServer loses the event of a deletion on its way, while other objects change.
func TestAudit_LostDeletionOfRealServer(t *testing.T) {
	home := namespace(t)
	direct := resource(t, "cm").Namespace(home)
	proxy := faultproxy.New(t, 1)
	proxy.Lose(`"name":"none"`) // until an object is deleted
	cfg, err := proxy.Config()
	require.NoError(t, err)
	client, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	var found audits
	c := cache.New(testclient.Resource(t, client, "cm").Namespace(home), &cache.Options[object]{Audit: found.options(100 * time.Millisecond)})
	run(t, c)
	require.NoError(t, c.WaitForSync(t.Context()))
	written := 0
	change := func() {
		name := fmt.Sprint("changes-", written%20)
		written++
		require.Less(t, written, 100_000, "no audit, or none with a difference")
		if written%3 == 0 {
			_, err := direct.Delete(t.Context(), name, nil)
			require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
			return
		}
		patch := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"n":"%d"}}`, name, written)
		_, err := direct.Patch(t.Context(), name, types.ApplyYAMLPatchType, patch, &metav1.PatchOptions{FieldManager: "test"})
		require.NoError(t, err)
	}
	_, err = direct.Create(t.Context(), configMap("lost"), nil)
	require.NoError(t, err)
	for len(found.all()) < 4 {
		change()
	}
	require.Empty(t, found.differences())
	proxy.Lose(`"name":"lost"`)
	_, err = direct.Delete(t.Context(), "lost", nil)
	require.NoError(t, err)
	for len(found.differences()) == 0 {
		change()
	}
	assert.Regexp(t, `^`+home+`/lost is resourceVersion \d+ of UID \S+ in the cache, and missing on the server$`, found.differences()[0])
	assert.EventuallyWithT(t, func(t *assert.CollectT) {
		_, isCached := c.Get(home, "lost")
		assert.False(t, isCached, "repaired")
	}, patience, 10*time.Millisecond)
	for _, result := range found.all() {
		assert.NoError(t, result.Err)
		assert.LessOrEqual(t, len(result.Differences), 1)
	}
}
