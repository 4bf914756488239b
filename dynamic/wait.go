package dynamic

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/resourceversion"
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
// Wait gets the object and then watches it, which takes the verbs get and watch; RBAC rules with resourceNames suffice.
// Events older than a state seen by Wait do not count, because API servers of a cluster may lag. An object that
// did not exist is read once more when its first event arrives.
//
// Wait recovers from closed and expired watches, server restarts and broken connections, with delays of up to seven seconds. It
// returns errors of [Matches] and terminal rejections. 401 and 403 are terminal after two seconds or, after the first watch,
// five seconds, because a starting server denies every request for a moment. While the resource is not served no condition
// holds, not even [Deleted]. After five seconds Wait returns an error for which apierrors.IsNotFound holds.
//
// When Wait returns for an established CustomResourceDefinition, its kinds can be looked up.
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

func wait(ctx context.Context, r *Resource, name string, conditions []WaitCondition) (*unstructured.Object, error) {
	w := &waiter{resource: r, name: name, conditions: conditions, denials: retry.Denials{Grace: firstDenialGrace}}
	if err := w.validate(); err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		start := time.Now()
		w.hasProgressed = false
		done, err := w.getAndWatch(ctx)
		if done {
			r.awaitDiscovery(ctx, w.object)
			return w.last, nil
		}
		switch isTerminal := w.recordError(err); {
		case isTerminal && !w.notServedSince.IsZero():
			return nil, fmt.Errorf("wait for %s: the resource is not served: %w", w.target(), err)
		case isTerminal:
			return nil, fmt.Errorf("wait for %s: %w", w.target(), err)
		case ctx.Err() != nil:
			return nil, w.contextError(ctx)
		case w.hasProgressed || time.Since(start) > watchBackoff.Max:
			n = 1
		}
		w.lastErr = err
		if retry.Sleep(ctx, retry.Jitter(ctx, watchDelay(n, err))) != nil {
			return nil, w.contextError(ctx)
		}
	}
}

const (
	// firstDenialGrace is the time for retries of 401 and 403 before the first watch, notServedGrace the time for retries of 404.
	firstDenialGrace = 2 * time.Second
	notServedGrace   = 5 * time.Second
	// maxGraceDelay bounds the delay between requests within both.
	maxGraceDelay = 500 * time.Millisecond
)

var watchBackoff = retry.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}

// watchDelay returns the delay after the n-th consecutive failure, err.
func watchDelay(n int, err error) time.Duration {
	delay := watchBackoff.Delay(n)
	if retry.IsDenied(err) || apierrors.IsNotFound(err) {
		return min(delay, maxGraceDelay)
	}
	return delay
}

type waiter struct {
	resource   *Resource
	name       string
	conditions []WaitCondition

	object        *unstructured.Object // nil if it does not exist
	firstUID      types.UID            // UID of the first object
	last          *unstructured.Object // newest version of an existing object
	isAbsent      bool                 // the last read returned Not Found: the absence has no resourceVersion
	reasons       []string             // of conditions that do not hold
	conditionErr  error                // from a caller's function
	lastErr       error                // of the last attempt; nil if the object was observed since
	isExpired     bool                 // the object's resourceVersion is too old to watch from
	hasProgressed bool                 // the last watch has delivered an event

	denials        retry.Denials
	notServedSince time.Time // start of the period with only 404 for the path
}

func (w *waiter) validate() error {
	if err := w.resource.validateObject("get", w.name); err != nil {
		return err
	}
	if _, err := w.resource.Named(w.name).watchRequest(nil); err != nil {
		return err
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

// getAndWatch gets and watches the object until the conditions hold or the watch ends.
func (w *waiter) getAndWatch(ctx context.Context) (done bool, err error) {
	// A watch without a resourceVersion begins with the object, but does not report that the object does not exist. If the
	// object's resourceVersion has expired, the object is read after the start of the watch.
	watchFirst := w.isExpired
	from := ""
	w.isExpired = false
	if !watchFirst {
		if done, err = w.get(ctx); done || err != nil {
			return done, err
		}
		if w.object != nil {
			from = w.object.GetResourceVersion()
		}
	}
	stream, err := w.resource.Named(w.name).OpenWatch(ctx, &metav1.ListOptions{ResourceVersion: from})
	if err != nil {
		w.isExpired = retry.IsExpired(err)
		return false, err
	}
	defer stream.Close()
	if watchFirst {
		if done, err = w.get(ctx); done || err != nil {
			return done, err
		}
	}
	return w.watch(ctx, stream, from != "")
}

// get reads and evaluates the object. A 404 for the path is an error: the object may exist.
func (w *waiter) get(ctx context.Context) (done bool, err error) {
	obj, err := w.resource.Get(ctx, w.name, nil)
	if err != nil && !retry.IsObjectNotFound(err) {
		return false, err
	}
	w.isAbsent = obj == nil
	return w.evaluate(obj)
}

// watch evaluates the object after each event until the conditions hold or the watch ends. isContinuous reports whether the
// watch starts at the object's resourceVersion. Otherwise the watch may start with an older state from the server's cache.
func (w *waiter) watch(ctx context.Context, stream *WatchStream[unstructured.Object], isContinuous bool) (done bool, err error) {
	w.denials.Grace = 0 // the server has accepted a watch
	for {
		event, err := stream.Next()
		if err == io.EOF { //nolint:errorlint // the server ends every watch after a time
			return false, w.resource.decodeError("watch", err)
		}
		if err != nil {
			w.isExpired = retry.IsExpired(err)
			return false, err
		}
		w.hasProgressed = true
		if event.Type == watch.Bookmark {
			continue
		}
		if done, err = w.handleEvent(ctx, event, isContinuous); done || err != nil {
			return done, err
		}
	}
}

// handleEvent evaluates the object after an event newer than w.last. If the order is uncertain, it reads the object instead.
func (w *waiter) handleEvent(ctx context.Context, event unstructured.WatchEvent[unstructured.Object], isContinuous bool) (done bool, err error) {
	isDeleted := event.Type == watch.Deleted
	isComparable := false
	if w.last != nil {
		order, err := resourceversion.Compare(event.Object.GetResourceVersion(), w.last.GetResourceVersion())
		isComparable = err == nil
		// Some servers send the last version of a deleted object with its old resourceVersion.
		isFinal := isDeleted && w.object != nil && w.object.GetUID() == event.Object.GetUID()
		if isComparable && (order < 0 || order == 0 && !isFinal) {
			return false, nil
		}
	}
	switch isAbsence := isDeleted && w.object == nil; {
	case !isContinuous && !isAbsence && (w.isAbsent || !isComparable):
		return w.get(ctx)
	case isDeleted:
		w.last = event.Object
		return w.evaluate(nil)
	default:
		return w.evaluate(event.Object)
	}
}

// evaluate stores the current object, nil if it does not exist, and reports whether all conditions hold.
func (w *waiter) evaluate(obj *unstructured.Object) (done bool, err error) {
	w.object = obj
	w.lastErr = nil
	w.reasons = nil
	if obj != nil {
		w.last = obj
		if w.firstUID == "" {
			w.firstUID = obj.GetUID()
		}
	}
	for _, condition := range w.conditions {
		reason, err := condition.reason(obj, w.firstUID)
		if err != nil {
			w.conditionErr = err
			return false, err
		}
		if reason != "" {
			w.reasons = append(w.reasons, reason)
		}
	}
	return len(w.reasons) == 0, nil
}

// recordError records the time of denials and of 404 for the path. It reports whether err ends the wait: an error of a condition,
// 401 and 403 after the grace period, 404 for the path after notServedGrace, or any other rejection.
func (w *waiter) recordError(err error) (isTerminal bool) {
	denied := w.denials.Record(err)
	switch {
	case w.conditionErr != nil || !retry.IsPathNotFound(err):
		w.notServedSince = time.Time{}
		return w.conditionErr != nil || !denied && retry.IsRejected(err)
	case w.notServedSince.IsZero():
		w.notServedSince = time.Now()
	}
	return time.Since(w.notServedSince) >= notServedGrace
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

// definedKind returns the kind defined by a CustomResourceDefinition. The API server validates the definition.
func definedKind(definition *unstructured.Object) schema.GroupKind {
	group, _, _ := unstructured.Get[string](definition, "spec", "group")
	kind, _, _ := unstructured.Get[string](definition, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

// isDefinition reports whether resource is customresourcedefinitions.
func isDefinition(resource *discovery.Resource) bool {
	return resource.GVR.Group == "apiextensions.k8s.io" && resource.GVR.Resource == "customresourcedefinitions"
}
