package controller_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// logger returns a logger without times and what reads its lines.
func logger() (*slog.Logger, func() []string) {
	var text bytes.Buffer // a handler writes under its lock; tests read when it is quiet
	handler := slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	return slog.New(handler), func() []string { return strings.Split(strings.TrimSpace(text.String()), "\n") }
}

// leaseWatch answers lists and watches of leases with one Lease, whose holder stands for what is secret.
func leaseWatch(server *memory) {
	const lease = `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"a","namespace":"shop","uid":"u","resourceVersion":"1"},"spec":{"holderIdentity":"secret"}}`
	server.override = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") != "" {
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}
{"type":"BOOKMARK","object":{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`, lease)
			return true
		}
		return false
	}
}

func TestRun_LogsFailedReconciles(t *testing.T) {
	client, server := inMemory(t)
	leaseWatch(server)
	handle := leases(t, client)
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
			return controller.Run(ctx, c, func(context.Context, cache.Key) (time.Duration, error) { return 0, fail() }, opts)
		},
		"run with a typed cache": func(ctx context.Context, fail func() error, opts *controller.Options) error {
			c := cache.New(dynamic.As[metav1.PartialObjectMetadata](handle), nil)
			go func() { _ = c.Run(ctx) }()
			return controller.Run(ctx, c, func(context.Context, cache.Key) (time.Duration, error) { return 0, fail() }, opts)
		},
		"operator": func(ctx context.Context, fail func() error, opts *controller.Options) error {
			operator := controller.NewOperator(client, opts)
			operator.Watch("coordination.k8s.io", "v1", "leases", func(context.Context, controller.ResourceEvent) error { return fail() }, "shop")
			return operator.Run(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var fails atomic.Int32
			var outcome controller.Reconciled
			log, lines := logger()
			err := run(ctx, func() error { return failing(&fails, cancel) }, &controller.Options{
				Logger: log, Reconciled: func(r controller.Reconciled) { outcome = r },
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

func TestRun_LogsToDefaultLogger(t *testing.T) {
	log, lines := logger()
	before := slog.Default()
	slog.SetDefault(log)
	defer slog.SetDefault(before)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := controller.Run(ctx, running(t, still{"web"}), func(context.Context, cache.Key) (time.Duration, error) {
			cancel()
			return 0, errors.New("the disk is full")
		}, nil)
		require.ErrorIs(t, err, context.Canceled)
	})
	assert.Equal(t, []string{`level=ERROR msg="reconcile failed" key=shop/web failures=1 error="the disk is full"`}, lines())
}

func TestLead_LogsItsTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := inMemory(t)
		handle := leases(t, client)
		var away atomic.Bool
		server.fault = func(*http.Request) error {
			if away.Load() {
				return errors.New("no route to host")
			}
			return nil
		}
		log, lines := logger()
		opts := as("one")
		opts.Logger = log
		away.Store(true)
		time.AfterFunc(time.Minute, func() { away.Store(false) })
		for range 2 {
			err := controller.Lead(t.Context(), handle, "op", opts, func(ctx context.Context, _ int64) error {
				time.Sleep(time.Minute)
				away.Store(true)
				<-ctx.Done()
				time.Sleep(time.Millisecond) // the loss is logged when it has ended ctx
				away.Store(false)
				server.change("/leases/op", func(o map[string]any) { o["spec"].(map[string]any)["holderIdentity"] = "two" })
				return nil
			})
			require.ErrorIs(t, err, controller.ErrLeaseLost)
		}
		require.NoError(t, controller.Lead(t.Context(), handle, "op", opts, func(context.Context, int64) error { return nil }))
		var told []string
		for _, line := range lines() {
			line, err, _ := strings.Cut(strings.ReplaceAll(line, "lease=op identity=one ", ""), " error=")
			if err != "" {
				assert.Contains(t, err, "no route to host")
			}
			told = append(told, strings.TrimSuffix(line, " lease=op identity=one"))
		}
		term := func(token int) []string {
			return []string{
				fmt.Sprint("level=INFO msg=leading token=", token),
				`level=WARN msg="the leader lease cannot be renewed"`,
				`level=ERROR msg="the leader lease is lost"`,
				`level=INFO msg="another candidate leads" leader=two`,
			}
		}
		want := append([]string{`level=WARN msg="the leader lease cannot be acquired"`}, append(term(0), term(1)...)...)
		assert.Equal(t, append(want, "level=INFO msg=leading token=2", `level=INFO msg="the leader lease is released"`), told)
	})
}

func TestRecorder_LogsDroppedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines := logger()
		recorder, server := recording(t, &controller.RecorderOptions{Logger: log})
		server.override = func(w http.ResponseWriter, _ *http.Request) bool {
			refuse(w, http.StatusUnprocessableEntity, "Invalid")
			return true
		}
		recorder.Record(pod("web"), controller.Event{Reason: "Pulled"})
		recorder.Record(nil, controller.Event{Reason: "Pulled"})
		require.NoError(t, recorder.Close(t.Context()))
		assert.ElementsMatch(t, []string{
			`level=ERROR msg="event dropped" controller=example.com/tests error="record the event \"Pulled\": it needs an object with kind and name, and a reason"`,
			`level=ERROR msg="event dropped" controller=example.com/tests error="write the event Pulled about Pod \"web\": it is so"`,
		}, lines())
	})
}
