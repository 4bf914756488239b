package broken

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/apitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAll_WorkWithoutFaults shows that the defects are hidden from a test in which everything happens in order.
func TestAll_WorkWithoutFaults(t *testing.T) {
	objects, err := Objects()
	require.NoError(t, err)
	for _, c := range All() {
		for version, isCorrected := range map[string]bool{"broken": false, "corrected": true} {
			t.Run(c.Name+"/"+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					opts := &apitest.Options{InMemory: true, Objects: objects}
					if c.GarbageCollection {
						opts.Controllers = apitest.GarbageCollection
					}
					server := apitest.NewServer(t, opts)
					client := server.Client()
					ctx, stop := context.WithCancel(t.Context())
					ended := make(chan error, 1)
					go func() { ended <- c.Run(ctx, client, isCorrected) }()
					for _, step := range c.Steps {
						require.NoError(t, step.Do(ctx, client), step.Name)
						time.Sleep(time.Minute)
					}
					check(t, server, c.Name)
					stop()
					assert.ErrorIs(t, <-ended, context.Canceled)
				})
			})
		}
	}
}

// check asserts the final state of a controller's test.
func check(t *testing.T, server *apitest.Server, controller string) {
	t.Helper()
	want := map[string]map[string]bool{
		"StaleRead":          {"configmaps orders-volume": true},
		"MissedEvent":        {"configmaps orders-volume": false, "databases.example.com orders": false},
		"CrashBetweenWrites": {"secrets orders-password": true},
		"WrongOwner":         {"configmaps orders-config": true},
		"StuckFinalizer":     {"configmaps orders-volume": false, "databases.example.com orders": false},
		"TwoLeaders":         {"configmaps orders-version": true},
	}
	for object, exists := range want[controller] {
		resource, name, _ := strings.Cut(object, " ")
		states := server.StatesOf(resource, "default", name)
		if assert.NotEmpty(t, states, object) {
			assert.Equal(t, exists, states[len(states)-1].Type != "DELETED", object)
		}
	}
}
