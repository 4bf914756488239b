package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/internal/testing/controllertest"
)

// TestCalls_ReturnContextErrorAndCause lets a deadline with a cause pass in every call that waits.
func TestCalls_ReturnContextErrorAndCause(t *testing.T) {
	errCause := errors.New("the operator asked for it")
	never := func(context.Context, types.NamespacedName) (time.Duration, error) { return 0, nil }
	for name, prepare := range map[string]func(t *testing.T) func(ctx context.Context) error{
		"Run": func(t *testing.T) func(context.Context) error {
			c := running(t, staticSource{"web"})
			return func(ctx context.Context) error { return controller.Run(ctx, c, never, nil) }
		},
		"Run, whose cache ends as well": func(*testing.T) func(context.Context) error {
			c := cache.New(staticSource{"web"}, nil)
			return func(ctx context.Context) error {
				go func() { _ = c.Run(ctx) }()
				return controller.Run(ctx, c, never, nil)
			}
		},
		"Run, whose cache is not synced": func(*testing.T) func(context.Context) error {
			return func(ctx context.Context) error {
				return controller.Run(ctx, cache.New(staticSource{"web"}, nil), never, nil)
			}
		},
		"Operator.Run": func(t *testing.T) func(context.Context) error {
			client, hang := controllertest.NewHanging(t)
			handle := controllertest.Leases(t, client)
			hang()
			operator := controller.NewOperator(nil)
			operator.Watch(handle, nil)
			return operator.Run
		},
		"Operator.Run without watches": func(*testing.T) func(context.Context) error {
			return controller.NewOperator(nil).Run
		},
		"RegisterCRDs": func(t *testing.T) func(context.Context) error {
			client, hang := controllertest.NewHanging(t)
			hang()
			return func(ctx context.Context) error {
				_, err := controller.RegisterCRDs(ctx, client, []byte(definition("widgets", "example.com")), nil)
				return err
			}
		},
		"Finalize": func(t *testing.T) func(context.Context) error {
			client, hang := controllertest.NewHanging(t)
			handle := controllertest.Leases(t, client)
			hang()
			return func(ctx context.Context) error {
				_, _, err := controller.Finalize(ctx, handle, controllertest.Named("coordination.k8s.io/v1", "Lease", "shop", "op", "u"), finalizer, nil)
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
