package controller_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

// state returns the pod "web" with a generation and a label.
func state(resourceVersion string, generation int64, tier string) *unstructured.Object {
	obj := version(controllertest.Pod("web"), resourceVersion)
	obj.SetGeneration(generation)
	obj.SetLabels(map[string]string{"tier": tier})
	return obj
}

func TestPredicates(t *testing.T) {
	annotated := state("2", 1, "a")
	annotated.SetAnnotations(map[string]string{"note": "new"})
	passes := func(e controller.UpdateEvent) (names []string) {
		for _, p := range []struct {
			name      string
			predicate controller.Predicate
		}{
			{"generation", controller.GenerationChanged}, {"label", controller.LabelChanged},
			{"annotation", controller.AnnotationChanged}, {"resourceVersion", controller.ResourceVersionChanged},
		} {
			if p.predicate(e) {
				names = append(names, p.name)
			}
		}
		return names
	}
	for name, tc := range map[string]struct {
		old, current *unstructured.Object
		merged       bool
		want         []string
	}{
		"status":                     {state("1", 1, "a"), state("2", 1, "a"), false, []string{"resourceVersion"}},
		"spec":                       {state("1", 1, "a"), state("2", 2, "a"), false, []string{"generation", "resourceVersion"}},
		"label":                      {state("1", 1, "a"), state("2", 1, "b"), false, []string{"label", "resourceVersion"}},
		"annotation":                 {state("1", 1, "a"), annotated, false, []string{"annotation", "resourceVersion"}},
		"resync":                     {state("1", 1, "a"), state("1", 1, "a"), false, nil},
		"merged status":              {state("1", 1, "a"), state("3", 1, "a"), true, []string{"label", "annotation", "resourceVersion"}},
		"kind without generation":    {state("1", 0, "a"), state("2", 0, "a"), false, []string{"generation", "resourceVersion"}},
		"resync, without generation": {state("1", 0, "a"), state("1", 0, "a"), false, nil},
	} {
		assert.Equal(t, tc.want, passes(controller.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.current, Merged: tc.merged}), name)
	}
}

// TestRun_GenerationChangedEndsStatusLoop writes a status with a timestamp in each reconcile.
func TestRun_GenerationChangedEndsStatusLoop(t *testing.T) {
	for name, tc := range map[string]struct {
		predicates []controller.Predicate
		want       int // at most 100
	}{
		"every change":      {nil, 100},
		"GenerationChanged": {[]controller.Predicate{controller.GenerationChanged}, 2},
		"all must pass":     {[]controller.Predicate{controller.ResourceVersionChanged, controller.LabelChanged}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				source, c := newScript(t)
				var writes, generation atomic.Int64
				generation.Store(1)
				write := func() {
					obj := state(fmt.Sprint(1+writes.Add(1)), generation.Load(), "a")
					obj.Object["status"] = map[string]any{"checkedAt": time.Now().String()}
					source.emit(watch.Modified, obj)
				}
				go func() {
					source.emit(watch.Added, state("1", 1, "a"))
					source.sync()
				}()
				time.AfterFunc(time.Minute, func() { generation.Store(2); write() })
				reconciles := 0
				err := controller.Run(ctx, c, func(context.Context, types.NamespacedName) (time.Duration, error) {
					time.Sleep(time.Second)
					write()
					if reconciles++; reconciles == 100 {
						cancel()
					}
					return 0, nil
				}, &controller.Options{Predicates: tc.predicates})
				require.Error(t, err)
				assert.Equal(t, tc.want, reconciles)
			})
		})
	}
}

// TestRun_PredicateGetsDeliveredStates blocks the predicate while the cache merges updates.
func TestRun_PredicateGetsDeliveredStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := make(script)
		c := cache.New(source, &cache.Options[unstructured.Object]{ResyncPeriod: time.Hour})
		go func() { _ = c.Run(t.Context()) }()
		var events []string
		reconciles := 0
		block := make(chan struct{})
		go func() {
			_ = controller.Run(t.Context(), c, func(context.Context, types.NamespacedName) (time.Duration, error) {
				reconciles++
				return 0, nil
			}, &controller.Options{Predicates: []controller.Predicate{func(e controller.UpdateEvent) bool {
				text := fmt.Sprintf("%s->%s", e.ObjectOld.GetResourceVersion(), e.ObjectNew.GetResourceVersion())
				for name, predicate := range map[string]controller.Predicate{"merged": func(e controller.UpdateEvent) bool { return e.Merged }, "generation": controller.GenerationChanged} {
					if predicate(e) {
						text += " " + name
					}
				}
				if events = append(events, text); len(events) == 2 {
					<-block
				}
				return false
			}}})
		}()
		source.emit(watch.Added, state("1", 1, "a"))
		source.sync()
		synctest.Wait()
		for i, change := range []*unstructured.Object{
			state("2", 1, "a"), state("3", 1, "b"), // 3 blocks
			state("4", 2, "b"), state("5", 2, "a"), state("6", 2, "b"), // merged
		} {
			source.emit(watch.Modified, change)
			if i < 2 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		close(block)
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		require.Len(t, events, 4)
		assert.Equal(t, []string{"1->2", "2->3", "6->6"}, []string{events[0], events[1], events[3]}, "the old state is the last delivered state")
		assert.Contains(t, []string{"3->6 merged generation", "3->6 generation merged"}, events[2])
		assert.Equal(t, 1, reconciles, "of the initial list")
		source.emit(watch.Deleted, state("7", 2, "b"))
		synctest.Wait()
		assert.Equal(t, 2, reconciles, "a deletion passes")
		source.emit(watch.Added, state("8", 1, "b"))
		synctest.Wait()
		assert.Equal(t, 3, reconciles, "a creation passes")
		assert.Len(t, events, 4)
	})
}

// typedSource emits an object and its update.
type typedSource[T any] []*T

func (typedSource[T]) Path(string) (string, error) { return "/api/v1/pods", nil }

func (s typedSource[T]) Follow(ctx context.Context, _ *dynamic.FollowOptions) iter.Seq2[dynamic.Change[T], error] {
	return func(yield func(dynamic.Change[T], error) bool) {
		for i, step := range []dynamic.Change[T]{{Type: watch.Added, Object: s[0]}, {Type: dynamic.Synced}, {Type: watch.Modified, Object: s[1]}} {
			if i == 2 {
				time.Sleep(time.Minute)
			}
			if !yield(step, nil) {
				return
			}
		}
		<-ctx.Done()
		yield(dynamic.Change[T]{}, ctx.Err())
	}
}

// bare is an object without the methods of metav1.Object.
type bare struct{ meta metav1.ObjectMeta }

func (b *bare) GetNamespace() string         { return b.meta.Namespace }
func (b *bare) GetName() string              { return b.meta.Name }
func (b *bare) GetUID() types.UID            { return b.meta.UID }
func (b *bare) GetResourceVersion() string   { return b.meta.ResourceVersion }
func (b *bare) GetLabels() map[string]string { return b.meta.Labels }

// watchOnce runs a controller with a trigger of a source's cache, and returns the events of its predicate.
func watchOnce[T any, P cache.Object[T]](t *testing.T, source typedSource[T], predicate controller.Predicate) (events []controller.UpdateEvent, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		c := cache.New[T, P](source, nil)
		go func() { _ = c.Run(ctx) }()
		trigger := controller.Watches(c, func(*T) []types.NamespacedName { return nil }, func(e controller.UpdateEvent) bool {
			events = append(events, e)
			return predicate(e)
		})
		err = controller.Run(ctx, running(t, staticSource{}), func(context.Context, types.NamespacedName) (time.Duration, error) { return 0, nil },
			&controller.Options{Triggers: []controller.Trigger{trigger}})
	})
	return events, err
}

func TestWatches_PredicateOfAnyType(t *testing.T) {
	meta := func(resourceVersion string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", ResourceVersion: resourceVersion}
	}
	var lazy []*unstructured.Lazy
	for _, resourceVersion := range []string{"1", "2"} {
		obj, err := unstructured.DecodeLazy(fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"shop","name":"web","uid":"1","resourceVersion":%q}}`, resourceVersion))
		require.NoError(t, err)
		lazy = append(lazy, obj)
	}
	events, err := watchOnce(t, lazy, controller.GenerationChanged)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Len(t, events, 1)
	assert.Equal(t, "2", events[0].ObjectNew.(*unstructured.Object).GetResourceVersion()) //nolint:forcetypeassert // part of the contract

	partial := []*metav1.PartialObjectMetadata{{ObjectMeta: meta("1")}, {ObjectMeta: meta("2")}}
	events, err = watchOnce(t, partial, controller.GenerationChanged)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, []controller.UpdateEvent{{ObjectOld: partial[0], ObjectNew: partial[1]}}, events)

	_, err = watchOnce(t, []*bare{{meta("1")}, {meta("2")}}, controller.GenerationChanged)
	assert.EqualError(t, err, "evaluate a Predicate: a *controller_test.bare is no metav1.Object (embed metav1.ObjectMeta)")

	_, err = watchOnce(t, partial, func(controller.UpdateEvent) bool { panic("out of order") })
	var panicked *cache.PanicError
	require.ErrorAs(t, err, &panicked)
	assert.Equal(t, "a Predicate, for shop/web", panicked.Where)
}

func TestRunKeys_RejectsPredicates(t *testing.T) {
	err := controller.RunKeys(t.Context(), controller.Keys[string]{}, nil, &controller.Options{Predicates: []controller.Predicate{controller.LabelChanged}})
	assert.EqualError(t, err, "run a controller: Options.Predicates of RunKeys must be empty (drop changes in Keys.Enqueue, with Passes)")
}

func TestOperator_PredicateDropsUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, objects := newScript(t)
		tracker := controller.NewChangeTracker(objects, nil, controller.GenerationChanged)
		queue := workqueue.New[types.NamespacedName](nil)
		go func() { _ = tracker.Enqueue(t.Context(), queue, slog.Default()) }()
		isQueued := func() bool {
			synctest.Wait()
			if queue.Len() == 0 {
				return false
			}
			key, _ := queue.Get(t.Context())
			queue.Done(key)
			return true
		}
		source.emit(watch.Added, state("1", 1, "a"))
		assert.True(t, isQueued())
		source.emit(watch.Modified, state("2", 1, "b"))
		assert.False(t, isQueued())
		source.emit(watch.Modified, state("3", 2, "b"))
		assert.True(t, isQueued())
		source.emit(watch.Deleted, state("4", 2, "b"))
		assert.True(t, isQueued())
	})
}

func TestRun_TerminalErrorIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, c := newScript(t)
		cause := &controllerError{}
		var results []error
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			source.emit(watch.Added, state("1", 1, "a"))
			source.sync()
			time.Sleep(time.Hour)
			source.emit(watch.Modified, state("2", 2, "a"))
			time.Sleep(time.Hour)
			cancel()
		}()
		err := controller.Run(ctx, c, func(context.Context, types.NamespacedName) (time.Duration, error) {
			return time.Second, fmt.Errorf("check the spec: %w", controller.TerminalError(cause))
		}, &controller.Options{OnReconcile: func(r controller.ReconcileResult) { results = append(results, r.Err) }})
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, results, 2, "once for each change")
		require.EqualError(t, results[0], "check the spec: terminal error: no such size")
		require.ErrorIs(t, results[0], controller.TerminalError(nil))
		require.ErrorIs(t, results[0], cause)
		require.NotErrorIs(t, cause, controller.TerminalError(nil))
		var found *controllerError
		assert.ErrorAs(t, results[1], &found)
		assert.EqualError(t, controller.TerminalError(nil), "terminal error")
	})
}

// TestRun_ErrorReplacesEarlierDelay returns errors while the delay of an earlier reconcile is pending.
func TestRun_ErrorReplacesEarlierDelay(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want []time.Duration
	}{
		"retry after": {controller.RetryAfter(errors.New("busy"), 2*time.Hour), []time.Duration{0, time.Minute, time.Minute + 2*time.Hour}},
		"terminal":    {controller.TerminalError(errors.New("never")), []time.Duration{0, time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, c := newScript(t)
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				start := time.Now()
				go func() {
					source.emit(watch.Added, state("1", 1, "a"))
					source.sync()
					time.Sleep(time.Minute)
					source.emit(watch.Modified, state("2", 2, "a"))
				}()
				var calls []time.Duration
				err := controller.Run(ctx, c, func(context.Context, types.NamespacedName) (time.Duration, error) {
					switch calls = append(calls, time.Since(start)); len(calls) {
					case 1:
						return time.Hour, nil
					case 2:
						return 0, tc.err
					default:
						return 0, nil
					}
				}, &controller.Options{Logger: slog.New(slog.DiscardHandler)})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, tc.want, calls)
			})
		})
	}
}

type controllerError struct{}

func (*controllerError) Error() string { return "no such size" }

func TestRun_RetryAfterDelaysRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		busy := errors.New("busy")
		require.ErrorIs(t, controller.RetryAfter(busy, time.Hour), busy)
		require.NoError(t, controller.RetryAfter(nil, time.Hour))
		var calls []time.Time
		err := controller.Run(ctx, running(t, staticSource{"web"}), func(context.Context, types.NamespacedName) (time.Duration, error) {
			switch calls = append(calls, time.Now()); len(calls) {
			case 1:
				return 0, controller.RetryAfter(busy, time.Hour)
			case 2:
				return 0, controller.RetryAfter(busy, time.Second)
			}
			cancel()
			return 0, nil
		}, &controller.Options{Queue: workqueue.Options{RateLimiter: func(int) time.Duration { return time.Minute }}})
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, time.Hour, calls[1].Sub(calls[0]))
		assert.Equal(t, time.Minute, calls[2].Sub(calls[1]), "the rate limiter's delay is longer")
	})
}
