package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/controller/leaderelection"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
)

// Options configure a [Manager]. nil and zero values mean the defaults.
type Options struct {
	// Leases is a handle on leases, in the namespace of the Lease. nil means no leader election: every process runs the controllers.
	Leases *dynamic.Resource
	// LeaseName is the name of the Lease.
	LeaseName string
	// LeaderElection has the durations of the Lease and the identity of this process; nil means the defaults.
	LeaderElection *leaderelection.Options
	// ShutdownTimeout is the maximum time for the end of all controllers, then of all caches, then of all servers. 0 means 40 seconds:
	// the default Grace of a controller, and ten seconds for what its reconciles do afterwards.
	ShutdownTimeout time.Duration
	// Logger receives errors after the end of ctx; nil means slog.Default().
	Logger *slog.Logger
}

// defaultShutdownTimeout is longer than the default of controller.Options.Grace.
const defaultShutdownTimeout = 40 * time.Second

// Cache is *cache.Cache, *fleet.Cache, *inventory.Cache or a similar type.
type Cache interface {
	Run(ctx context.Context) error
	WaitForSync(ctx context.Context) error
}

// Manager runs servers, caches and controllers. Functions are added before Run.
type Manager struct {
	opts        Options
	servers     []function
	caches      []*syncedCache
	controllers []function
	checks      []check
	controlling atomic.Pointer[group] // the started controllers
	started     atomic.Bool
	ended       atomic.Bool
}

// New returns a manager without functions.
func New(opts *Options) *Manager {
	m := &Manager{opts: *cmp.Or(opts, &Options{})}
	m.opts.ShutdownTimeout = cmp.Or(m.opts.ShutdownTimeout, defaultShutdownTimeout)
	m.opts.Logger = cmp.Or(m.opts.Logger, slog.Default())
	return m
}

// AddServer adds a function for every process, from the start to the end: an [HTTPServer], or the Run of an Issuer of package webhook.
func (m *Manager) AddServer(name string, run func(ctx context.Context) error) {
	m.servers = append(m.servers, function{name: name, run: run})
}

// AddCache adds a cache. It runs in every process: a new leader has its objects. [Manager.Probes] reports not ready before its sync. A
// cache of which the server rejects a part, such as a namespace, a cluster or a kind, has synced once it has the rest. This is logged.
func (m *Manager) AddCache(name string, c Cache) {
	m.caches = append(m.caches, &syncedCache{Cache: c, name: "cache " + name, logger: m.opts.Logger, synced: make(chan struct{})})
}

// AddController adds a function for the time after the sync of all caches. With leader election it runs in the leader alone, with the
// ctx of [leaderelection.Run].
func (m *Manager) AddController(name string, run func(ctx context.Context) error) {
	m.controllers = append(m.controllers, function{name: name, run: run})
}

// Run runs all functions until ctx ends or a function fails. It can be called once.
//
// Servers and caches start first, then the controllers. A function may return nil early. An error or a panic ends all
// functions: controllers, then the Lease, caches and servers, each after its predecessors have ended. Run returns ctx's error, the
// error of the function, or [leaderelection.ErrLeaseLost] after a lost Lease. Errors of further functions during the shutdown are
// joined, except for ctx's. The error names the functions still running after ShutdownTimeout: the process should exit.
func (m *Manager) Run(parent context.Context) error {
	if m.started.Swap(true) {
		return errors.New("run a manager: it runs already, or has run (make another with New)")
	}
	defer m.ended.Store(true)
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	fail := func(err error) bool {
		cancel(err)
		return isSame(err, context.Cause(ctx)) || isContextError(ctx, err)
	}
	lasting := context.WithoutCancel(ctx) // each group is stopped by itself
	groups := []*group{
		startGroup(lasting, m.servers, fail),
		startGroup(lasting, cacheFunctions(m.caches), fail),
		startGroup(lasting, []function{{
			name: "controllers", run: func(ctx context.Context) error { return m.control(ctx, fail) }, inner: m.runningControllers,
		}}, fail),
	}
	<-ctx.Done()
	cause := context.Cause(ctx)
	errs := []error{cause}
	if parent.Err() != nil && isSame(cause, context.Cause(parent)) {
		errs[0] = retry.ContextError(parent)
	}
	for i := len(groups) - 1; i >= 0; i-- {
		err := groups[i].stop(cause, m.opts.ShutdownTimeout)
		if err != nil {
			m.opts.Logger.Error("stop a manager", "error", err)
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("run a manager: %w", errors.Join(errs...))
}

// runningControllers returns the names of the started controllers that have not ended.
func (m *Manager) runningControllers() []string {
	if g := m.controlling.Load(); g != nil {
		return g.names()
	}
	return nil
}

// control runs the controllers after the sync of the caches.
func (m *Manager) control(ctx context.Context, fail func(error) bool) error {
	if len(m.controllers) == 0 {
		return nil
	}
	for _, c := range m.caches {
		select {
		case <-c.synced:
		case <-ctx.Done():
			return retry.ContextError(ctx)
		}
	}
	run := func(ctx context.Context) error {
		g := startGroup(ctx, m.controllers, fail)
		defer g.cancel(nil)
		m.controlling.Store(g)
		<-g.done
		return errors.Join(g.errors()...)
	}
	if m.opts.Leases == nil {
		return run(ctx)
	}
	return leaderelection.Run(ctx, m.opts.Leases, m.opts.LeaseName, m.opts.LeaderElection, func(ctx context.Context, _ int64) error {
		return run(ctx)
	})
}
