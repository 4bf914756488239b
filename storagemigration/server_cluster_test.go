package storagemigration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/storagemigration"
	"github.com/anykind/anykind/unstructured"
)

const skipText = "the server does not serve storagemigration.k8s.io: Kubernetes 1.37 does, 1.36 with SANDBOX_FLAGS=" +
	"'--feature-gates StorageVersionMigrator=true --runtime-config storagemigration.k8s.io/v1beta1=true'"

func TestMigrate_ByServer(t *testing.T) {
	t.Parallel()
	cluster.NeedComponents(t, cluster.ControllerManager)
	e := newEnvironment(t)
	e.create(t, "v1", 5)
	e.setStorage(t, "v2")
	result, err := storagemigration.Migrate(t.Context(), e.client, e.name, &storagemigration.Options{Method: storagemigration.ByServer})
	migrations, notServed := e.client.Resource(t.Context(), "storageversionmigrations.storagemigration.k8s.io")
	var noMatch *restmapper.NoMatchError
	if errors.As(notServed, &noMatch) {
		require.ErrorContains(t, err, "the server does not serve StorageVersionMigrations")
		result, err = storagemigration.Migrate(t.Context(), e.client, e.name, nil)
		require.NoError(t, err)
		assert.Equal(t, 5, result.Rewritten)
		t.Skip(skipText)
	}
	require.NoError(t, err)
	assert.Equal(t, &storagemigration.Result{StorageVersion: "v2", Objects: 5, ByServer: true, Pruned: []string{"v1"}}, result)
	assert.Equal(t, map[string]int{"v2": 5}, count(e.stored(t)))
	assert.Equal(t, []string{"v2"}, e.storedVersions(t))
	assert.Equal(t, "False", e.migrating(t), "the condition StorageMigrating of the definition")
	for left, err := range migrations.Metadata().List(t.Context(), nil) {
		require.NoError(t, err)
		assert.NotContains(t, left.GetName(), e.uid(t), "a migration is left")
	}
}

// migrating returns the status of the definition's condition StorageMigrating.
func (e *environment) migrating(t *testing.T) string {
	t.Helper()
	obj, err := e.definitions.Get(t.Context(), e.name, nil)
	require.NoError(t, err)
	status, _, err := unstructured.Get[string](obj, "status", "conditions", "[type=StorageMigrating]", "status")
	require.NoError(t, err)
	return status
}

func TestMigrate_ServerFails(t *testing.T) {
	t.Parallel()
	cluster.NeedComponents(t, cluster.ControllerManager)
	e := newEnvironment(t)
	if _, err := e.client.Resource(t.Context(), "storageversionmigrations.storagemigration.k8s.io"); err != nil {
		t.Skip(skipText)
	}
	e.create(t, "v1", 2)
	e.setStorage(t, "v2")
	e.denyUpdates(t, "v1-1")
	result, err := storagemigration.Migrate(t.Context(), e.client, e.name, nil)
	require.ErrorContains(t, err, "the server's StorageVersionMigration failed: ")
	require.ErrorContains(t, err, "not by migrations")
	require.ErrorContains(t, err, "status.storedVersions keeps [v1 v2]")
	assert.False(t, result.ByServer)
	assert.Equal(t, "False", e.migrating(t), "the condition StorageMigrating of the definition")
	assert.Equal(t, []string{"v1", "v2"}, e.storedVersions(t))
}

// TestMigrate_ServerFailsAfterInterruption repeats an interrupted call whose migration fails in the meantime.
func TestMigrate_ServerFailsAfterInterruption(t *testing.T) {
	t.Parallel()
	cluster.NeedComponents(t, cluster.ControllerManager)
	e := newEnvironment(t)
	if _, err := e.client.Resource(t.Context(), "storageversionmigrations.storagemigration.k8s.io"); err != nil {
		t.Skip(skipText)
	}
	e.create(t, "v1", 2)
	e.setStorage(t, "v2")
	removePolicy := e.denyUpdates(t, "v1-1")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := storagemigration.Migrate(ctx, e.client, e.name, &storagemigration.Options{Method: storagemigration.ByServer})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = e.definitions.Wait(t.Context(), e.name, dynamic.ConditionIs("StorageMigrating", "False"))
	require.NoError(t, err)
	t.Logf("status.storedVersions after the failed migration: %v", e.storedVersions(t))
	_, err = storagemigration.Migrate(t.Context(), e.client, e.name, byClient)
	require.ErrorContains(t, err, "not by migrations")
	removePolicy()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err = storagemigration.Migrate(t.Context(), e.client, e.name, byClient)
		require.NoError(c, err)
	}, time.Minute, 100*time.Millisecond)
	assert.Equal(t, map[string]int{"v2": 2}, count(e.stored(t)))
}

// TestMigrate_ServerDoesNotRun stops the controller of StorageVersionMigrations.
func TestMigrate_ServerDoesNotRun(t *testing.T) {
	cluster.NeedComponents(t, cluster.ControllerManager)
	e := newEnvironment(t)
	if _, err := e.client.Resource(t.Context(), "storageversionmigrations.storagemigration.k8s.io"); err != nil {
		t.Skip(skipText)
	}
	cluster.Stop(t, cluster.ControllerManager)
	before := *storagemigration.StartDelay
	*storagemigration.StartDelay = time.Second
	t.Cleanup(func() { *storagemigration.StartDelay = before })
	e.create(t, "v1", 2)
	e.setStorage(t, "v2")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := storagemigration.Migrate(ctx, e.client, e.name, &storagemigration.Options{Method: storagemigration.ByServer})
	require.ErrorIs(t, err, context.DeadlineExceeded) // the migration is left
	_, err = storagemigration.Migrate(t.Context(), e.client, e.name, &storagemigration.Options{Method: storagemigration.ByServer})
	require.ErrorContains(t, err, "kube-controller-manager does not run the controller")
	require.NotErrorIs(t, err, context.Canceled)
	assert.Equal(t, []string{"v1", "v2"}, e.storedVersions(t))
	result, err := storagemigration.Migrate(t.Context(), e.client, e.name, nil)
	require.NoError(t, err)
	assert.Equal(t, &storagemigration.Result{StorageVersion: "v2", Objects: 2, Rewritten: 2, Pruned: []string{"v1"}}, result)
}
