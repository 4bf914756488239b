package storagemigration_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/storagemigration"
)

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
		t.Skip("the server does not serve storagemigration.k8s.io: Kubernetes 1.37 does, 1.36 with SANDBOX_FLAGS=" +
			"'--feature-gates StorageVersionMigrator=true --runtime-config storagemigration.k8s.io/v1beta1=true'")
	}
	require.NoError(t, err)
	assert.Equal(t, &storagemigration.Result{StorageVersion: "v2", Objects: 5, ByServer: true, Pruned: []string{"v1"}}, result)
	assert.Equal(t, map[string]int{"v2": 5}, count(e.stored(t)))
	assert.Equal(t, []string{"v2"}, e.storedVersions(t))
	for left, err := range migrations.Metadata().List(t.Context(), nil) {
		require.NoError(t, err)
		assert.Fail(t, "a migration is left", left.GetName())
	}
}
