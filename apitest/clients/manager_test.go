package clients_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/anykind/anykind/apitest/clients"
	"github.com/anykind/anykind/apitest/simulate"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

const finalizer = "example.com/secret"

// secretReconciler keeps a Secret for each ConfigMap with a label. The broken one cannot clean up twice.
type secretReconciler struct {
	crclient.Client
	isCorrected bool
}

// Reconcile implements reconcile.Reconciler.
func (r *secretReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var owner corev1.ConfigMap
	if err := r.Get(ctx, req.NamespacedName, &owner); err != nil {
		return reconcile.Result{}, crclient.IgnoreNotFound(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name}}
	if !owner.DeletionTimestamp.IsZero() {
		err := r.Delete(ctx, secret)
		if r.isCorrected {
			err = crclient.IgnoreNotFound(err)
		}
		if err == nil && controllerutil.RemoveFinalizer(&owner, finalizer) {
			err = crclient.IgnoreNotFound(r.Update(ctx, &owner))
		}
		return reconcile.Result{}, err
	}
	if controllerutil.AddFinalizer(&owner, finalizer) {
		return reconcile.Result{}, r.Update(ctx, &owner)
	}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, secret, func() error {
		secret.Data = map[string][]byte{"text": []byte(owner.Data["text"])}
		return nil
	})
	return reconcile.Result{}, err
}

// SetupWithManager adds the controller, as in a program.
func (r *secretReconciler) SetupWithManager(m manager.Manager) error {
	return builder.ControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(r)
}

func reconcilerScenario(isCorrected bool) *simulate.Scenario {
	do := func(change func(ctx context.Context, configMaps *dynamic.Resource) error) func(context.Context, *dynamic.Client) error {
		return func(ctx context.Context, c *dynamic.Client) error {
			configMaps, err := c.Resource(ctx, "configmaps")
			if err != nil {
				return err
			}
			return change(ctx, configMaps.Namespace("default"))
		}
	}
	create := func(ctx context.Context, configMaps *dynamic.Resource) error {
		_, err := configMaps.Create(ctx, &unstructured.Object{Object: map[string]any{
			"metadata": map[string]any{"name": "app"}, "data": map[string]any{"text": "one"},
		}}, nil)
		return err
	}
	change := func(ctx context.Context, configMaps *dynamic.Resource) error {
		_, err := configMaps.Patch(ctx, "app", types.MergePatchType, []byte(`{"data":{"text":"two"}}`), nil)
		return err
	}
	remove := func(ctx context.Context, configMaps *dynamic.Resource) error {
		_, err := configMaps.Delete(ctx, "app", nil)
		return err
	}
	return &simulate.Scenario{
		Run: func(ctx context.Context, p *simulate.Process) error {
			return clients.RunManager(ctx, p, manager.Options{}, func(m manager.Manager) error {
				return (&secretReconciler{m.GetClient(), isCorrected}).SetupWithManager(m)
			})
		},
		Steps: []simulate.Step{{Name: "creates the ConfigMap", Do: do(create)}, {Name: "changes it", Do: do(change)}, {Name: "deletes it", Do: do(remove)}},
		Check: func(ctx context.Context, c *dynamic.Client) error {
			secrets, err := c.Resource(ctx, "secrets")
			if err != nil {
				return err
			}
			if _, err = secrets.Namespace("default").Get(ctx, "app", nil); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the Secret is left: %w", err)
			}
			return nil
		},
	}
}

// TestRunManager_FailureRepeats finds a defect of a manager's reconciler with five seeds, each of them twice.
func TestRunManager_FailureRepeats(t *testing.T) {
	find := func(first uint64, seeds int) *simulate.Failure {
		return simulate.Find(t, reconcilerScenario(false), &simulate.Options{FirstSeed: first, Seeds: seeds, NoEnumeration: true})
	}
	first := uint64(1)
	for range 5 {
		failure := find(first, 1000)
		require.NotNil(t, failure)
		assert.NotZero(t, failure.Seed)
		assert.Contains(t, failure.Error(), "WRITES delete secrets default/app")
		assert.NotContains(t, failure.Error(), "second run with the same choices")
		again := find(failure.Seed, 1)
		require.NotNil(t, again, "seed %d", failure.Seed)
		assertSameTrace(t, failure.Trace, again.Trace)
		assert.Equal(t, failure.Choices, again.Choices)
		first = failure.Seed + 1
		t.Log(failure)
	}
}

// assertSameTrace compares traces. Times may differ by a poll of client-go for each start of the process; see requestRecorder.
func assertSameTrace(t *testing.T, want, got string) {
	t.Helper()
	wantTimes, wantLines := splitTrace(t, want)
	gotTimes, gotLines := splitTrace(t, got)
	require.Equal(t, wantLines, gotLines)
	tolerance := 100 * time.Millisecond * time.Duration(1+strings.Count(want, "starts again"))
	for i, line := range wantLines {
		assert.InDelta(t, wantTimes[i], gotTimes[i], float64(tolerance), line)
	}
}

// splitTrace returns the time of each line of a trace, and the rest of the line.
func splitTrace(t *testing.T, trace string) (times []time.Duration, lines []string) {
	t.Helper()
	for line := range strings.Lines(trace) {
		at, rest, _ := strings.Cut(strings.TrimLeft(line, " "), " ")
		d, err := time.ParseDuration(at)
		require.NoError(t, err, line)
		times = append(times, d)
		lines = append(lines, rest)
	}
	return times, lines
}

func TestRunManager_CorrectedReconciler(t *testing.T) {
	simulate.Test(t, reconcilerScenario(true), &simulate.Options{Seeds: 30})
}

// TestRunManager_RequestsRepeat compares the requests of managers in three executions of each of 20 seeds.
func TestRunManager_RequestsRepeat(t *testing.T) {
	for seed := range uint64(20) {
		requests := func() []string {
			recorder := &requestRecorder{}
			scenario := reconcilerScenario(true)
			run := scenario.Run
			scenario.Run = func(ctx context.Context, p *simulate.Process) error {
				recorder.base = p.HTTPClient.Transport
				p.HTTPClient.Transport = recorder
				return run(ctx, p)
			}
			simulate.Test(t, scenario, &simulate.Options{FirstSeed: seed + 1, Seeds: 1, NoEnumeration: true})
			return recorder.requests
		}
		want := requests()
		assert.NotEmpty(t, want)
		assert.Equal(t, want, requests(), "seed %d", seed+1)
		assert.Equal(t, want, requests(), "seed %d", seed+1)
	}
}

// requestRecorder records the requests of a run. Their times may differ by the interval of client-go's polls for synced caches: Go's
// scheduler, which is random with the race detector, decides whether a poll sees a list that arrives at the same instant.
type requestRecorder struct {
	base     http.RoundTripper
	mu       sync.Mutex
	requests []string
}

// RoundTrip implements http.RoundTripper.
func (r *requestRecorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.requests = append(r.requests, fmt.Sprint(req.Method, " ", req.URL))
	r.mu.Unlock()
	return r.base.RoundTrip(req)
}

func TestRunManager_RejectsOtherQueues(t *testing.T) {
	failure := simulate.Find(t, &simulate.Scenario{Run: func(ctx context.Context, p *simulate.Process) error {
		return clients.RunManager(ctx, p, manager.Options{}, func(m manager.Manager) error {
			_, err := controller.NewTyped("own", m, controller.TypedOptions[string]{
				Reconciler: reconcile.TypedFunc[string](func(context.Context, string) (reconcile.Result, error) { return reconcile.Result{}, nil }),
			})
			return err
		})
	}}, &simulate.Options{Seeds: -1, NoEnumeration: true})
	require.NotNil(t, failure)
	assert.ErrorContains(t, failure, "its queue cannot be replaced")
}

func ExampleRunManager() {
	t := new(testing.T) // of func TestReconciler_Simulated(t *testing.T)
	failure := simulate.Find(t, &simulate.Scenario{
		Run: func(ctx context.Context, p *simulate.Process) error {
			return clients.RunManager(ctx, p, manager.Options{}, func(m manager.Manager) error {
				reconciler := &secretReconciler{Client: m.GetClient(), isCorrected: true}
				return builder.ControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(reconciler)
			})
		},
		Steps: []simulate.Step{{Name: "creates a ConfigMap", Do: func(ctx context.Context, c *dynamic.Client) error {
			configMaps, err := c.Resource(ctx, "configmaps")
			if err != nil {
				return err
			}
			obj := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "app"}}}
			_, err = configMaps.Namespace("default").Create(ctx, obj, nil)
			return err
		}}},
	}, &simulate.Options{Seeds: 3})
	fmt.Println(failure == nil)
	// Output: true
}
