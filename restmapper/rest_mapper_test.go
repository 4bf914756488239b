package restmapper_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/restmapper"
)

// The results of the RESTMapper are compared with client-go's, name by name, in the bench module.

func TestRESTMapper_CompletesResourcesAndKinds(t *testing.T) {
	lines := served + `
cluster r.example.com/v1 robots robot Robot rb
cluster r.example.com/v1 androids android Robot
k.example.com/v1 kindless kindless - kl`
	m, _ := serve(t, lines)
	mapper := m.RESTMapper(t.Context())
	gvr, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: "deploy"})
	require.NoError(t, err)
	assert.Equal(t, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, gvr)
	gvk, err := mapper.KindFor(schema.GroupVersionResource{Resource: "widgets"})
	require.NoError(t, err, "here the first group wins, as in client-go")
	assert.Equal(t, schema.GroupVersionKind{Group: "a.example.com", Version: "v1", Kind: "Widget"}, gvk)
	gvrs, err := mapper.ResourcesFor(schema.GroupVersionResource{Resource: "widgets"})
	require.NoError(t, err)
	assert.Len(t, gvrs, 2)
	kinds, err := mapper.KindsFor(schema.GroupVersionResource{Group: "apps", Resource: "deployments"})
	require.NoError(t, err)
	assert.Len(t, kinds, 2)
	singular, err := mapper.ResourceSingularizer("deployments")
	require.NoError(t, err)
	assert.Equal(t, "deployment", singular)

	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "r.example.com", Kind: "Robot"})
	require.NoError(t, err)
	assert.Equal(t, meta.RESTScopeNameRoot, mapping.Scope.Name())
	mapping, err = mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v1beta1", "v1")
	require.NoError(t, err)
	assert.Equal(t, "v1beta1", mapping.Resource.Version, "the caller's order wins")
	assert.Equal(t, meta.RESTScopeNameNamespace, mapping.Scope.Name())
	for _, kind := range []schema.GroupKind{{Kind: "List"}, {Group: "apps", Kind: "DeploymentList"}} {
		_, err = mapper.RESTMapping(kind, "v1")
		require.NoError(t, err, "kubectl and Helm map the kinds of files")
	}
	gvrs, err = mapper.ResourcesFor(schema.GroupVersionResource{Version: "__internal", Resource: "ev"})
	require.NoError(t, err)
	assert.Equal(t, []schema.GroupVersionResource{
		{Version: "v1", Resource: "events"}, {Group: "events.k8s.io", Version: "v1", Resource: "events"},
	}, gvrs)
	for _, name := range []string{"kindless", "kl"} {
		_, err = mapper.ResourceFor(schema.GroupVersionResource{Resource: name})
		assert.True(t, meta.IsNoMatchError(err), "%v", err)
		_, err = mapper.KindFor(schema.GroupVersionResource{Resource: name})
		assert.True(t, meta.IsNoMatchError(err), "%v", err)
		_, err = mapper.ResourceSingularizer(name)
		assert.True(t, meta.IsNoMatchError(err), "%v", err)
	}
	_, err = m.Resource(t.Context(), "kindless")
	require.NoError(t, err, "it may have subresources")
	for _, versions := range [][]string{nil, {""}, {"__internal"}} {
		mappings, err := mapper.RESTMappings(schema.GroupKind{Group: "apps", Kind: "List"}, versions...)
		require.NoError(t, err)
		for _, mapping := range mappings {
			assert.Equal(t, "apps", mapping.Resource.Group)
		}
		mappings, err = mapper.RESTMappings(schema.GroupKind{Group: "r.example.com", Kind: "Robot"}, versions...)
		require.NoError(t, err)
		require.Len(t, mappings, 1)
		assert.Equal(t, "androids", mappings[0].Resource.Resource, "the later of two, as in client-go")
	}
	_, err = mapper.ResourceFor(schema.GroupVersionResource{})
	require.Error(t, err)
}

// TestRESTMapper_ErrorsAreApimachinerys checks the types themselves: cli-runtime and kubectl assert them and do not
// unwrap.
func TestRESTMapper_ErrorsAreApimachinerys(t *testing.T) {
	lines := served + "\nr.example.com/v1 robots robots Robot\nr.example.com/v1 cyborgs robots Cyborg"
	m, _ := serve(t, lines)
	mapper := m.RESTMapper(t.Context())

	deployment := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	_, err := mapper.RESTMapping(deployment, "v2")
	assert.Equal(t, &meta.NoKindMatchError{GroupKind: deployment, SearchedVersions: []string{"v2"}}, err)
	_, err = mapper.RESTMappings(schema.GroupKind{Kind: "Nothing"})
	assert.Equal(t, &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Nothing"}}, err)

	partial := schema.GroupVersionResource{Resource: "deploymnets"}
	for range 2 { // asked, and remembered
		_, err = mapper.KindFor(partial)
		assert.Equal(t, &meta.NoResourceMatchError{PartialResource: partial}, err)
		_, err = mapper.ResourceFor(partial)
		assert.Equal(t, &meta.NoResourceMatchError{PartialResource: partial}, err)
	}
	singular, err := mapper.ResourceSingularizer("deploymnets")
	assert.Equal(t, &meta.NoResourceMatchError{PartialResource: partial}, err)
	assert.Equal(t, "deploymnets", singular)

	_, err = mapper.ResourceFor(schema.GroupVersionResource{Resource: "robots"})
	var ambiguous *meta.AmbiguousResourceError
	require.ErrorAs(t, err, &ambiguous)
	assert.Len(t, ambiguous.MatchingResources, 2)
	_, err = mapper.KindFor(schema.GroupVersionResource{Resource: "robots"})
	require.ErrorAs(t, err, &ambiguous)
	assert.Len(t, ambiguous.MatchingKinds, 2)
}

func TestRESTMapper_MissesOfVersionsAreSeparate(t *testing.T) {
	lines := served + "\nstale s.example.com/v2 gears gear Gear"
	m, _ := serve(t, lines)
	mapper := m.RESTMapper(t.Context())
	kind := schema.GroupKind{Group: "s.example.com", Kind: "Wheel"}
	_, err := mapper.RESTMapping(kind, "v2")
	var unavailable *restmapper.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	_, err = mapper.RESTMapping(kind, "v1")
	assert.True(t, meta.IsNoMatchError(err), "%v", err)
}

func TestRESTMapper_ResetRefreshesAtNextCall(t *testing.T) {
	m, server := serve(t, served+"\nr.example.com/v1 robots robot Robot rb")
	mapper := m.RESTMapper(t.Context())
	robots := schema.GroupVersionResource{Resource: "robots"}
	_, err := mapper.ResourceFor(robots)
	require.NoError(t, err)
	server.Serve(served)
	_, err = mapper.ResourceFor(robots)
	require.NoError(t, err)
	meta.MaybeResetRESTMapper(mapper)
	assert.Equal(t, 1, server.Discoveries())
	_, err = mapper.ResourceFor(robots)
	assert.True(t, meta.IsNoMatchError(err), "%v", err)
}

// resettableRESTMapperWithContext has the methods of meta.ResettableRESTMapperWithContext, which older versions of
// apimachinery lack.
type resettableRESTMapperWithContext interface {
	KindForWithContext(context.Context, schema.GroupVersionResource) (schema.GroupVersionKind, error)
	KindsForWithContext(context.Context, schema.GroupVersionResource) ([]schema.GroupVersionKind, error)
	ResourceForWithContext(context.Context, schema.GroupVersionResource) (schema.GroupVersionResource, error)
	ResourcesForWithContext(context.Context, schema.GroupVersionResource) ([]schema.GroupVersionResource, error)
	RESTMappingWithContext(context.Context, schema.GroupKind, ...string) (*meta.RESTMapping, error)
	RESTMappingsWithContext(context.Context, schema.GroupKind, ...string) ([]*meta.RESTMapping, error)
	ResourceSingularizerWithContext(context.Context, string) (string, error)
	ResetWithContext(context.Context)
}

func TestRESTMapper_UsesCallersContext(t *testing.T) {
	m, _ := serve(t, served)
	mapper, ok := m.RESTMapper(t.Context()).(resettableRESTMapperWithContext)
	require.True(t, ok)
	mapper.ResetWithContext(t.Context())
	_, err := mapper.RESTMappingWithContext(t.Context(), schema.GroupKind{Kind: "Pod"})
	require.NoError(t, err)
	_, err = mapper.KindForWithContext(t.Context(), schema.GroupVersionResource{Resource: "pods"})
	require.NoError(t, err)
}
