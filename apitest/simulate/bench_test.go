package simulate

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest/simulate/internal/testing/broken"
	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/unstructured"
)

// BenchmarkRun_Seed is one run with faults of a controller with two caches, from the start of the server to its end.
func BenchmarkRun_Seed(b *testing.B) {
	var seed uint64
	benchmarkRuns(b, func(t *testing.T) *Scenario { return scenarioOf(t, broken.All()[3], true) }, func() *choices {
		seed++
		return &choices{seed: seed}
	})
}

// BenchmarkRun_HourOfRequeues is a run in which a controller is called every ten seconds and reads an object, for two hours: one until
// the state is known to be final, and one of the second process. ms/hour is the real time of one.
func BenchmarkRun_HourOfRequeues(b *testing.B) {
	benchmarkRuns(b, hourOfRequeues, func() *choices { return &choices{} })
}

// benchmarkRuns measures runs; a bubble needs a testing.T.
func benchmarkRuns(b *testing.B, scenario func(t *testing.T) *Scenario, next func() *choices) {
	b.Helper()
	testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: b.Name(), F: func(t *testing.T) {
		s := scenario(t)
		start := time.Now()
		defer func() {
			if hours := 2 * s.quiet().Hours() * float64(b.N); hours >= 1 {
				b.ReportMetric(float64(time.Since(start).Milliseconds())/hours, "ms/hour")
			}
		}()
		for b.Loop() {
			if res := runOnce(t, s, next(), nil, false); res.failure != nil {
				b.Error(res.failure.err, res.trace)
				return
			}
		}
	}}})
}

// hourOfRequeues is a controller that asks to be called again after ten seconds.
func hourOfRequeues(t *testing.T) *Scenario {
	t.Helper()
	s := scenarioOf(t, broken.Controller{Steps: broken.All()[1].Steps[:1]}, true)
	s.Run = func(ctx context.Context, p *Process) error {
		databases, err := p.Client.Resource(ctx, "databases.example.com")
		if err != nil {
			return err
		}
		stored := cache.New(databases.Namespace("default"), (*cache.Options[unstructured.Object])(nil))
		ctx, stop := context.WithCancelCause(ctx)
		ended := make(chan struct{})
		defer func() { <-ended }()
		defer stop(nil)
		go func() {
			defer close(ended)
			stop(stored.Run(ctx))
		}()
		return controller.Run(ctx, stored, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
			_, err := databases.Namespace(key.Namespace).Get(ctx, key.Name, nil)
			return 10 * time.Second, err
		}, nil)
	}
	s.Quiet = time.Hour
	return s
}
