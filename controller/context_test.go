package controller_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCalls_ReturnContextErrorAndCause lets a deadline with a cause pass in every call that waits.
func TestCalls_ReturnContextErrorAndCause(t *testing.T) {
	errCause := errors.New("the operator asked for it")
	never := func(context.Context, cache.Key) (time.Duration, error) { return 0, nil }
	for name, prepare := range map[string]func(t *testing.T) func(ctx context.Context) error{
		"Run": func(t *testing.T) func(context.Context) error {
			c := running(t, still{"web"})
			return func(ctx context.Context) error { return controller.Run(ctx, c, never, nil) }
		},
		"Run, whose cache ends as well": func(*testing.T) func(context.Context) error {
			c := cache.New(still{"web"}, nil)
			return func(ctx context.Context) error {
				go func() { _ = c.Run(ctx) }()
				return controller.Run(ctx, c, never, nil)
			}
		},
		"Run, whose cache is not synced": func(*testing.T) func(context.Context) error {
			return func(ctx context.Context) error { return controller.Run(ctx, cache.New(still{"web"}, nil), never, nil) }
		},
		"Operator.Run": func(t *testing.T) func(context.Context) error {
			client, hang := hanging(t)
			leases(t, client)
			hang()
			operator := controller.NewOperator(client, nil)
			operator.Watch("coordination.k8s.io", "v1", "leases", nil, "shop")
			return operator.Run
		},
		"Operator.Run without watches": func(t *testing.T) func(context.Context) error {
			client, _ := hanging(t)
			return controller.NewOperator(client, nil).Run
		},
		"ShutDownWithDrain": func(*testing.T) func(context.Context) error {
			q := controller.NewQueue[string](nil)
			q.Add("a")
			return q.ShutDownWithDrain
		},
		"Lead, which stands": func(t *testing.T) func(context.Context) error {
			client, server := inMemory(t)
			handle := leases(t, client)
			server.hold("op", "two")
			return func(ctx context.Context) error { return controller.Lead(ctx, handle, "op", as("one"), until) }
		},
		"Lead, whose request hangs": func(t *testing.T) func(context.Context) error {
			client, hang := hanging(t)
			handle := leases(t, client)
			hang()
			return func(ctx context.Context) error { return controller.Lead(ctx, handle, "op", as("one"), until) }
		},
		"Recorder.Close": func(t *testing.T) func(context.Context) error {
			client, hang := hanging(t)
			recorder, err := controller.NewRecorder(t.Context(), client, "example.com/tests", nil)
			require.NoError(t, err)
			hang()
			recorder.Record(pod("web"), controller.Event{Reason: "Pulled"})
			return recorder.Close
		},
		"NewRecorder": func(t *testing.T) func(context.Context) error {
			client, hang := hanging(t)
			hang()
			return func(ctx context.Context) error {
				_, err := controller.NewRecorder(ctx, client, "example.com/tests", nil)
				return err
			}
		},
		"Register": func(t *testing.T) func(context.Context) error {
			client, hang := hanging(t)
			hang()
			return func(ctx context.Context) error {
				_, err := controller.Register(ctx, client, []byte(definition("widgets", "example.com")), nil)
				return err
			}
		},
		"Finalize": func(t *testing.T) func(context.Context) error {
			client, hang := hanging(t)
			handle := leases(t, client)
			hang()
			return func(ctx context.Context) error {
				_, _, err := controller.Finalize(ctx, handle, named("coordination.k8s.io/v1", "Lease", "shop", "op", "u"), finalizer, nil)
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call := prepare(t)
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errCause)
				defer cancel()
				err := call(ctx)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.ErrorIs(t, err, errCause)
			})
		})
	}
}

// hanging returns a client of a server in memory that, once hang is called, answers only the end of a request's ctx.
func hanging(t *testing.T) (client *dynamic.Client, hang func()) {
	t.Helper()
	client, server := inMemory(t)
	return client, func() {
		server.fault = func(r *http.Request) error { <-r.Context().Done(); return context.Cause(r.Context()) }
	}
}
