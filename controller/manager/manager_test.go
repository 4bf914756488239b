package manager_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller/manager"
	"github.com/anykind/anykind/inventory"
)

var errBroken = errors.New("broken")

// events are the starts and ends of functions.
type events struct {
	mu  sync.Mutex
	all []string
}

func (e *events) add(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, text)
}

func (e *events) drain() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	drained := e.all
	e.all = nil
	return drained
}

// function waits for the end of ctx, and then for delay.
func (e *events) function(name string, delay time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		e.add("start " + name)
		<-ctx.Done()
		time.Sleep(delay)
		e.add("end " + name)
		return ctx.Err()
	}
}

// fakeCache syncs after a time, or never for 0.
type fakeCache struct {
	run    func(context.Context) error
	synced time.Duration
}

func (c *fakeCache) Run(ctx context.Context) error { return c.run(ctx) }

func (c *fakeCache) WaitForSync(ctx context.Context) error {
	if c.synced == 0 {
		return errors.New("a namespace is rejected")
	}
	select {
	case <-time.After(c.synced):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// incompleteCache synced except for a part.
type incompleteCache struct {
	fakeCache

	err error
}

func (c *incompleteCache) WaitForSync(context.Context) error { return c.err }

// start runs a manager. end returns Run's error.
func start(ctx context.Context, m *manager.Manager) (end func() error) {
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	synctest.Wait()
	return func() error { return <-ended }
}

func probe(m *manager.Manager, path string) (code int, body string) {
	w := httptest.NewRecorder()
	m.Probes().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestManager_StartsAndStopsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e events
		m := manager.New(nil)
		m.AddController("shops", e.function("controller", time.Second))
		m.AddCache("pods", &fakeCache{e.function("cache", time.Second), time.Minute})
		m.AddServer("probes", e.function("server", time.Second))
		m.AddServer("done", func(context.Context) error { return nil })
		m.AddCheck("license", func(context.Context) error { return nil })
		ctx, cancel := context.WithCancelCause(t.Context())
		end := start(ctx, m)
		assert.ElementsMatch(t, []string{"start server", "start cache"}, e.drain())
		code, body := probe(m, "/readyz")
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.Equal(t, "[-]cache pods failed: not synced\n[+]license ok\nnot ready\n", body)

		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"start controller"}, e.drain())
		code, body = probe(m, "/readyz")
		assert.Equal(t, http.StatusOK, code)
		assert.Equal(t, "[+]cache pods ok\n[+]license ok\nready\n", body)
		code, _ = probe(m, "/healthz")
		assert.Equal(t, http.StatusOK, code)

		cancel(io.ErrUnexpectedEOF)
		err := end()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Equal(t, []string{"end controller", "end cache", "end server"}, e.drain())
		code, _ = probe(m, "/healthz")
		assert.Equal(t, http.StatusServiceUnavailable, code)
		require.ErrorContains(t, m.Run(t.Context()), "it runs already")
	})
}

// TestManager_IncompleteCaches runs controllers although a server rejects a part of the caches.
func TestManager_IncompleteCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e events
		var log strings.Builder
		m := manager.New(&manager.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for name, err := range map[string]error{
			"pods":  fmt.Errorf("fleet: %w", &cache.RejectedError{Cache: "pods", Err: errBroken}),
			"kinds": &inventory.IncompleteError{Resources: []*inventory.ResourceError{{Resource: "widgets", Err: errBroken}}},
		} {
			m.AddCache(name, &incompleteCache{fakeCache{run: e.function(name, 0)}, err})
		}
		m.AddController("shops", e.function("controller", 0))
		ctx, cancel := context.WithCancel(t.Context())
		end := start(ctx, m)
		assert.ElementsMatch(t, []string{"start pods", "start kinds", "start controller"}, e.drain())
		code, _ := probe(m, "/readyz")
		assert.Equal(t, http.StatusOK, code)
		time.Sleep(time.Hour)
		cancel()
		require.ErrorIs(t, end(), context.Canceled)
		assert.Equal(t, 2, strings.Count(log.String(), "broken"), log.String())
	})
}

func TestManager_FunctionFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := func(context.Context) error { time.Sleep(time.Hour); return errBroken }
		panics := func(context.Context) error { time.Sleep(time.Hour); panic("a defect") }
		for name, add := range map[string]func(*manager.Manager, func(context.Context) error){
			"server":     func(m *manager.Manager, f func(context.Context) error) { m.AddServer("x", f) },
			"cache x":    func(m *manager.Manager, f func(context.Context) error) { m.AddCache("x", &fakeCache{f, time.Minute}) },
			"controller": func(m *manager.Manager, f func(context.Context) error) { m.AddController("x", f) },
		} {
			for _, f := range []func(context.Context) error{fails, panics} {
				var e events
				m := manager.New(&manager.Options{Logger: slog.New(slog.DiscardHandler)})
				m.AddServer("server", e.function("server", 0))
				m.AddController("controller", e.function("controller", 0))
				add(m, f)
				err := start(t.Context(), m)()
				var panicked *cache.PanicError
				assert.True(t, errors.Is(err, errBroken) || errors.As(err, &panicked), "%s: %v", name, err)
				require.ErrorContains(t, err, "x: ", name)
				assert.Equal(t, []string{"end controller", "end server"}, e.drain()[2:], name)
			}
		}
	})
}

// TestManager_ErrorsDuringShutdown returns errors that also wrap the end of ctx, and errors of functions before their own end.
func TestManager_ErrorsDuringShutdown(t *testing.T) {
	errFlush := errors.New("flush")
	errEarly := errors.New("cache")
	synctest.Test(t, func(t *testing.T) {
		m := manager.New(&manager.Options{Logger: slog.New(slog.DiscardHandler)})
		m.AddServer("server", func(ctx context.Context) error { <-ctx.Done(); return errors.Join(ctx.Err(), errFlush) })
		m.AddCache("broken", &fakeCache{func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Hour + time.Second): // while the controllers end
				return errEarly
			}
		}, time.Second})
		m.AddController("panics", func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(10 * time.Second)
			return fmt.Errorf("%w; meanwhile %w", ctx.Err(), &cache.PanicError{Value: "a defect"})
		})
		m.AddController("usual", func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("run: %w: %w", ctx.Err(), context.Cause(ctx))
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		end := start(ctx, m)
		time.Sleep(time.Hour)
		cancel(io.ErrUnexpectedEOF)
		err := end()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errFlush)
		require.ErrorIs(t, err, errEarly)
		var panicked *cache.PanicError
		require.ErrorAs(t, err, &panicked)
		assert.NotContains(t, err.Error(), "usual")
	})
}

// endingContext ends when its error is read after hasFailed.
type endingContext struct {
	context.Context

	end       context.CancelFunc
	hasFailed atomic.Bool
}

func (c *endingContext) Err() error {
	if c.hasFailed.Load() {
		c.end()
	}
	return c.Context.Err()
}

// TestManager_FailureAndEndOfContext ends ctx between the failure of a function and the end of Run.
func TestManager_FailureAndEndOfContext(t *testing.T) {
	inner, cancel := context.WithCancel(t.Context())
	ctx := &endingContext{Context: inner, end: cancel}
	m := manager.New(nil)
	m.AddServer("failing", func(context.Context) error {
		ctx.hasFailed.Store(true)
		return errBroken
	})
	require.ErrorIs(t, m.Run(ctx), errBroken)
	require.Error(t, inner.Err())
}

func TestManager_LateFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e events
		m := manager.New(&manager.Options{ShutdownTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler)})
		m.AddServer("slow", e.function("slow", time.Hour))
		m.AddServer("failing", func(ctx context.Context) error { <-ctx.Done(); return errBroken })
		m.AddCache("rejected", &fakeCache{e.function("cache", 0), 0})
		m.AddController("never", func(context.Context) error { panic("started without its cache") })
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		end := start(ctx, m)
		_, body := probe(m, "/readyz")
		assert.Equal(t, "[-]cache rejected failed: not synced: a namespace is rejected\nnot ready\n", body)
		err := end()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "slow: not ended after 1m0s")
		time.Sleep(2 * time.Hour)
		assert.Equal(t, "end slow", e.drain()[3])
	})
}

func TestManager_NamesLateControllers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e events
		m := manager.New(&manager.Options{ShutdownTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler)})
		m.AddController("slow", e.function("slow", time.Hour))
		m.AddController("quick", e.function("quick", 0))
		ctx, cancel := context.WithCancel(t.Context())
		end := start(ctx, m)
		cancel()
		require.ErrorContains(t, end(), "\nslow: not ended after 1m0s")
		time.Sleep(2 * time.Hour)
	})
}

// TestManager_AwaitsGraceOfControllers has a reconcile that ends its work after the default of controller.Options.Grace.
func TestManager_AwaitsGraceOfControllers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e events
		m := manager.New(nil)
		m.AddController("shops", e.function("controller", 30*time.Second+time.Second))
		m.AddServer("probes", e.function("server", 0))
		ctx, cancel := context.WithCancel(t.Context())
		end := start(ctx, m)
		e.drain()
		cancel()
		require.ErrorIs(t, end(), context.Canceled)
		assert.Equal(t, []string{"end controller", "end server"}, e.drain())
	})
}
