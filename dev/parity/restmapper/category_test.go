package restmapper_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cgrestmapper "k8s.io/client-go/restmapper"

	"github.com/anykind/anykind/dev/parity/discoverytest"
)

func TestMapper_CategoriesAsKubectl(t *testing.T) {
	served := discoverytest.EveryForm()
	server := discoverytest.NewServer(t, served.Groups)
	mapper := discoverytest.NewMapper(discoverytest.Connect(t, server))
	_, cached := discoverytest.ClientGoMapper(discoverytest.ClientGoDiscovery(t, server))
	expander := cgrestmapper.NewDiscoveryCategoryExpander(cached)
	for _, category := range []string{"all", "api-extensions", "teamwork"} {
		want, ok := expander.Expand(category)
		require.True(t, ok)
		found, err := mapper.Resources(t.Context(), category)
		require.NoError(t, err)
		var got []schema.GroupResource
		for _, mapping := range found {
			got = append(got, mapping.GVR.GroupResource())
		}
		// client-go lists a resource once a version; kubectl then removes the duplicates.
		var once []schema.GroupResource
		for _, resource := range want {
			if !slices.Contains(once, resource) {
				once = append(once, resource)
			}
		}
		assert.ElementsMatch(t, once, got, category)
	}
}
