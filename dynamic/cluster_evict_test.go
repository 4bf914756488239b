package dynamic_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// guarded is a running pod whose budget lets nobody evict it. The statuses are those that controllers would write.
func guarded(t *testing.T, client *dynamic.Client, namespace string) (pods, budgets *dynamic.Resource) {
	t.Helper()
	pods = podIn(t, client, namespace, "web")
	_, err := pods.Sub("status").Patch(t.Context(), "web", types.MergePatchType,
		[]byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`), nil)
	require.NoError(t, err)
	budgets = resource(t, client, "pdb").In(namespace)
	_, err = budgets.Create(t.Context(), named("guard", map[string]any{
		"minAvailable": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
	}), nil)
	require.NoError(t, err)
	_, err = budgets.Sub("status").Patch(t.Context(), "guard", types.MergePatchType,
		[]byte(`{"status":{"observedGeneration":1,"disruptionsAllowed":0,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1}}`), nil)
	require.NoError(t, err)
	return pods, budgets
}

func TestARealBudgetBlocksAnEvictionUntilItAllowsIt(t *testing.T) {
	client, namespace := newNamespace(t)
	pods, budgets := guarded(t, client, namespace)
	err := pods.Evict(t.Context(), "web", nil)
	var disruption *dynamic.DisruptionError
	require.ErrorAs(t, err, &disruption)
	assert.Equal(t, []string{"The disruption budget guard needs 1 healthy pods and has 1 currently"}, disruption.Causes)
	assert.True(t, apierrors.IsTooManyRequests(err))

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err = pods.Evict(ctx, "web", &dynamic.EvictOptions{Retry: true})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "The disruption budget guard needs 1 healthy pods and has 1 currently")

	// The budget goes when the eviction has been refused once more.
	refusals := make(chan struct{}, 100)
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	cfg.Observe = func(_ context.Context, attempt transport.Attempt) {
		if attempt.Resource == "pods/eviction" && attempt.Code == http.StatusTooManyRequests {
			refusals <- struct{}{}
		}
	}
	watched, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(watched.Close)
	watchedPods := resource(t, watched, "pods").In(namespace)
	done := make(chan error, 1)
	go func() {
		done <- watchedPods.Evict(t.Context(), "web", &dynamic.EvictOptions{Retry: true})
	}()
	<-refusals
	_, err = budgets.Delete(t.Context(), "guard", nil)
	require.NoError(t, err)
	require.NoError(t, <-done)
	_, err = pods.Get(t.Context(), "web", nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	err = pods.Evict(t.Context(), "web", &dynamic.EvictOptions{Retry: true})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestADryEvictionEvictsNothing(t *testing.T) {
	client, namespace := newNamespace(t)
	pods := podIn(t, client, namespace, "web")
	for _, opts := range []*metav1.DeleteOptions{
		{DryRun: []string{metav1.DryRunAll}},
		{Preconditions: &metav1.Preconditions{ResourceVersion: new("1")}},
	} {
		err := pods.Evict(t.Context(), "web", &dynamic.EvictOptions{DeleteOptions: opts})
		assert.Equal(t, opts.Preconditions != nil, apierrors.IsConflict(err), "%v", err)
		_, err = pods.Get(t.Context(), "web", nil)
		require.NoError(t, err)
	}
}
