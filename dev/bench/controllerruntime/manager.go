//go:build unix

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/anykind/anykind/compat/controllerruntime/manager"
	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// syncTimeout leaves time for a long list on a busy machine.
const syncTimeout = 10 * time.Minute

// manager returns a task that runs a manager with a single controller until each pod has been reconciled once.
func (s *side) manager(f form) measure.Task {
	return func(ctx context.Context, m *measure.Meter) error {
		pods := &reconciler{form: f, count: m.Count, names: sets.New[string](), done: make(chan result, 1)}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		ended := make(chan error, 1)
		err := m.Stage("start", func() error {
			mgr, err := s.newManager(pods)
			if err != nil {
				return err
			}
			go func() { ended <- mgr.Start(ctx) }()
			select {
			case done := <-pods.done:
				for name := range done.names {
					m.See(name)
				}
				return done.err
			case err := <-ended:
				return fmt.Errorf("the manager ended early: %w", err)
			}
		})
		if err != nil {
			return err
		}
		m.Held()
		stop()
		return <-ended
	}
}

// newManager returns a manager with a controller for pods of a namespace. Anykind's manager only differs in its constructors,
// including connect's config and mapper.
func (s *side) newManager(pods *reconciler) (ctrl.Manager, error) {
	options := ctrl.Options{
		Scheme:         s.scheme,
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Cache:          cache.Options{DefaultNamespaces: map[string]cache.Config{s.namespace: {}}},
		Client:         client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return s.mapper, nil },
	}
	config := s.config
	if s.adapters != nil {
		config, options = manager.Configure(s.adapters, options)
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, err
	}
	pods.client = mgr.GetClient()
	isRepeated := true // a profile runs the task several times
	return mgr, ctrl.NewControllerManagedBy(mgr).Named("pods").For(pods.form.pod()).
		WithOptions(controller.Options{SkipNameValidation: &isRepeated, CacheSyncTimeout: syncTimeout}).Complete(pods)
}

// reconciler reads each pod, with a single worker.
type reconciler struct {
	form   form
	client client.Client
	count  int
	names  sets.Set[string] // nil after the last pod: the names are not part of the manager
	done   chan result
}

// result has the names of all pods, or an error.
type result struct {
	names sets.Set[string]
	err   error
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if r.names == nil {
		return ctrl.Result{}, nil
	}
	pod := r.form.pod()
	err := r.client.Get(ctx, request.NamespacedName, pod)
	if err == nil {
		r.names.Insert(pod.GetName())
	}
	if err != nil || r.names.Len() == r.count {
		r.done <- result{r.names, err}
		r.names = nil
	}
	return ctrl.Result{}, nil
}
