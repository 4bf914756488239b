package inventory_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/inventory"
)

// untilChecked is longer than the interval of checks for changed permissions, and the delay of a rejected stream.
const untilChecked = 5 * time.Minute

// restricted returns the errors of a health check, by resource.
func restricted(t *testing.T, c *inventory.Cache) map[string]*inventory.ResourceError {
	t.Helper()
	var incomplete *inventory.IncompleteError
	require.ErrorAs(t, c.Health(), &incomplete)
	errs := map[string]*inventory.ResourceError{}
	for _, err := range incomplete.Resources {
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
		errs[err.Resource] = err
	}
	return errs
}

func TestCache_PermittedNamespaces(t *testing.T) {
	const permits = `{"resourceRules":[{"verbs":["list"],"apiGroups":[""],"resources":["configmaps"]}]}`
	const nothing = `{"resourceRules":[]}`
	const incomplete = `{"resourceRules":[],"incomplete":true}`
	synctest.Test(t, func(t *testing.T) {
		server := scripted.New(`
			/v1 configmaps configmap ConfigMap
			/v1 secrets secret Secret
			cluster /v1 namespaces namespace Namespace
			cluster authorization.k8s.io/v1 selfsubjectrulesreviews selfsubjectrulesreview SelfSubjectRulesReview - - create`)
		forbidden := scripted.Status(http.StatusForbidden, "Forbidden")
		server.Handle("", forbidden)
		server.Handle("GET /api/v1/namespaces", objects("v1", "Namespace", "/a/5", "/b/6", "/c/7"))
		server.Handle("WATCH /api/v1/namespaces", stream("v1", "Namespace"))
		server.Handle("WATCH /api/v1/namespaces/a/configmaps", stream("v1", "ConfigMap", metadata("a/one/1")))
		server.Handle(rulesReviews, rulesOf(t, map[string]string{"a": permits, "b": incomplete, "c": nothing}))
		c, _ := start(t, server, nil)
		require.Error(t, c.WaitForSync(t.Context()))
		assert.Equal(t, []string{"v1/configmaps a/one"}, all(t, c))
		errs := restricted(t, c)
		require.Len(t, errs, 2)
		assert.Equal(t, []string{"a"}, errs["configmaps"].Namespaces)
		assert.Empty(t, errs["secrets"].Namespaces)

		// The right in b is granted, for which the rules are incomplete.
		server.Handle("WATCH /api/v1/namespaces/b/configmaps", stream("v1", "ConfigMap", metadata("b/two/2")))
		time.Sleep(untilRetried)
		assert.Equal(t, []string{"v1/configmaps a/one", "v1/configmaps b/two"}, all(t, c))
		assert.ErrorContains(t, restricted(t, c)["configmaps"], "the user may not list it in 1 of 3 namespaces")

		opened := watches(server, "/api/v1/namespaces/b/configmaps")

		// The right in c is granted, the right in a is taken away, and a namespace is created.
		server.Handle("GET /api/v1/namespaces", objects("v1", "Namespace", "/a/5", "/b/6", "/c/7", "/d/8"))
		server.Handle("WATCH /api/v1/namespaces/c/configmaps", stream("v1", "ConfigMap", metadata("c/three/3")))
		server.Handle("WATCH /api/v1/namespaces/d/configmaps", stream("v1", "ConfigMap", metadata("d/four/4")))
		server.Handle(rulesReviews, rulesOf(t, map[string]string{"a": nothing, "b": incomplete, "c": permits, "d": permits}))
		time.Sleep(untilChecked)
		some := []string{"v1/configmaps b/two", "v1/configmaps c/three", "v1/configmaps d/four"}
		assert.Equal(t, some, all(t, c))
		assert.Equal(t, []string{"b", "c", "d"}, restricted(t, c)["configmaps"].Namespaces)
		assert.Equal(t, opened, watches(server, "/api/v1/namespaces/b/configmaps"), "streams of other namespaces stay")

		// The right in all namespaces is granted, and taken away.
		broken := make(chan struct{})
		server.Handle("GET /api/v1/configmaps", objects("v1", "ConfigMap", "a/one/1"))
		server.Handle("WATCH /api/v1/configmaps", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, streamEvents("v1", "ConfigMap", metadata("a/one/1"), metadata("b/two/2")))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-broken:
				panic(http.ErrAbortHandler)
			case <-r.Context().Done():
			}
		}, forbidden)
		time.Sleep(untilChecked)
		assert.Equal(t, []string{"v1/configmaps a/one", "v1/configmaps b/two"}, all(t, c))
		assert.NotContains(t, restricted(t, c), "configmaps")
		server.Handle("GET /api/v1/configmaps", forbidden)
		close(broken)
		time.Sleep(untilChecked)
		assert.Equal(t, some, all(t, c))
	})
}

// Without the right to list the namespaces, a kind is tried again in all namespaces.
func TestCache_UnknownNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := scripted.New("/v1 configmaps configmap ConfigMap\n cluster /v1 namespaces namespace Namespace")
		server.Handle("", scripted.Status(http.StatusForbidden, "Forbidden"))
		c, _ := start(t, server, nil)
		require.Error(t, c.WaitForSync(t.Context()))
		assert.Len(t, restricted(t, c), 2)
		server.Handle("WATCH /api/v1/configmaps", stream("v1", "ConfigMap", metadata("a/one/1")))
		time.Sleep(untilRetried)
		assert.Equal(t, []string{"v1/configmaps a/one"}, all(t, c))
		assert.NotContains(t, restricted(t, c), "configmaps")
	})
}
