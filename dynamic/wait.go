package dynamic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/reflector"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/unstructured"
)

// Wait waits until all conditions hold at the same time for the named object and returns the object. If the object is deleted,
// Wait returns its last version, or nil if it never existed. The object need not exist yet, and may be deleted and created
// again.
//
// ctx bounds the wait. When it ends, the error has the reasons why conditions do not hold, and errors.Is(err,
// context.DeadlineExceeded) holds:
//
//	wait for deployments.apps "shop/web": condition Available is "False": MinimumReplicasUnavailable: Deployment does not …
//
// Wait lists the object by its name and then watches it, like [Handle.Follow] with [Handle.Named]. That takes the verbs list and
// watch; RBAC rules with resourceNames suffice. The object does not exist only if a complete list lacks it or the API reported
// its deletion.
//
// Wait recovers from closed and expired watches, server restarts and broken connections, with delays of up to seven seconds. It
// returns errors of [Matches] and terminal rejections. 401 and 403 are terminal after two seconds or, after the first watch,
// five seconds, because a starting server denies every request for a moment. While the resource is not served no condition
// holds, not even [Deleted]. After five seconds Wait returns an error for which apierrors.IsNotFound holds.
//
// When Wait returns for an established CustomResourceDefinition, its kinds can be looked up. [Handle.WithWaitOptions] reports the
// progress of a wait.
func (h *Handle[T]) Wait(ctx context.Context, name string, conditions ...WaitCondition) (*T, error) {
	if err := h.rejectTables("watch", name); err != nil {
		return nil, err
	}
	obj, err := wait(ctx, h.objects(), name, conditions)
	if err != nil || obj == nil {
		return nil, err
	}
	return h.codec.decode(&h.endpoint, item{object: obj})
}

// WaitOptions configure how [Handle.Wait] waits.
type WaitOptions struct {
	// OnProgress is called with the first state of the object, with each further state, and when the reasons change. It is called in
	// the goroutine of Wait and should be quick.
	OnProgress func(WaitProgress)
}

// WaitProgress is a state of the object during a [Handle.Wait].
type WaitProgress struct {
	// Object is nil if it does not exist. It is read-only.
	Object *unstructured.Object
	// Reasons are why conditions do not hold, in the order of the conditions. It is empty in the last call of a successful wait.
	Reasons []string
}

// String returns the reasons: "it is InProgress: 1 of 2 replicas are ready", or "done" without reasons.
func (p WaitProgress) String() string { return cmp.Or(strings.Join(p.Reasons, "; "), "done") }

// WithWaitOptions returns a handle whose Wait uses these options; nil means defaults.
func (h *Handle[T]) WithWaitOptions(opts *WaitOptions) *Handle[T] {
	changed := *h
	changed.waitOptions = valueOf(opts)
	return &changed
}

func wait(ctx context.Context, r *Resource, name string, conditions []WaitCondition) (*unstructured.Object, error) {
	w := &waiter{resource: r, name: name, conditions: conditions}
	if err := w.validate(); err != nil {
		return nil, err
	}
	err := reflector.Run(ctx, reflector.Options[item]{
		Source: &objectSource{endpoint: &r.Named(name).endpoint, form: wholeObjects{}}, ListFirst: true, IsTerminal: retry.IsRejected,
		Emit: w.handle, OnProgress: func(string) error { return w.evaluate() },
		OnInterruption: func(i reflector.Interruption) { w.lastErr = i.Err },
	})
	switch {
	case errors.Is(err, errStopped):
		r.awaitDiscovery(ctx, w.object)
		return w.last, nil
	case w.conditionErr == nil && ctx.Err() != nil:
		return nil, w.contextError(ctx)
	case w.conditionErr == nil && apierrors.IsNotFound(err):
		return nil, fmt.Errorf("wait for %s: the resource is not served: %w", w.target(), err)
	default:
		return nil, fmt.Errorf("wait for %s: %w", w.target(), err)
	}
}

type waiter struct {
	resource   *Resource
	name       string
	conditions []WaitCondition

	object       *unstructured.Object // nil if it does not exist
	firstUID     types.UID            // UID of the first object
	last         *unstructured.Object // newest version of an existing object
	reasons      []string             // of conditions that do not hold
	conditionErr error                // from a caller's function
	lastErr      error                // of the last attempt; nil if the object was observed since
	reported     *unstructured.Object // of the last call of OnProgress
	isReported   bool
}

func (w *waiter) validate() error {
	if err := w.resource.validateObject("get", w.name); err != nil {
		return err
	}
	for _, verb := range []string{"list", "watch"} {
		if err := w.resource.Named(w.name).validateCollection(verb, nil); err != nil {
			return err
		}
	}
	if len(w.conditions) == 0 {
		return w.resource.invalid("watch", w.name, "there is no condition to wait for: pass one, such as Exists()")
	}
	for _, condition := range w.conditions {
		switch {
		case condition.invalid != nil:
			return w.resource.invalid("watch", w.name, "%v", condition.invalid)
		case condition.reason == nil:
			return w.resource.invalid("watch", w.name, "a WaitCondition is empty: make it with a function such as Condition")
		}
	}
	return nil
}

// handle records the object of an event. In a relist, its states in between are no states of the server.
func (w *waiter) handle(event *reflector.Event[item]) error {
	switch {
	case event.Name != w.name: // Started and Synced, or another object from a server that ignores the field selector
	case event.FinalStateUnknown:
		w.object = nil
	case event.Type == watch.Deleted:
		w.object = nil
		w.last = w.resource.represent(event.Object.object)
	default:
		w.object = w.resource.represent(event.Object.object)
		w.last = w.object
		w.firstUID = cmp.Or(w.firstUID, w.object.GetUID())
	}
	return nil
}

// evaluate returns errStopped if all conditions hold.
func (w *waiter) evaluate() error {
	w.lastErr = nil
	var reasons []string
	for _, condition := range w.conditions {
		reason, err := condition.reason(w)
		if err != nil {
			w.conditionErr = err
			return err
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
	}
	isNews := !w.isReported || w.reported != w.object || !slices.Equal(reasons, w.reasons)
	w.reasons = reasons
	if onProgress := w.resource.waitOptions.OnProgress; onProgress != nil && isNews {
		w.isReported = true
		w.reported = w.object
		onProgress(WaitProgress{Object: w.object, Reasons: slices.Clone(reasons)})
	}
	if len(reasons) > 0 {
		return nil
	}
	return errStopped
}

func (w *waiter) target() string {
	name := w.name
	if w.resource.isNamespaced() {
		name = w.resource.namespace + "/" + name
	}
	return fmt.Sprintf("%s %q", w.resource, name)
}

// contextError returns the error of a wait after the end of ctx.
func (w *waiter) contextError(ctx context.Context) error {
	reason := cmp.Or(strings.Join(w.reasons, "; "), "its state is unknown")
	err := fmt.Errorf("wait for %s: %s: %w", w.target(), reason, retry.ContextError(ctx))
	if w.lastErr != nil {
		err = fmt.Errorf("%w; the last error: %w", err, w.lastErr)
	}
	return err
}

// maxDiscoveryLag bounds the lag of discovery behind the condition Established: some hundred milliseconds with a single API
// server, several seconds with several.
const maxDiscoveryLag = 10 * time.Second

// awaitDiscovery waits until discovery serves the kinds of obj, an established CustomResourceDefinition. It returns immediately
// for other objects. Failures are ignored: the next lookup reports them.
func (e *endpoint) awaitDiscovery(ctx context.Context, obj *unstructured.Object) {
	kinds := e.definedKinds(obj)
	if len(kinds) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maxDiscoveryLag)
	defer cancel()
	_, _ = restmapper.New(e.discovery).WaitForKinds(ctx, kinds...)
}

// definedKinds returns the kinds defined by obj, an established CustomResourceDefinition, in each served version. It returns
// nil if obj is being deleted.
func (e *endpoint) definedKinds(obj *unstructured.Object) (kinds []schema.GroupVersionKind) {
	if !isDefinition(e.apiResource) || obj == nil || obj.GetDeletionTimestamp() != nil || findCondition(obj, "Established")["status"] != "True" {
		return nil
	}
	kind := definedKind(obj)
	versions, _, _ := unstructured.Get[[]any](obj, "spec", "versions")
	for _, version := range versions {
		version, _ := version.(map[string]any)
		if name, _ := version["name"].(string); version["served"] == true {
			kinds = append(kinds, kind.WithVersion(name))
		}
	}
	return kinds
}

// DefinedKind returns the kind defined by a CustomResourceDefinition. isDefinition is false for other objects. Fields of a wrong type
// are empty: the API server validates the definition.
func DefinedKind(obj *unstructured.Object) (kind schema.GroupKind, isDefinition bool) {
	if obj.GroupVersionKind().GroupKind().String() != "CustomResourceDefinition.apiextensions.k8s.io" {
		return schema.GroupKind{}, false
	}
	return definedKind(obj), true
}

func definedKind(definition *unstructured.Object) schema.GroupKind {
	group, _, _ := unstructured.Get[string](definition, "spec", "group")
	kind, _, _ := unstructured.Get[string](definition, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

// isDefinition reports whether resource is customresourcedefinitions.
func isDefinition(resource *discovery.Resource) bool {
	return resource.GVR.Group == "apiextensions.k8s.io" && resource.GVR.Resource == "customresourcedefinitions"
}
