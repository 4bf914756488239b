package apitest_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/unstructured"
)

var epoch = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)

// createConfigMap creates a config map with a finalizer and returns it.
func createConfigMap(t *testing.T, server *apitest.Server, name string) *unstructured.Object {
	t.Helper()
	configMaps, err := server.Client().Resource(t.Context(), "configmaps")
	require.NoError(t, err)
	created, err := configMaps.Namespace("default").Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": name, "finalizers": []any{"example.com/a"}},
	}}, nil)
	require.NoError(t, err)
	return created
}

func TestClock_TimesOfObjects(t *testing.T) {
	server := apitest.NewServer(t, &apitest.Options{Now: func() time.Time { return epoch }})
	assert.Equal(t, epoch, createConfigMap(t, server, "at-first").GetCreationTimestamp().UTC())

	server.Clock().Jump(-time.Hour)
	created := createConfigMap(t, server, "earlier")
	assert.Equal(t, epoch.Add(-time.Hour), created.GetCreationTimestamp().UTC())
	assert.Equal(t, epoch.Add(-time.Hour), created.GetManagedFields()[0].Time.UTC())

	server.Clock().Jump(epoch.AddDate(1, 0, 0).Sub(server.Clock().Now()))
	configMaps, err := server.Client().Resource(t.Context(), "configmaps")
	require.NoError(t, err)
	_, err = configMaps.Namespace("default").Delete(t.Context(), "earlier", nil)
	require.NoError(t, err)
	deleted, err := configMaps.Namespace("default").Get(t.Context(), "earlier", nil)
	require.NoError(t, err)
	assert.Equal(t, epoch.AddDate(1, 0, 0), deleted.GetDeletionTimestamp().UTC())
}

func TestClock_ExpiresTokens(t *testing.T) {
	server := apitest.NewServer(t, &apitest.Options{})
	require.NoError(t, server.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "robot"},
	}}))
	accounts, err := server.Client().Resource(t.Context(), "serviceaccounts")
	require.NoError(t, err)
	response, err := accounts.Namespace("default").Named("robot").Subresource("token").Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": map[string]any{"expirationSeconds": int64(600)},
	}}, nil)
	require.NoError(t, err)
	token, _, err := unstructured.Get[string](response, "status", "token")
	require.NoError(t, err)
	status := func() int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/version", nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		response, err := server.HTTPClient().Do(req)
		require.NoError(t, err)
		defer response.Body.Close()
		return response.StatusCode
	}
	for _, step := range []struct {
		by   time.Duration
		want int
	}{{0, http.StatusOK}, {9 * time.Minute, http.StatusOK}, {2 * time.Minute, http.StatusUnauthorized}, {-5 * time.Minute, http.StatusOK}} {
		server.Clock().Jump(step.by)
		assert.Equal(t, step.want, status(), step.by)
	}
}

func TestClock_SkewRepeatsWithSeed(t *testing.T) {
	readings := func(seed uint64) (times []time.Time) {
		server := apitest.NewServer(t, &apitest.Options{Seed: seed, Now: func() time.Time { return epoch }})
		assert.Equal(t, epoch, server.Clock().Now())
		server.Clock().Skew(time.Minute)
		for range 20 {
			times = append(times, server.Clock().Now())
			assert.WithinDuration(t, epoch, times[len(times)-1], time.Minute)
		}
		server.Clock().Skew(0)
		assert.Equal(t, epoch, server.Clock().Now())
		return times
	}
	first := readings(1)
	assert.Equal(t, first, readings(1))
	assert.NotEqual(t, first, readings(2))
	assert.NotEqual(t, first[0], first[1])
}

func ExampleServer_Clock() {
	server, err := apitest.Start(&apitest.Options{Now: func() time.Time { return epoch }})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	created := func(name string) metav1.Time {
		obj := &unstructured.Object{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "default"}}}
		if err := server.Create(context.Background(), obj); err != nil {
			fmt.Println(err)
		}
		return server.StatesOf("configmaps", "default", name)[0].Object.GetCreationTimestamp()
	}
	fmt.Println(created("first").UTC())
	server.Clock().Jump(-time.Hour) // the machine's clock is corrected: what is newer has an earlier time
	fmt.Println(created("second").UTC())
	// Output:
	// 2024-02-29 12:00:00 +0000 UTC
	// 2024-02-29 11:00:00 +0000 UTC
}
