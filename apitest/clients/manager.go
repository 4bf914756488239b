package clients

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	kubequeue "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/anykind/anykind/apitest/simulate"
	"github.com/anykind/anykind/controller/workqueue"
)

// RunManager runs a manager of controller-runtime as a program of package simulate, until ctx ends. setup adds the controllers, as
// after manager.New in main:
//
//	Run: func(ctx context.Context, p *simulate.Process) error {
//		return clients.RunManager(ctx, p, manager.Options{Scheme: scheme}, func(m manager.Manager) error {
//			return (&WidgetReconciler{Client: m.GetClient()}).SetupWithManager(m)
//		})
//	}
//
// A seed determines requests, events, queues and retries. The queues of the controllers are replaced, with their rate limiters and
// priorities: only requests of type reconcile.Request are supported. Leader election, metrics, probes and profiling are off, and
// names of controllers need not be unique. Without a Logger in options nothing is logged. The error handlers of apimachinery are
// removed from the process, since they delay goroutines by the time since the last error of any run.
func RunManager(ctx context.Context, p *simulate.Process, options manager.Options, setup func(m manager.Manager) error) error {
	withoutErrorHandlers.Do(func() { utilruntime.ErrorHandlers = nil })
	options.LeaderElection = false
	options.Metrics.BindAddress = "0"
	options.HealthProbeBindAddress = ""
	options.PprofBindAddress = ""
	options.Controller.SkipNameValidation = new(true)
	if options.Logger.GetSink() == nil {
		options.Logger = logr.Discard()
	}
	newCache := options.NewCache
	if newCache == nil {
		newCache = cache.New
	}
	options.NewCache = func(config *rest.Config, opts cache.Options) (cache.Cache, error) {
		opts.HTTPClient = &http.Client{Transport: newRepeatableTransport(p.HTTPClient.Transport)}
		return newCache(config, opts)
	}
	config := &rest.Config{Host: p.URL, Transport: p.HTTPClient.Transport, QPS: -1}
	config.ContentType = "application/json"
	m, err := manager.New(config, options)
	if err != nil {
		return err
	}
	if err := setup(&scheduledManager{Manager: m, ctx: ctx}); err != nil {
		return err
	}
	return m.Start(ctx)
}

var withoutErrorHandlers sync.Once

// scheduledManager replaces the queues of added controllers.
type scheduledManager struct {
	manager.Manager
	ctx context.Context //nolint:containedctx // carries the scheduler to the queues
}

// Add implements manager.Manager.
func (m *scheduledManager) Add(runnable manager.Runnable) error {
	if err := setQueue(runnable, m.newQueue); err != nil {
		return err
	}
	return m.Manager.Add(runnable)
}

// newQueue is for the option NewQueue of a controller.
func (m *scheduledManager) newQueue(string, kubequeue.TypedRateLimiter[reconcile.Request]) kubequeue.TypedRateLimitingInterface[reconcile.Request] {
	return &queue{Queue: workqueue.New[reconcile.Request](nil), ctx: m.ctx}
}

// queue is a work queue with client-go's methods.
type queue struct {
	*workqueue.Queue[reconcile.Request]
	ctx context.Context //nolint:containedctx // Get has none
}

// Get implements TypedInterface of client-go.
func (q *queue) Get() (request reconcile.Request, shutdown bool) {
	request, ok := q.Queue.Get(q.ctx)
	return request, !ok
}

// ShutDownWithDrain implements TypedInterface of client-go.
func (q *queue) ShutDownWithDrain() { _ = q.Queue.ShutDownWithDrain(q.ctx) }

// setQueue sets the field NewQueue of a controller. The type of controllers is internal to controller-runtime.
func setQueue(runnable manager.Runnable, newQueue any) error {
	value := reflect.Indirect(reflect.ValueOf(runnable))
	var field reflect.Value
	if value.Kind() == reflect.Struct {
		field = value.FieldByName("NewQueue")
	}
	_, isController := runnable.(controller.Controller)
	switch {
	case field.IsValid() && field.CanSet() && field.Type() == reflect.TypeOf(newQueue):
		field.Set(reflect.ValueOf(newQueue))
		return nil
	case field.IsValid() || isController:
		return fmt.Errorf("add %T: its queue cannot be replaced (only controllers of controller-runtime with requests of type reconcile.Request are supported)", runnable)
	}
	return nil
}
