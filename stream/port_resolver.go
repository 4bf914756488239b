package stream

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	lru "k8s.io/apimachinery/pkg/util/cache"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
)

const (
	// maxNames limits the remembered names of a dialer.
	maxNames = 256
	// maxNameAge is the lifetime of a name after its last use.
	maxNameAge = 10 * time.Minute
	// maxPodAge is the maximum age of a chosen pod's status: a burst of connections reads it once.
	maxPodAge = time.Second
	// unreadableDelay is the delay between protocol checks of an unreadable pod.
	unreadableDelay = time.Minute
	// checkTimeout limits reading a pod for that check.
	checkTimeout = 5 * time.Second
)

// podResolver resolves a name to a pod and its port. It keeps a pod while the pod is ready. It is safe for concurrent use.
type podResolver struct {
	conn  *transport.Conn
	ref   *objectRef
	stale atomic.Bool

	// lock has an element while the API is read, and guards the rest. Callers waiting for it use the result.
	lock         chan struct{}
	owner        *podOwner
	pod          *pod
	readAt       time.Time
	unreadableAt time.Time
}

// resolver returns the resolver of a name. A service or workload keeps its pod as long as its name is remembered, and a pod's
// ports are read once.
func (d *PortDialer) resolver(name string) (*podResolver, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.resolvers == nil {
		d.resolvers = lru.NewLRUExpireCache(maxNames)
	}
	known, _ := d.resolvers.Get(name)
	r, isKnown := known.(*podResolver)
	if !isKnown {
		ref, err := newObjectRef(d.Target, name)
		if err != nil {
			return nil, err
		}
		r = &podResolver{conn: d.Target.Conn(), ref: ref, lock: make(chan struct{}, 1)}
	}
	d.resolvers.Add(name, r, maxNameAge)
	return r, nil
}

// resolve returns the pod and its port for a port's number or name.
func (r *podResolver) resolve(ctx context.Context, port string) (to podRef, number uint16, err error) {
	number, isNumber, err := parsePort(port)
	if err != nil {
		return to, 0, err
	}
	select {
	case r.lock <- struct{}{}:
		defer func() { <-r.lock }()
	case <-ctx.Done():
		return to, 0, retry.ContextError(ctx)
	}
	if r.stale.Swap(false) {
		r.pod = nil
	}
	if r.ref.isPod() && isNumber {
		return podRef{r.ref.path, r.ref.name}, number, r.checkProtocol(ctx, number)
	}
	chosen, err := r.current(ctx)
	if err != nil {
		return to, 0, err
	}
	switch {
	case r.ref.isService():
		number, err = r.owner.podPort(r.ref, port, chosen)
	case isNumber:
		err = chosen.checkProtocol(number)
	default:
		number, err = chosen.namedPort(port)
	}
	return podRef{podPath(r.ref.namespace, chosen.Metadata.Name), chosen.Metadata.Name}, number, err
}

// checkProtocol returns an error for a port declared by the pod, but not for TCP. An unreadable pod is not checked:
// port-forwarding does not need the permission to read the pod, and the tunnel reports a missing pod.
func (r *podResolver) checkProtocol(ctx context.Context, number uint16) error {
	if r.pod != nil && r.pod.checkProtocol(number) == nil || r.pod == nil && time.Since(r.unreadableAt) < unreadableDelay {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	now, err := r.current(limited)
	if err == nil {
		return now.checkProtocol(number)
	}
	if ctx.Err() != nil {
		return retry.WithContextError(ctx, err)
	}
	r.unreadableAt = time.Now()
	return nil
}

// current returns the chosen pod if it is still ready, or a newly chosen pod.
func (r *podResolver) current(ctx context.Context) (*pod, error) {
	if r.pod != nil && time.Since(r.readAt) < maxPodAge {
		return r.pod, nil
	}
	chosen, err := r.read(ctx, r.pod)
	if err != nil {
		return nil, err
	}
	r.pod = chosen
	r.readAt = time.Now()
	return chosen, nil
}

// read reads the pod, or the chosen pod of a service or workload. If the chosen pod is not ready any more, it chooses a new pod.
func (r *podResolver) read(ctx context.Context, chosen *pod) (*pod, error) {
	now := new(pod)
	if r.ref.isPod() {
		return now, getJSON(ctx, r.conn, r.ref.path, now)
	}
	if chosen != nil {
		err := getJSON(ctx, r.conn, podPath(r.ref.namespace, chosen.Metadata.Name), now)
		if err == nil && now.isReady() && now.Metadata.UID == chosen.Metadata.UID {
			return now, nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	owner, selector, err := readOwner(ctx, r.conn, r.ref)
	if err != nil {
		return nil, err
	}
	r.owner = owner
	return findPod(ctx, r.conn, r.ref, selector, firstPage, nil)
}
