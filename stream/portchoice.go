package stream

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/anykind/anykind/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// choiceAge is how old may be what is known of a pod that was chosen: a burst of connections asks once.
const choiceAge = time.Second

// choices knows which pod serves a name. It is safe for concurrent use.
type choices struct {
	conn *transport.Conn
	at   *place

	// turn is held while the API is asked: those who come meanwhile use the answer.
	turn    chan struct{}
	mu      sync.Mutex
	group   *group
	chosen  *pod
	checked time.Time
}

func newChoices(conn *transport.Conn, at *place) *choices {
	return &choices{conn: conn, at: at, turn: make(chan struct{}, 1)}
}

// pod finds the pod and its port to dial, which is port's number or name.
func (c *choices) pod(ctx context.Context, port string) (path, name string, number uint16, err error) {
	number, numeric := portNumber(port)
	if c.at.isPod() && numeric {
		return c.at.path, c.at.name, number, nil
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return "", "", 0, ended(ctx, ctx.Err())
	}
	chosen, err := c.current(ctx)
	if err != nil {
		return "", "", 0, err
	}
	switch {
	case c.at.isService():
		number, err = c.group.podPort(c.at, port, chosen)
	case !numeric:
		number, err = chosen.port(port)
	}
	return c.at.pods(chosen.Metadata.Name), chosen.Metadata.Name, number, err
}

// current is the pod that was chosen, if it is still ready, or another.
func (c *choices) current(ctx context.Context) (*pod, error) {
	c.mu.Lock()
	chosen, fresh := c.chosen, time.Since(c.checked) < choiceAge
	c.mu.Unlock()
	if chosen != nil && fresh {
		return chosen, nil
	}
	chosen, err := c.renewed(ctx, chosen)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chosen, c.checked = chosen, time.Now()
	return chosen, nil
}

// renewed asks the API for the pod, or for what has pods.
func (c *choices) renewed(ctx context.Context, chosen *pod) (*pod, error) {
	if c.at.isPod() {
		chosen = new(pod)
		if err := get(ctx, c.conn, c.at.path, chosen); err != nil {
			return nil, fmt.Errorf("portforward: %w", err)
		}
		return chosen, nil
	}
	if chosen != nil {
		var now pod
		err := get(ctx, c.conn, c.at.pods(chosen.Metadata.Name), &now)
		if err == nil && now.ready() && now.Metadata.UID == chosen.Metadata.UID {
			return &now, nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("portforward: %w", err)
		}
	}
	found := new(group)
	if err := get(ctx, c.conn, c.at.path, found); err != nil {
		return nil, fmt.Errorf("portforward: %w", err)
	}
	selector, err := found.selector(c.at)
	if err != nil {
		return nil, fmt.Errorf("portforward: %w", err)
	}
	c.group = found
	return choose(ctx, c.conn, c.at, selector)
}

// forget asks anew next time.
func (c *choices) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chosen = nil
}
