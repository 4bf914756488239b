//go:build unix

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anykind/anykind/sandbox/internal/build"
	"github.com/anykind/anykind/sandbox/internal/progress"
)

// startAttempts is how often a start is tried when another program takes one of
// the chosen ports first.
const startAttempts = 3

// Start builds what is missing, starts the cluster and returns once it is ready
// to use. ctx governs the start alone: when it ends first, everything is taken
// down again. Afterwards the cluster lives until Stop, or as long as this
// process.
func Start(ctx context.Context, opts *Options) (*Cluster, error) {
	o, err := opts.Complete()
	if err != nil {
		return nil, fmt.Errorf("starting the sandbox: %w", err)
	}
	report := progress.New(o.Progress)
	cache, err := o.build(ctx, report)
	if err != nil {
		return nil, fmt.Errorf("starting the sandbox: %w", err)
	}
	for attempt := 1; ; attempt++ {
		c, err := startOnce(ctx, o, cache, report)
		if err == nil {
			return c, nil
		}
		var died *DiedError
		if attempt == startAttempts || !errors.As(err, &died) || !died.addressInUse() {
			return nil, fmt.Errorf("starting the sandbox: %w", err)
		}
		report.Say("another program took a port %s was to use; trying other ports", died.Component)
	}
}

func startOnce(ctx context.Context, o *Options, cache *build.Cache, report *progress.Report) (_ *Cluster, err error) {
	began := time.Now()
	c, err := newCluster(o, cache)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
		}
	}()
	step := report.Begin("starting Kubernetes %s (%s)", o.KubernetesVersion, joinComponents(o.processes()))
	defer func() { step.End(err) }()
	if err := c.startAll(ctx); err != nil {
		return nil, err
	}
	if err := c.serveControl(); err != nil {
		return nil, err
	}
	o.Log.InfoContext(ctx, "sandbox is ready", "dir", c.Dir, "kubernetes", o.KubernetesVersion, "took", time.Since(began))
	return c, nil
}

// startAll starts the layers one after another; what is in a layer starts at
// once.
func (c *Cluster) startAll(ctx context.Context) error {
	etcd, servers, rest := c.layers()
	if err := c.startLayer(ctx, etcd); err != nil {
		return err
	}
	if err := c.startLayer(ctx, servers); err != nil {
		return err
	}
	if err := c.bootstrap(ctx); err != nil {
		return err
	}
	if err := c.startLayer(ctx, rest); err != nil {
		return err
	}
	return c.waitUsable(ctx)
}

func (c *Cluster) layers() (etcd, servers, rest []*member) {
	for _, m := range c.members {
		switch m.component {
		case Etcd:
			etcd = append(etcd, m)
		case APIServer:
			servers = append(servers, m)
		default:
			rest = append(rest, m)
		}
	}
	return etcd, servers, rest
}

func (c *Cluster) startLayer(ctx context.Context, layer []*member) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, len(layer))
	for _, m := range layer {
		go func() { results <- c.start(ctx, m) }()
	}
	var first error
	for range layer {
		if err := <-results; err != nil && first == nil {
			first = err
			cancel()
		}
	}
	return first
}
