package applyset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// WaitOptions configure [Set.Wait].
type WaitOptions struct {
	// OnProgress is called with each changed status, and once with the first status of each object. Calls are serialized.
	OnProgress func(Reference, readiness.Result)
}

// NotReadyError lists the objects that are not ready. It unwraps to the end of the context, if that ended the wait.
type NotReadyError struct {
	Objects []NotReadyObject
	cause   error
}

// NotReadyObject is an object that is not ready.
type NotReadyObject struct {
	Object Reference
	// Result has the status, the deciding field and the message.
	Result readiness.Result
	// Warnings are the newest Warning events of the object and of its pods, the newest first: "BackOff: Back-off pulling image …".
	Warnings []string
}

func (e *NotReadyError) Error() string {
	var lines []string
	for _, obj := range e.Objects {
		line := fmt.Sprintf("%s is %s", obj.Object, obj.Result)
		if len(obj.Warnings) > 0 {
			line += " (" + strings.Join(obj.Warnings, "; ") + ")"
		}
		lines = append(lines, line)
	}
	return fmt.Sprintf("%d not ready: %s", len(e.Objects), strings.Join(lines, "; "))
}

// Unwrap returns the context's error with its cause, or nil if every object is either ready or failed.
func (e *NotReadyError) Unwrap() error { return e.cause }

// Wait waits until all objects are Current, by dynamic's Readiness with the rules of the set. It follows the members of the set, one
// reflector for each kind, and recovers like [dynamic.Handle.Follow]. Objects that are not members yet are waited for.
//
// It returns a [*NotReadyError] when ctx ends, or as soon as every object is Current or Failed and one is Failed. A Failed pod that
// the cluster retries counts as InProgress, as for dynamic.Ready.
func (s *Set) Wait(ctx context.Context, objects []*manifest.Object, opts *WaitOptions) error {
	d, err := s.desire(ctx, objects)
	if err != nil {
		return fmt.Errorf("wait for the set of %s: %w", s.parent, err)
	}
	w := &waiter{
		Set: s, opts: valueOf(opts), desired: d,
		results: map[Reference]readiness.Result{}, live: map[Reference]*unstructured.Object{},
	}
	for ref := range d.members {
		w.results[ref] = readiness.Result{Status: readiness.InProgress, Message: "it does not exist"}
	}
	if err := w.wait(ctx); err != nil {
		return fmt.Errorf("wait for the set of %s: %w", s.parent, err)
	}
	return nil
}

type waiter struct {
	*Set
	opts    WaitOptions
	desired *desired

	mu      sync.Mutex
	results map[Reference]readiness.Result
	live    map[Reference]*unstructured.Object
}

var errDecided = errors.New("every object is ready or failed")

func (w *waiter) wait(ctx context.Context) error {
	following, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	for kind, m := range w.byKind() {
		wg.Go(func() {
			if err := w.follow(following, m, stop); err != nil && following.Err() == nil {
				stop(fmt.Errorf("follow %s: %w", kind, err))
			}
		})
	}
	w.mu.Lock()
	w.decide(stop)
	w.mu.Unlock()
	wg.Wait()
	cause := context.Cause(following)
	notReady := &NotReadyError{Objects: w.notReady()}
	switch {
	case errors.Is(cause, errDecided) && len(notReady.Objects) == 0:
		return nil
	case errors.Is(cause, errDecided):
	case ctx.Err() != nil:
		notReady.cause = retry.ContextError(ctx)
	default:
		return cause
	}
	w.addWarnings(context.WithoutCancel(ctx), notReady.Objects)
	return notReady
}

// byKind returns a member of each kind.
func (w *waiter) byKind() map[string]*member {
	kinds := map[string]*member{}
	for ref, m := range w.desired.members {
		kinds[ref.Kind.String()] = m
	}
	return kinds
}

// follow records the status of the members of a kind until ctx ends.
func (w *waiter) follow(ctx context.Context, m *member, stop context.CancelCauseFunc) error {
	resource := m.resource
	if resource == nil {
		served, err := w.client.WaitForKinds(ctx, m.want.GroupVersionKind())
		if err != nil {
			return err
		}
		resource = served[0]
	}
	return w.eachHandle(ctx, resource, w.desired.scope, func(ctx context.Context, handle *dynamic.Resource) error {
		for change, err := range handle.Follow(ctx, &dynamic.FollowOptions{LabelSelector: w.selector()}) {
			if err != nil {
				return err
			}
			if change.Object != nil {
				w.record(m, resource, change, stop)
			}
		}
		return nil
	})
}

func (w *waiter) record(m *member, resource *dynamic.Resource, change dynamic.Change[unstructured.Object], stop context.CancelCauseFunc) {
	ref := Reference{Kind: m.Kind, Namespace: change.Object.GetNamespace(), Name: change.Object.GetName()}
	result := readiness.Result{Status: readiness.InProgress, Message: "it was deleted"}
	if change.Type != watch.Deleted {
		result = resource.Readiness(change.Object, w.Set.opts.Rules...)
		if result.Status == readiness.Failed && m.Kind.String() == "Pod" && phase(change.Object) != "Failed" {
			result.Status = readiness.InProgress
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before, isMember := w.results[ref]
	if !isMember {
		return
	}
	_, isKnown := w.live[ref]
	w.results[ref] = result
	w.live[ref] = change.Object
	if w.opts.OnProgress != nil && (!isKnown || before != result) {
		w.opts.OnProgress(ref, result)
	}
	w.decide(stop)
}

func phase(pod *unstructured.Object) string {
	phase, _, _ := unstructured.Get[string](pod, "status", "phase")
	return phase
}

// decide stops the reflectors if every object is ready or failed. The caller holds mu.
func (w *waiter) decide(stop context.CancelCauseFunc) {
	for _, result := range w.results {
		if result.Status != readiness.Current && result.Status != readiness.Failed {
			return
		}
	}
	stop(errDecided)
}

func (w *waiter) notReady() []NotReadyObject {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []NotReadyObject
	refs := slices.Collect(maps.Keys(w.results))
	SortReferences(refs)
	for _, ref := range refs {
		if result := w.results[ref]; result.Status != readiness.Current {
			all = append(all, NotReadyObject{Object: ref, Result: result})
		}
	}
	return all
}
