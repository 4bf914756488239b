package restmapper_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMapper_LookupDoesNotAllocate(t *testing.T) {
	mapper, _ := serve(t, served)
	for _, name := range []string{
		"deployments", "deploy", "Deployment", "deployments.apps", "deployments.v1.apps", "Deployment.v1.apps", "deployments.app",
	} {
		_, err := mapper.Resource(t.Context(), name)
		require.NoError(t, err)
		ctx := t.Context()
		assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = mapper.Resource(ctx, name) }), name)
	}
	ctx := t.Context()
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = mapper.Kind(ctx, gvk) }))
}
