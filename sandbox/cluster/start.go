//go:build unix

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anykind/anykind/sandbox/internal/build"
	"github.com/anykind/anykind/sandbox/internal/pagecache"
	"github.com/anykind/anykind/sandbox/internal/progress"
)

// maxStartAttempts limits the attempts of a start: a different program may take a chosen port.
const maxStartAttempts = 3

// Start builds missing programs, starts the cluster and returns once it is ready. ctx only bounds the start: if it ends first,
// everything is stopped again. Afterwards the cluster runs until Stop, or until this process ends.
func Start(ctx context.Context, opts *Options) (*Cluster, error) {
	o, err := opts.Complete()
	if err != nil {
		return nil, fmt.Errorf("start cluster: %w", err)
	}
	report := progress.New(o.Progress)
	cache, err := o.build(ctx, report)
	if err != nil {
		return nil, fmt.Errorf("start cluster: %w", err)
	}
	for _, component := range o.Components {
		pagecache.ReadHuge(cache.Path(o.binary(component)))
	}
	for attempt := 1; ; attempt++ {
		c, err := startOnce(ctx, o, cache, report)
		if err == nil {
			return c, nil
		}
		var died *DiedError
		if attempt == maxStartAttempts || !errors.As(err, &died) || !died.addressInUse() {
			return nil, fmt.Errorf("start cluster: %w", err)
		}
		report.Printf("another program took a port of %s; trying other ports", died.Component)
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

// startAll starts the layers in sequence, and the members of a layer concurrently.
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

// bootstrap creates the role of the user "limited" and the nodes.
func (c *Cluster) bootstrap(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, errNotReady)
	defer cancel()
	// Role and binding need the namespace. The API server creates it.
	if err := poll(ctx, c.done, c.httpsProbe(c.serverURL()+"/api/v1/namespaces/default")); err != nil {
		return c.waitError(err, "wait for namespace default")
	}
	const group, path = "rbac.authorization.k8s.io", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/"
	metadata := map[string]string{"name": "limited", "namespace": "default"}
	err := c.create(ctx, path+"roles", map[string]any{
		"apiVersion": group + "/v1", "kind": "Role", "metadata": metadata,
		"rules": []map[string][]string{{"apiGroups": {""}, "resources": {"configmaps"}, "verbs": {"get", "list", "watch"}}},
	})
	if err != nil {
		return err
	}
	err = c.create(ctx, path+"rolebindings", map[string]any{
		"apiVersion": group + "/v1", "kind": "RoleBinding", "metadata": metadata,
		"roleRef":  map[string]string{"apiGroup": group, "kind": "Role", "name": "limited"},
		"subjects": []map[string]string{{"apiGroup": group, "kind": "User", "name": "limited"}},
	})
	if err != nil || !c.options.has(Nodes) {
		return err
	}
	return c.createNodes(ctx)
}

// waitUsable waits for the default service account, required for creating pods, and for the nodes to be ready.
func (c *Cluster) waitUsable(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, errNotReady)
	defer cancel()
	if c.options.has(ControllerManager) {
		if err := poll(ctx, c.done, c.httpsProbe(c.serverURL()+"/api/v1/namespaces/default/serviceaccounts/default")); err != nil {
			return c.waitError(err, "wait for the default service account")
		}
	}
	if c.options.has(Nodes) {
		for i := range c.options.Nodes {
			if err := poll(ctx, c.done, c.nodeReady(i)); err != nil {
				return c.waitError(err, "wait for the nodes")
			}
		}
	}
	return nil
}

// Build builds the programs of Start for the same options.
func Build(ctx context.Context, opts *Options) error {
	o, err := opts.Complete()
	if err != nil {
		return err
	}
	_, err = o.build(ctx, progress.New(o.Progress))
	return err
}

func (o *Options) build(ctx context.Context, report *progress.Report) (*build.Cache, error) {
	cache, err := build.OpenCache(o.CacheDir)
	if err != nil {
		return nil, err
	}
	var binaries []build.Binary
	for _, c := range o.Components {
		binaries = append(binaries, o.binary(c))
	}
	return cache, cache.Build(ctx, report, binaries...)
}
