package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/simulate/internal/testing/broken"
	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/sharding"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/race"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/unstructured"
)

// shardedObjects is the number of ConfigMaps that three members divide.
const shardedObjects = 6

// reconciles are the running reconciles of all processes.
type reconciles struct {
	mu      sync.Mutex
	running map[types.NamespacedName]string // the name of the process
	overlap error
}

func (r *reconciles) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = map[types.NamespacedName]string{}
	r.overlap = nil
}

func (r *reconciles) begin(key types.NamespacedName, process string) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if holder := r.running[key]; holder != "" && r.overlap == nil {
		r.overlap = fmt.Errorf("%s reconciles %s at the same time as %s", process, key, holder)
	}
	r.running[key] = process
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.running[key] == process {
			delete(r.running, key)
		}
	}
}

// shardedMember is a member of a group whose reconciles take two seconds.
type shardedMember struct {
	name       string
	configMaps *dynamic.Resource
	objects    *cache.Cache[unstructured.Object]
	running    *reconciles
}

func (m *shardedMember) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	obj, found := m.objects.Get(key.Namespace, key.Name)
	if !found {
		return 0, nil
	}
	n, _, _ := unstructured.Get[string](obj, "data", "n")
	if seen, _, _ := unstructured.Get[string](obj, "data", "seen"); seen == n {
		return 0, nil
	}
	end := m.running.begin(key, m.name)
	defer end()
	select {
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	written := obj.DeepCopy()
	written.Object["data"] = map[string]any{"n": n, "seen": n}
	_, err := m.configMaps.Update(ctx, written, nil)
	return 0, err
}

// runShardedMember runs a member. With the defect, reconciles are for hashes that the member owns, but neither end at its deadline nor
// delay a handover.
func runShardedMember(ctx context.Context, p *Process, running *reconciles, isFenced bool) error {
	leases, err := p.Client.Resource(ctx, "leases.coordination.k8s.io")
	if err != nil {
		return err
	}
	configMaps, err := p.Client.Resource(ctx, "configmaps")
	if err != nil {
		return err
	}
	logger := slog.New(slog.DiscardHandler)
	group, err := sharding.New(leases.Namespace("default"), "members", &sharding.Options{Identity: p.Name, RetryPeriod: 4 * time.Second, Logger: logger})
	if err != nil {
		return err
	}
	return group.Run(ctx, func(ctx context.Context) error {
		opts := &controller.Options{Logger: logger, Workers: 2}
		cacheOpts := &cache.Options[unstructured.Object]{LabelSelector: "app=sharded"}
		if isFenced {
			opts.Sharding = group
			cacheOpts.Shard = shard.New(shard.UID)
		}
		m := &shardedMember{p.Name, configMaps.Namespace("default"), cache.New(configMaps.Namespace("default"), cacheOpts), running}
		handle := m.reconcile
		if !isFenced {
			fence, err := group.NewFence(func() {})
			if err != nil {
				return err
			}
			defer fence.Close()
			handle = func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
				if obj, found := m.objects.Get(key.Namespace, key.Name); found && !fence.Owns(shard.Hash(string(obj.GetUID()))) {
					return 5 * time.Second, nil
				}
				return m.reconcile(ctx, key)
			}
		}
		run := func(ctx context.Context) error { return controller.Run(ctx, m.objects, handle, opts) }
		if err := broken.RunWith(ctx, run, m.objects); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
}

func shardedScenario(isFenced bool) *Scenario {
	running := &reconciles{}
	server := apitest.Options{}
	for n := range shardedObjects {
		server.Objects = append(server.Objects, &unstructured.Object{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"n": "0"},
			"metadata": map[string]any{"name": fmt.Sprint("o", n), "namespace": "default", "labels": map[string]any{"app": "sharded"}},
		}})
	}
	change := func(n int) Step {
		return Step{fmt.Sprintf("changes all objects to %d", n), func(ctx context.Context, client *dynamic.Client) error {
			if n == 1 {
				running.reset()
			}
			configMaps, err := client.Resource(ctx, "configmaps")
			if err != nil {
				return err
			}
			for i := range shardedObjects {
				if err := patchObject(fmt.Sprint("o", i), fmt.Sprintf(`{"data":{"n":"%d"}}`, n))(ctx, configMaps.Namespace("default")); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	// A member that restarts takes dead members for alive for 15 seconds. If one of these would plan, and nobody has planned yet, the first
	// assignment is made then, and has effect another 15 seconds later.
	const quiet = 45 * time.Second
	return &Scenario{
		Server: server, Processes: 3, Quiet: quiet, Steps: []Step{change(1), change(2), change(3)},
		Run: func(ctx context.Context, p *Process) error { return runShardedMember(ctx, p, running, isFenced) },
		Check: func(context.Context, *dynamic.Client) error {
			running.mu.Lock()
			defer running.mu.Unlock()
			return running.overlap
		},
	}
}

// TestFind_BrokenFence finds members of a group that reconcile an object at the same time.
func TestFind_BrokenFence(t *testing.T) {
	race.Skip(t)
	failure := Find(t, shardedScenario(false), &Options{Seeds: 200, NoEnumeration: true})
	require.NotNil(t, failure)
	t.Log(failure)
	assert.ErrorContains(t, failure, "at the same time as")
}

func TestTest_ShardedController(t *testing.T) {
	Test(t, shardedScenario(true), &Options{Seeds: *seeds, FirstSeed: *firstSeed, NoEnumeration: true})
}
