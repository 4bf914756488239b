package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

// leaseWatch responds to lists and watches of leases with one Lease, whose holder stands for what is secret.
func leaseWatch(server *controllertest.Server) {
	const lease = `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"a","namespace":"shop","uid":"u","resourceVersion":"1"},"spec":{"holderIdentity":"secret"}}`
	server.Override = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") != "" {
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}
{"type":"BOOKMARK","object":{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`, lease)
			return true
		}
		return false
	}
}

func TestRun_LogsFailedReconciles(t *testing.T) {
	client, server := controllertest.New(t)
	leaseWatch(server)
	handle := controllertest.Leases(t, client)
	failing := func(fails *atomic.Int32, end context.CancelFunc) error {
		if fails.Add(1) == 2 {
			end()
		}
		return errors.New("the disk is full")
	}
	for name, run := range map[string]func(ctx context.Context, fail func() error, opts *controller.Options) error{
		"run": func(ctx context.Context, fail func() error, opts *controller.Options) error {
			c := cache.New(handle, nil)
			go func() { _ = c.Run(ctx) }()
			return controller.Run(ctx, c, func(context.Context, types.NamespacedName) (time.Duration, error) { return 0, fail() }, opts)
		},
		"run with a typed cache": func(ctx context.Context, fail func() error, opts *controller.Options) error {
			c := cache.New(dynamic.As[metav1.PartialObjectMetadata](handle), nil)
			go func() { _ = c.Run(ctx) }()
			return controller.Run(ctx, c, func(context.Context, types.NamespacedName) (time.Duration, error) { return 0, fail() }, opts)
		},
		"operator": func(ctx context.Context, fail func() error, opts *controller.Options) error {
			operator := controller.NewOperator(opts)
			operator.Watch(handle, func(context.Context, cache.Change[unstructured.Object]) error { return fail() })
			return operator.Run(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), controllertest.Timeout)
			defer cancel()
			var fails atomic.Int32
			var outcome controller.ReconcileResult
			log, lines := controllertest.Logger()
			err := run(ctx, func() error { return failing(&fails, cancel) }, &controller.Options{
				Logger: log, OnReconcile: func(r controller.ReconcileResult) { outcome = r },
			})
			require.ErrorIs(t, err, context.Canceled)
			assert.Equal(t, []string{
				`level=ERROR msg="reconcile failed" kind=Lease.coordination.k8s.io key=shop/a failures=1 error="the disk is full"`,
				`level=ERROR msg="reconcile failed" kind=Lease.coordination.k8s.io key=shop/a failures=2 error="the disk is full"`,
			}, lines())
			assert.Equal(t, schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, outcome.GVK)
			assert.Equal(t, schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, outcome.GVR)
		})
	}
}

func TestRun_LogsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, c := newScript(t)
		log, lines := controllertest.Logger()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			source.sync()
			source <- dynamic.Change[unstructured.Object]{Type: dynamic.NotServed}
			synctest.Wait()
			source.sync()
			synctest.Wait()
			cancel()
		}()
		err := controller.Run(ctx, c, func(context.Context, types.NamespacedName) (time.Duration, error) { return 0, nil }, &controller.Options{Logger: log})
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, []string{
			`level=WARN msg="the server does not serve the resource: its objects are kept" resource=/api/v1/pods`,
			`level=INFO msg="the server serves the resource again" resource=/api/v1/pods`,
		}, lines())
	})
}

func TestRun_LogsToDefaultLogger(t *testing.T) {
	log, lines := controllertest.Logger()
	before := slog.Default()
	slog.SetDefault(log)
	defer slog.SetDefault(before)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := controller.Run(ctx, running(t, staticSource{"web"}), func(context.Context, types.NamespacedName) (time.Duration, error) {
			cancel()
			return 0, errors.New("the disk is full")
		}, nil)
		require.ErrorIs(t, err, context.Canceled)
	})
	assert.Equal(t, []string{`level=ERROR msg="reconcile failed" key=shop/web failures=1 error="the disk is full"`}, lines())
}
