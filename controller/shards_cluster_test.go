package controller_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/sharding"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/unstructured"
)

// ownerMember is a member that keeps a Secret for each owner, a ConfigMap.
type ownerMember struct {
	t             *testing.T
	owners, owned *cache.Cache[unstructured.Object]
	secrets       *dynamic.Resource
	mu            *sync.Mutex
	busy          map[types.NamespacedName]*ownerMember // of all members
	cancel        context.CancelFunc
	ended         chan error
}

func (m *ownerMember) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	m.mu.Lock()
	assert.Nil(m.t, m.busy[key], "reconciles of %s at the same time", key)
	m.busy[key] = m
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.busy, key)
	}()
	owner, found := m.owners.Get(key.Namespace, key.Name)
	if _, hasSecret := m.owned.Get(key.Namespace, key.Name); !found || hasSecret {
		return 0, nil
	}
	secret := object("Secret", key.Name)
	secret.SetLabels(owner.GetLabels())
	secret.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: key.Name, UID: owner.GetUID(), Controller: new(true)}})
	// An error AlreadyExists would show that the cache of owned objects lacks a write of the previous member.
	_, err := m.secrets.Namespace(key.Namespace).Create(ctx, secret, nil)
	if ctx.Err() == nil {
		assert.NoError(m.t, err)
	}
	return 0, err
}

// namespacesOf returns the namespaces of a cache's objects.
func namespacesOf(c *cache.Cache[unstructured.Object]) []string {
	found := map[string]bool{}
	for _, obj := range c.List("", nil) {
		found[obj.GetNamespace()] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// has reports whether the member has the owners and the Secrets of exactly these namespaces.
func (m *ownerMember) has(namespaces []string) bool {
	return slices.Equal(namespaces, namespacesOf(m.owners)) && slices.Equal(namespaces, namespacesOf(m.owned))
}

// TestRun_MembersDivideNamespaces shares owners and their Secrets between two members by namespace.
func TestRun_MembersDivideNamespaces(t *testing.T) {
	var namespaces []string
	var client *dynamic.Client
	for range 4 {
		connected, namespace := controllertest.NewNamespace(t)
		client = connected
		namespaces = append(namespaces, namespace)
	}
	slices.Sort(namespaces)
	configMaps := controllertest.Resource(t, client, "configmaps").AllNamespaces()
	secrets := controllertest.Resource(t, client, "secrets").AllNamespaces()
	label := namespaces[0]
	for _, namespace := range namespaces {
		createConfigMap(t, client, namespace, map[string]any{"name": "owner", "labels": map[string]any{"work": label}})
	}
	var mu sync.Mutex
	busy := map[types.NamespacedName]*ownerMember{}
	start := func() *ownerMember {
		group, err := sharding.New(controllertest.Resource(t, client, "leases.coordination.k8s.io").Namespace(label), "work", &sharding.Options{
			By: shard.Namespace, Namespaces: func(context.Context) ([]string, error) { return namespaces, nil },
			LeaseDuration: 2 * time.Second, RenewDeadline: 1500 * time.Millisecond, RetryPeriod: 150 * time.Millisecond,
		})
		require.NoError(t, err)
		opts := &cache.Options[unstructured.Object]{Shard: shard.New(shard.Namespace), LabelSelector: "work=" + label}
		m := &ownerMember{t: t, owners: cache.New(configMaps, opts), owned: cache.New(secrets, opts), mu: &mu, busy: busy, ended: make(chan error, 1)}
		m.secrets = m.owned.TrackWrites(secrets)
		var ctx context.Context
		ctx, m.cancel = context.WithCancel(t.Context())
		go func() {
			m.ended <- group.Run(ctx, func(ctx context.Context) error {
				var cached sync.WaitGroup
				defer cached.Wait()
				cached.Go(func() { _ = m.owners.Run(ctx) })
				cached.Go(func() { _ = m.owned.Run(ctx) })
				return controller.Run(ctx, m.owners, m.reconcile, &controller.Options{
					Sharding: group, Workers: 4, Triggers: []controller.Trigger{controller.Owns(m.owned, configMaps)},
				})
			})
		}()
		return m
	}
	eventually := func(condition func() bool, text string) {
		t.Helper()
		require.Eventually(t, condition, controllertest.Timeout, 5*time.Millisecond, text)
	}
	one := start()
	eventually(func() bool { return one.has(namespaces) }, "one has all namespaces")
	two := start()
	divided := func() bool {
		first := namespacesOf(one.owners)
		second := namespacesOf(two.owners)
		return len(first) > 0 && len(second) > 0 && len(first)+len(second) == len(namespaces) && one.has(first) && two.has(second)
	}
	eventually(divided, "each has the owners and the Secrets of its namespaces")
	old := map[string]types.UID{}
	for _, namespace := range namespaces {
		secret, err := secrets.Namespace(namespace).Get(t.Context(), "owner", nil)
		require.NoError(t, err)
		old[namespace] = secret.GetUID()
		_, err = secrets.Namespace(namespace).Delete(t.Context(), "owner", nil)
		require.NoError(t, err)
	}
	eventually(func() bool {
		for _, namespace := range namespaces {
			secret, err := secrets.Namespace(namespace).Get(t.Context(), "owner", nil)
			if err != nil || secret.GetUID() == old[namespace] {
				return false
			}
		}
		return divided()
	}, "each recreates its Secrets")
	one.cancel()
	require.ErrorIs(t, <-one.ended, context.Canceled)
	eventually(func() bool { return two.has(namespaces) }, "two has all namespaces")
	two.cancel()
	require.ErrorIs(t, <-two.ended, context.Canceled)
}
