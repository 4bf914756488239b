package fleet

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// cluster is a member of a fleet, until it is removed. A cluster that is added again is a new member.
type cluster struct {
	fleet *Fleet
	name  string
	// ctx ends with the cause cache.ErrRemoved when the cluster is removed.
	ctx    context.Context //nolint:containedctx // the lifetime of the member
	cancel context.CancelCauseFunc

	mu         sync.Mutex
	cfg        *transport.Config
	cfgErr     error // in place of cfg
	connection *connection
}

// connection is a client of a configuration, or the error of opening it.
type connection struct {
	conn     *transport.Conn
	client   *dynamic.Client
	err      error
	opened   time.Time       // before the call of Options.Open
	server   string          // resourceVersions hold for this server alone
	replaced context.Context //nolint:containedctx // ends after a change of the configuration
	replace  context.CancelFunc
}

// errReplaced is the cause of the end of streams of a replaced connection.
var errReplaced = errors.New("the configuration of the cluster has changed")

// temporaryClient returns a client with a discovery of its own.
func (c *connection) temporaryClient() *dynamic.Client { return dynamic.New(c.conn, nil) }

// close closes the idle connections.
func (c *connection) close() {
	if c.client != nil {
		c.client.Close()
	}
}

func newCluster(f *Fleet, name string, cfg *transport.Config, cfgErr error) *cluster {
	c := &cluster{fleet: f, name: name, cfg: cfg, cfgErr: cfgErr}
	c.ctx, c.cancel = context.WithCancelCause(context.Background()) //nolint:forbidigo // until remove
	return c
}

// connect returns the current connection, opened if needed. Open may read files, so it is called again after an error, once the shortest
// delay of a failed stream has passed. For a removed cluster connect returns nil: nobody would close the connection.
func (c *cluster) connect() *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil
	}
	last := c.connection
	if last != nil && (last.err == nil || c.cfgErr != nil || time.Since(last.opened) < streamBackoff.Min) {
		return last
	}
	next := c.open()
	if last != nil { // streams that wait after its error end their wait when the configuration changes
		next.replaced = last.replaced
		next.replace = last.replace
	} else {
		next.replaced, next.replace = context.WithCancel(context.Background()) //nolint:forbidigo // until disconnect
	}
	c.connection = next
	return next
}

// open returns a connection of the configuration. It is called with c.mu.
func (c *cluster) open() *connection {
	next := &connection{opened: time.Now(), err: c.cfgErr}
	if c.cfgErr == nil {
		cfg := *c.cfg
		next.server = cfg.Server
		next.conn, next.err = c.fleet.opts.Open(c.name, &cfg)
	}
	if next.err != nil {
		next.err = fmt.Errorf("connect to cluster %q: %w", c.name, next.err)
		return next
	}
	next.client = dynamic.New(next.conn, nil)
	return next
}

// set replaces the configuration. An equal configuration changes nothing.
func (c *cluster) set(cfg *transport.Config, cfgErr error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cfgErr == nil && c.cfgErr == nil && isSameConfig(c.cfg, cfg) {
		return
	}
	c.cfg = cfg
	c.cfgErr = cfgErr
	c.disconnect()
}

// remove ends the member: first the ctx of its reconciles, then its streams.
func (c *cluster) remove() {
	c.cancel(cache.ErrRemoved)
	c.close()
}

func (c *cluster) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disconnect()
}

// disconnect is called with c.mu.
func (c *cluster) disconnect() {
	if c.connection == nil {
		return
	}
	c.connection.replace()
	c.connection.close()
	c.connection = nil
}

// isSameConfig reports whether two configurations are equal. Functions are never equal, except those of OIDC. The current tokens of
// OIDC do not count: the connection itself refreshes them.
func isSameConfig(a, b *transport.Config) bool {
	first := *a
	second := *b
	first.OIDC = withoutTokens(a.OIDC)
	second.OIDC = withoutTokens(b.OIDC)
	return reflect.DeepEqual(first, second)
}

func withoutTokens(oidc *transport.OIDC) *transport.OIDC {
	if oidc == nil {
		return nil
	}
	stable := *oidc
	stable.IDToken = kubeconfig.Secret{}
	stable.RefreshToken = kubeconfig.Secret{}
	stable.LoadTokens = nil
	stable.SaveTokens = nil
	return &stable
}
