package stream

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// choiceAge is how old the state of a chosen pod may be: a burst of connections reads it once.
	choiceAge = time.Second
	// unreadableAge is for how long a pod that could not be read is not read again to check the protocol of a port.
	unreadableAge = time.Minute
	// checkTimeout is how long the reading of a pod for that check may take.
	checkTimeout = 5 * time.Second
)

// podResolver finds the pod that serves a name, and the number of its port. It stays with a pod while that is ready. It is
// safe for concurrent use.
type podResolver struct {
	conn *transport.Conn
	at   *place
	used time.Time // guarded by the dialer's mu

	// turn is held while the API is read; callers that come meanwhile use the result.
	turn  chan struct{}
	group *group // guarded by turn

	mu         sync.Mutex
	chosen     *pod
	checked    time.Time
	unreadable time.Time
}

func newPodResolver(conn *transport.Conn, at *place) *podResolver {
	return &podResolver{conn: conn, at: at, turn: make(chan struct{}, 1)}
}

// resolve returns the pod and its port to dial for a port's number or name.
func (r *podResolver) resolve(ctx context.Context, port string) (path, pod string, number uint16, err error) {
	number, numeric, err := parsePort(port)
	if err != nil {
		return "", "", 0, err
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return "", "", 0, retry.ContextError(ctx)
	}
	if r.at.isPod() && numeric {
		return r.at.path, r.at.name, number, r.checkProtocol(ctx, number)
	}
	chosen, err := r.current(ctx)
	if err != nil {
		return "", "", 0, err
	}
	switch {
	case r.at.isService():
		number, err = r.group.podPort(r.at, port, chosen)
	case numeric:
		err = chosen.checkProtocol(number)
	default:
		number, err = chosen.port(port)
	}
	return r.at.pods(chosen.Metadata.Name), chosen.Metadata.Name, number, err
}

// checkProtocol returns an error if the pod declares the port for another protocol than TCP. A pod that cannot be read is
// not checked: who may forward its ports need not be allowed to read it, and if it does not exist the tunnel will say so.
func (r *podResolver) checkProtocol(ctx context.Context, number uint16) error {
	r.mu.Lock()
	known, unreadable := r.chosen, r.unreadable
	r.mu.Unlock()
	if known != nil && known.checkProtocol(number) == nil || known == nil && time.Since(unreadable) < unreadableAge {
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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unreadable = time.Now()
	return nil
}

// current returns the pod that was chosen, if it is still ready, or another.
func (r *podResolver) current(ctx context.Context) (*pod, error) {
	r.mu.Lock()
	chosen, fresh := r.chosen, time.Since(r.checked) < choiceAge
	r.mu.Unlock()
	if chosen != nil && fresh {
		return chosen, nil
	}
	chosen, err := r.choose(ctx, chosen)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.chosen, r.checked = chosen, time.Now()
	return chosen, nil
}

// choose reads the pod, or what has pods, and chooses among those unless the one that was chosen is still ready.
func (r *podResolver) choose(ctx context.Context, chosen *pod) (*pod, error) {
	if r.at.isPod() {
		chosen = new(pod)
		if err := get(ctx, r.conn, r.at.path, chosen); err != nil {
			return nil, fmt.Errorf("portforward: %w", err)
		}
		return chosen, nil
	}
	if chosen != nil {
		var now pod
		err := get(ctx, r.conn, r.at.pods(chosen.Metadata.Name), &now)
		if err == nil && now.ready() && now.Metadata.UID == chosen.Metadata.UID {
			return &now, nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("portforward: %w", err)
		}
	}
	found := new(group)
	if err := get(ctx, r.conn, r.at.path, found); err != nil {
		return nil, fmt.Errorf("portforward: %w", err)
	}
	selector, err := found.selector(r.at)
	if err != nil {
		return nil, fmt.Errorf("portforward: %w", err)
	}
	r.group = found
	return readyPod(ctx, r.conn, r.at, selector)
}

// forget has a pod chosen anew next time.
func (r *podResolver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.chosen = nil
}
