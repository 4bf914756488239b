package clientgo_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgodiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/anykind/anykind/internal/testing/client"
)

// unavailable is a group version whose APIService has no server.
var unavailable = schema.GroupVersion{Group: "unavailable.example.org", Version: "v1"}

// registerUnavailable registers an APIService of a server that is not there.
func registerUnavailable(t *testing.T, s *sandbox) {
	t.Helper()
	services := client.Resource(t, s.client, "apiservices.v1.apiregistration.k8s.io")
	name := unavailable.Version + "." + unavailable.Group
	_, err := services.Create(t.Context(), &unstructuredv1.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"group": unavailable.Group, "version": unavailable.Version, "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "default", "name": "unavailable"},
		},
	}}, nil)
	require.NoError(t, err)
	client.DeleteAtEnd(t, services, name)
}

// failedGroups returns the errors of the group versions that an error of discovery has.
func failedGroups(err error) map[schema.GroupVersion]string {
	groups, _ := clientgodiscovery.GroupDiscoveryFailedErrorGroups(err)
	failed := map[schema.GroupVersion]string{}
	for gv, reason := range groups {
		failed[gv] = reason.Error()
	}
	return failed
}

// TestNewDiscovery_UnavailableGroupSameAsClientGo compares partial results.
func TestNewDiscovery_UnavailableGroupSameAsClientGo(t *testing.T) {
	s := newSandbox(t)
	oracle := s.discoveryOracle(t)
	cached := s.discovery(t)
	registerUnavailable(t, s)
	for _, c := range []clientgodiscovery.CachedDiscoveryInterface{oracle, cached} {
		eventually(t, func() bool {
			c.Invalidate()
			_, _, err := c.ServerGroupsAndResources()
			return failedGroups(err)[unavailable] != ""
		})
	}

	wantGroups, wantLists, wantErr := oracle.ServerGroupsAndResources()
	groups, lists, err := cached.ServerGroupsAndResources()
	assert.True(t, clientgodiscovery.IsGroupDiscoveryFailedError(err))
	assert.Equal(t, failedGroups(wantErr), failedGroups(err))
	assert.Len(t, failedGroups(err), 1)
	assert.Equal(t, wantErr.Error(), err.Error())
	assert.Equal(t, wantGroups, groups)
	assert.Equal(t, sortedLists(wantLists), sortedLists(lists))
	assert.NotEmpty(t, lists)

	for name, preferred := range map[string]func(clientgodiscovery.DiscoveryInterface) ([]*metav1.APIResourceList, error){
		"all":        clientgodiscovery.DiscoveryInterface.ServerPreferredResources,
		"namespaced": clientgodiscovery.DiscoveryInterface.ServerPreferredNamespacedResources,
	} {
		wantLists, wantErr := preferred(oracle)
		lists, err := preferred(cached)
		assert.Equal(t, failedGroups(wantErr), failedGroups(err), name)
		assert.Equal(t, sortedLists(wantLists), sortedLists(lists), name)
	}

	_, wantErr = oracle.ServerResourcesForGroupVersion(unavailable.String())
	_, err = cached.ServerResourcesForGroupVersion(unavailable.String())
	require.Error(t, wantErr)
	require.Error(t, err)

	// The kinds of other groups are found, and those of this one are not.
	for _, c := range []clientgodiscovery.CachedDiscoveryInterface{oracle, cached} {
		mapper := restmapper.NewDeferredDiscoveryRESTMapper(c)
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
		require.NoError(t, err)
		assert.Equal(t, "deployments", mapping.Resource.Resource)
		_, err = mapper.RESTMapping(schema.GroupKind{Group: unavailable.Group, Kind: "Nothing"})
		require.ErrorContains(t, err, "no matches for kind")
	}
}
