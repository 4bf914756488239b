package apitest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/unstructured"
)

// failures collects what assertions report.
type failures struct {
	testing.TB
	texts []string
}

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}
func (f *failures) Helper() {}

func TestServer_RequestsAndStates(t *testing.T) {
	server := apitest.NewServer(t, nil)
	createConfigMaps(t, server, "a")
	patchLabel(t, server, "a", "x")
	do(t, server, "DELETE", configMapsPath+"/a", "")
	var types []string
	for _, state := range server.StatesOf("configmaps", "default", "a") {
		types = append(types, string(state.Type)+" "+state.Object.GetLabels()["name"])
	}
	assert.Equal(t, []string{"ADDED a", "MODIFIED x", "DELETED x"}, types)

	requests := server.Requests(apitest.OfResource("configmaps"))
	assert.Len(t, requests, 3)
	assert.Equal(t, "kubernetes-admin", requests[0].User)
	assert.JSONEq(t, `{"metadata":{"labels":{"name":"x"}}}`, string(requests[1].Body))
	server.AssertRequests(t, 1, apitest.OfResource("configmaps", "patch"), apitest.Named("default", "a"), apitest.Succeeded)
	server.AssertNoUpdateAfterDeletion(t)

	var failed failures
	do(t, server, "PATCH", configMapsPath+"/a", `{}`, "Content-Type: application/merge-patch+json")
	server.AssertNoUpdateAfterDeletion(&failed)
	server.AssertRequests(&failed, 0, apitest.OfResource("configmaps", "patch"))
	assert.Len(t, failed.texts, 2)
	assert.Contains(t, failed.texts[0], "patch /api/v1/namespaces/default/configmaps/a: 404")
}

func TestServer_HistoryIsBounded(t *testing.T) {
	server := apitest.NewServer(t, &apitest.Options{History: 10})
	for i := range 30 {
		createConfigMaps(t, server, fmt.Sprint("a", i))
	}
	assert.Len(t, server.Requests(), 10)
	states := server.StatesOf("configmaps", "default", "a1")
	require.Len(t, states, 1)
	assert.Equal(t, watch.Added, states[0].Type, "the state that it has")
	assert.Empty(t, server.StatesOf("configmaps", "default", "none"))
	assert.Len(t, server.StatesOf("configmaps", "default", "a29"), 1)
}

func TestServer_BodiesInHistoryAreBounded(t *testing.T) {
	server := apitest.NewServer(t, nil)
	body := strings.Repeat("x", 3<<20)
	for range 30 {
		do(t, server, "POST", configMapsPath, body)
	}
	requests := server.Requests(apitest.OfResource("configmaps"))
	require.Len(t, requests, 30)
	bodies := 0
	for _, request := range requests {
		bodies += len(request.Body)
	}
	assert.LessOrEqual(t, bodies, 64<<20)
	assert.Greater(t, bodies, 32<<20)
	assert.True(t, requests[0].Body == nil, "the oldest body")
	assert.True(t, body == string(requests[29].Body), "the last body")
}

func TestServer_OldBodiesAreDropped(t *testing.T) {
	server := apitest.NewServer(t, &apitest.Options{History: 10})
	for i := range 35 {
		do(t, server, "POST", configMapsPath, fmt.Sprint(i))
	}
	requests := server.Requests()
	require.Len(t, requests, 10)
	for i, request := range requests {
		assert.Equal(t, fmt.Sprint(25+i), string(request.Body))
	}
}

func TestOptions_SeedRepeatsUIDsAndNames(t *testing.T) {
	created := func(seed uint64) (uid, generated string) {
		server := apitest.NewServer(t, &apitest.Options{Seed: seed})
		configMaps, err := server.Client().Resource(t.Context(), "configmaps")
		require.NoError(t, err)
		obj, err := configMaps.Namespace("default").Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"generateName": "a-"}}}, nil)
		require.NoError(t, err)
		for _, stored := range server.Objects() {
			if stored.GetKind() == "ConfigMap" {
				assert.Equal(t, obj.GetUID(), stored.GetUID())
			}
		}
		return string(obj.GetUID()), obj.GetName()
	}
	uid, generated := created(7)
	sameUID, sameName := created(7)
	assert.Equal(t, uid+generated, sameUID+sameName)
	assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$`, uid)
	for _, seed := range []uint64{8, 0} {
		otherUID, otherName := created(seed)
		assert.NotEqual(t, uid, otherUID)
		assert.NotEqual(t, generated, otherName)
	}
}
