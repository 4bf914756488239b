package apitest_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/apitest"
)

func TestServer_FaultsBeforeAndAfterExecution(t *testing.T) {
	zero := 0
	some := 20
	eachConnection(t, func(t *testing.T, opts apitest.Options) {
		tests := []struct {
			name     string
			fault    apitest.Fault
			executed bool
		}{
			{"error", apitest.Fault{Err: apierrors.NewInternalError(io.ErrUnexpectedEOF)}, false},
			{"dropped", apitest.Fault{Break: apitest.Drop}, false},
			{"response dropped", apitest.Fault{Break: apitest.Drop, AfterBytes: &zero}, true},
			{"response cut", apitest.Fault{Break: apitest.Drop, AfterBytes: &some}, true},
		}
		server := apitest.NewServer(t, &opts)
		for _, test := range tests {
			fault := test.fault
			fault.Times = 1
			fault.Match = apitest.OfResource("configmaps")
			remove := server.Inject(fault)
			name := "x" + test.name[len(test.name)-3:]
			response, err := roundTrip(t, server, "POST", configMapsPath, `{"metadata":{"name":"`+name+`"}}`)
			if err == nil {
				_, readErr := io.ReadAll(response.Body)
				_ = response.Body.Close()
				assert.True(t, readErr != nil || response.StatusCode == http.StatusInternalServerError, test.name)
			}
			got := do(t, server, "GET", configMapsPath+"/"+name, "")
			assert.Equal(t, test.executed, got.code == http.StatusOK, test.name)
			do(t, server, "DELETE", configMapsPath+"/"+name, "")
			remove()
		}
	})
}

func TestServer_StalledConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apitest.NewServer(t, &apitest.Options{InMemory: true, Faults: []apitest.Fault{{Break: apitest.Stall, Times: 1}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+configMapsPath, nil)
		require.NoError(t, err)
		_, err = server.HTTPClient().Do(req)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestServer_ClientRetriesAfterTooManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apitest.NewServer(t, &apitest.Options{InMemory: true})
		maps := handle(t, server.Client(), "configmaps")
		server.Inject(apitest.Fault{Err: apitest.TooManyRequests(5 * time.Second), Times: 2})
		start := time.Now()
		_, err := maps.Create(t.Context(), object(t, configMap), nil)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(start), 10*time.Second)
		server.AssertRequests(t, 3, apitest.OfResource("configmaps", "create"))
		server.AssertRequests(t, 1, apitest.OfResource("configmaps"), apitest.Succeeded)
	})
}

func TestServer_FollowSurvivesRestartsAndCompaction(t *testing.T) {
	eachConnection(t, func(t *testing.T, opts apitest.Options) {
		server := apitest.NewServer(t, &opts)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		maps := handle(t, server.Client(), "configmaps")
		events := make(chan string, 10)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for change, err := range maps.Follow(ctx, nil) {
				if err == nil && change.Object != nil {
					events <- string(change.Type) + " " + change.Object.GetName()
				}
			}
		}()
		createConfigMaps(t, server, "a")
		assert.Equal(t, "ADDED a", <-events)
		require.NoError(t, server.Restart(0))
		do(t, server, "DELETE", configMapsPath+"/a", "")
		server.Compact()
		assert.Equal(t, string(watch.Deleted)+" a", <-events)
		createConfigMaps(t, server, "b")
		assert.Equal(t, "ADDED b", <-events)
		cancel()
		<-done
	})
}

func TestServer_FaultsRepeatBySeed(t *testing.T) {
	outcome := func() (codes []int) {
		server := apitest.NewServer(t, &apitest.Options{Seed: 7, Faults: []apitest.Fault{{
			Probability: 0.5, Err: apierrors.NewServiceUnavailable("away"),
		}}})
		for range 20 {
			codes = append(codes, do(t, server, "GET", configMapsPath, "").code)
		}
		return codes
	}
	first := outcome()
	assert.Contains(t, first, http.StatusOK)
	assert.Contains(t, first, http.StatusServiceUnavailable)
	assert.Equal(t, first, outcome())
}

func TestServer_LateEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apitest.NewServer(t, &apitest.Options{InMemory: true})
		server.Inject(apitest.Fault{Match: apitest.OfResource("configmaps", "watch"), EventDelay: time.Minute})
		next, stop := watchLines(t, server, configMapsPath+"?watch=1")
		defer stop()
		start := time.Now()
		createConfigMaps(t, server, "a")
		assert.Equal(t, "ADDED a", next())
		assert.Equal(t, time.Minute, time.Since(start))
	})
}
