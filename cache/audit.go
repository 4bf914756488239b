package cache

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/objectkey"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

// An audit compares the objects of a stream at a resourceVersion R of the stream with the server's objects at R: metadata only, by
// pages, with resourceVersionMatch=Exact. Both are states of the same revision, so no change is in flight between them.
//
// The objects are copied when the stream reports its next progress: the cache then has all changes up to R and none after it.
//
// API servers before 1.34 read such a list from etcd. Later servers read it from snapshots of their watch cache, unless their own
// comparison with etcd, every five minutes, has found the watch cache inconsistent: then they read etcd, too. A difference must
// last for auditGrace in the cache. It is confirmed by an exact list of its name alone, which all servers read from etcd. A list of the name
// with resourceVersionMatch=NotOlderThan is always read from the watch cache, and shows whether that is wrong as well.
//
// Memory: the keys and states of the stream's objects while they are listed, and the keys that Transform has left out.

const (
	defaultAuditInterval = time.Hour
	// auditGrace is the time that a difference must last, unless Audit.Interval is shorter.
	auditGrace = 10 * time.Second
	// auditRepairTime is the time between a requested relist and the audit of its result, unless Audit.Interval is shorter.
	auditRepairTime = time.Minute
	// maxAuditTime bounds an audit, including the time until the next progress: a bookmark is sent about once a minute.
	maxAuditTime = 10 * time.Minute
	// maxDifferences is the maximum number of confirmed differences of an audit. Each costs two requests.
	maxDifferences = 100
)

var errAuditTime = fmt.Errorf("it takes longer than %s", maxAuditTime)

// Audit configures the comparison of a cache with the server. Each namespace and shard is compared on its own.
type Audit struct {
	// Interval is the time between audits, without jitter of up to a half. The default is an hour.
	Interval time.Duration
	// OnResult is called after each audit, also without differences. Calls do not overlap. A slow call delays further audits only.
	OnResult func(AuditResult)
}

// AuditResult is the result of an audit.
type AuditResult struct {
	// ResourceVersion is the resourceVersion of the compared objects.
	ResourceVersion string
	// Objects is the number of objects of the server.
	Objects int
	// Differences are the confirmed differences, at most 100. The objects are listed again to repair them.
	Differences []Difference
	// Err is the error of an incomplete audit, such as a denied list. The next audit is an interval later.
	Err error
}

// Difference is an object with different states in a cache and in the server's storage, at the same resourceVersion.
type Difference struct {
	types.NamespacedName

	// Cached and Stored are the states in the cache and in the server's storage. The zero value is a missing object.
	Cached, Stored ObjectVersion
	// WatchCache reports that the watch cache of the API server has the cached state, too. A relist may then be as wrong.
	WatchCache bool
}

// ObjectVersion identifies a state of an object.
type ObjectVersion struct {
	UID             types.UID
	ResourceVersion string
}

// String returns the states, "missing", or the resourceVersion and the UID.
func (v ObjectVersion) String() string {
	if v == (ObjectVersion{}) {
		return "missing"
	}
	return fmt.Sprintf("resourceVersion %s of UID %s", v.ResourceVersion, v.UID)
}

// differs compares the fields that v has: a Transform may have dropped a field.
func (v ObjectVersion) differs(stored ObjectVersion) bool {
	if v == (ObjectVersion{}) || stored == (ObjectVersion{}) {
		return v != stored
	}
	return v.UID != "" && v.UID != stored.UID || v.ResourceVersion != "" && v.ResourceVersion != stored.ResourceVersion
}

// String names the object and both states.
func (d Difference) String() string {
	text := fmt.Sprintf("%s is %s in the cache, and %s on the server", objectkey.Text(d.NamespacedName), d.Cached, d.Stored)
	if d.WatchCache {
		text += " (whose watch cache is wrong, too)"
	}
	return text
}

// compare orders differences by key.
func (d Difference) compare(with Difference) int {
	return cmp.Or(cmp.Compare(d.Namespace, with.Namespace), cmp.Compare(d.Name, with.Name))
}

// auditor audits a stream of a cache. A nil auditor does nothing.
type auditor[T any] struct {
	cache     *Cache[T]
	partition *partition[T] // nil for the only stream
	handle    *dynamic.Handle[unstructured.Lazy]
	relist    chan struct{}
	isDue     atomic.Bool  // the next progress is sent to copies
	nextAt    time.Time    // of the next audit; guarded by the cache's lock
	kept      []Difference // of a stopped partition, for its successor
	copies    chan auditState[T]
}

// auditState are the objects of a stream at a resourceVersion.
type auditState[T any] struct {
	resourceVersion string
	objects         map[types.NamespacedName]stored[T]
	leftOut         map[types.NamespacedName]ObjectVersion // by Transform
}

// audits is the state of all auditors of a cache.
type audits[T any] struct {
	reporting   sync.Mutex                             // during OnResult
	differences map[*auditor[T]][]Difference           // guarded by the cache's lock
	leftOut     map[types.NamespacedName]ObjectVersion // by Transform; guarded by the cache's lock; nil without Options.Audit
}

// String returns a difference and the number of differences. Callers hold the cache's lock.
func (a *audits[T]) String() string {
	var first Difference
	count := 0
	for _, differences := range a.differences {
		for _, d := range differences {
			if count++; count == 1 || d.compare(first) < 0 {
				first = d
			}
		}
	}
	if count > 1 {
		return fmt.Sprintf("%s; %d differences", first, count)
	}
	return first.String()
}

// newAuditor returns the auditor of a partition, or of the only stream. It is nil without Options.Audit.
func (c *Cache[T]) newAuditor(p *partition[T], source Source[T]) *auditor[T] {
	if c.opts.Audit == nil {
		return nil
	}
	a := &auditor[T]{cache: c, partition: p, relist: make(chan struct{}, 1), copies: make(chan auditState[T], 1)}
	if handle, ok := source.(*dynamic.Handle[T]); ok {
		a.handle = dynamic.As[unstructured.Lazy](handle).Metadata()
	}
	return a
}

// requests returns the channel for FollowOptions.Relist.
func (a *auditor[T]) requests() <-chan struct{} {
	if a == nil {
		return nil
	}
	return a.relist
}

// progress copies the objects for a due audit. Only Run's goroutine calls it: the cache has the stream's changes up to
// resourceVersion and none after it.
func (a *auditor[T]) progress(resourceVersion string) {
	if a == nil || !a.isDue.CompareAndSwap(true, false) {
		return
	}
	c := a.cache
	state := auditState[T]{resourceVersion, map[types.NamespacedName]stored[T]{}, map[types.NamespacedName]ObjectVersion{}}
	c.mu.RLock()
	defer c.mu.RUnlock()
	namespace := ""
	if a.partition != nil {
		namespace = a.partition.namespace
	}
	for key, e := range c.objects.in(namespace) {
		if a.has(key.Namespace, c.uidOf(e.stored)) {
			state.objects[key] = e.stored
		}
	}
	for key, version := range c.audits.leftOut {
		if a.has(key.Namespace, version.UID) {
			state.leftOut[key] = version
		}
	}
	a.copies <- state
}

func (a *auditor[T]) has(namespace string, uid types.UID) bool {
	return a.partition == nil || a.partition.has(namespace, uid)
}

// run audits until ctx ends.
func (a *auditor[T]) run(ctx context.Context) {
	c := a.cache
	defer func() {
		if value := recover(); value != nil {
			c.abort(&PanicError{Where: "an audit of the cache of " + c.String(), Value: value, Stack: debug.Stack()})
		}
	}()
	defer a.setDifferences(nil)
	for retry.Sleep(ctx, a.untilNext(ctx)) == nil {
		if !a.audit(ctx) {
			continue
		}
		select {
		case a.relist <- struct{}{}:
		default: // the last request has not been received: the stream is rejected
		}
		if retry.Sleep(ctx, min(auditRepairTime, a.interval())) != nil {
			return
		}
		a.audit(ctx)
	}
}

// untilNext returns the time until the next audit, and schedules the one after it.
func (a *auditor[T]) untilNext(ctx context.Context) time.Duration {
	a.cache.mu.Lock()
	defer a.cache.mu.Unlock()
	if !a.nextAt.After(time.Now()) {
		a.nextAt = time.Now().Add(retry.Jitter(ctx, a.interval()))
	}
	return time.Until(a.nextAt)
}

// keep keeps the differences for the successor of a partition that is about to be stopped.
func (a *auditor[T]) keep() {
	if a == nil {
		return
	}
	a.cache.mu.RLock()
	defer a.cache.mu.RUnlock()
	a.kept = a.cache.audits.differences[a]
}

// continueFrom takes over the schedule of stopped auditors, and their differences as far as the partition has the objects. It reports whether there
// are any: the objects must be listed again.
func (a *auditor[T]) continueFrom(stopped []*auditor[T]) (differs bool) {
	c := a.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range stopped {
		if a.nextAt.IsZero() || !s.nextAt.IsZero() && s.nextAt.Before(a.nextAt) {
			a.nextAt = s.nextAt
		}
		for _, d := range s.kept {
			if a.has(d.Namespace, cmp.Or(d.Cached.UID, d.Stored.UID)) {
				c.audits.differences[a] = append(c.audits.differences[a], d)
			}
		}
	}
	if len(c.audits.differences[a]) == 0 {
		return false
	}
	a.nextAt = time.Now().Add(min(auditRepairTime, a.interval()))
	return true
}

func (a *auditor[T]) interval() time.Duration {
	return cmp.Or(a.cache.opts.Audit.Interval, defaultAuditInterval)
}

// audit audits once, and reports whether there are differences.
func (a *auditor[T]) audit(parent context.Context) (differs bool) {
	ctx, cancel := context.WithTimeoutCause(parent, maxAuditTime, errAuditTime)
	defer cancel()
	result := AuditResult{}
	if err := a.compare(ctx, &result); err != nil {
		err = retry.WithContextError(ctx, err)
		if a.partition != nil {
			err = a.partition.wrap(err)
		}
		result.Err = fmt.Errorf("audit cache %s: %w", a.cache, err)
	}
	if parent.Err() != nil {
		return false
	}
	if result.Err == nil || len(result.Differences) > 0 {
		a.setDifferences(result.Differences)
	}
	if report := a.cache.opts.Audit.OnResult; report != nil {
		a.cache.audits.reporting.Lock()
		defer a.cache.audits.reporting.Unlock()
		report(result)
	}
	return len(result.Differences) > 0
}

func (a *auditor[T]) setDifferences(differences []Difference) {
	c := a.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.audits.differences, a); len(differences) > 0 {
		c.audits.differences[a] = differences
	}
}

// compare sets result.
func (a *auditor[T]) compare(ctx context.Context, result *AuditResult) error {
	if a.handle == nil {
		return fmt.Errorf("its source, %T, is not a handle of package dynamic", a.cache.source)
	}
	state, err := a.waitForState(ctx)
	if err != nil {
		return err
	}
	result.ResourceVersion = state.resourceVersion
	candidates, err := a.list(ctx, state, &result.Objects)
	if err != nil || len(candidates) == 0 {
		return err
	}
	if err := retry.Sleep(ctx, min(auditGrace, a.interval())); err != nil {
		return err
	}
	for _, d := range candidates {
		if a.cache.versionOfKey(d.NamespacedName) != d.Cached {
			continue
		}
		if len(result.Differences) == maxDifferences {
			break
		}
		isConfirmed, err := a.confirm(ctx, state.resourceVersion, &d)
		if err != nil {
			return err
		}
		if isConfirmed {
			result.Differences = append(result.Differences, d)
		}
	}
	return nil
}

// waitForState returns the objects at the stream's next progress.
func (a *auditor[T]) waitForState(ctx context.Context) (state auditState[T], err error) {
	a.isDue.Store(true)
	select {
	case state = <-a.copies:
	case <-ctx.Done():
		if a.isDue.CompareAndSwap(true, false) {
			return state, fmt.Errorf("no progress of the stream: %w", retry.ContextError(ctx))
		}
		state = <-a.copies
	}
	if !isReached(state.resourceVersion, state.resourceVersion) {
		return state, fmt.Errorf("the resourceVersion %q has no order", state.resourceVersion)
	}
	return state, nil
}
