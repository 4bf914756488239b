package controllerruntime_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"

	"github.com/anykind/anykind/compat/clientgo"
	anykind "github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/restmapper"
)

// The modules with these types also compile with older versions of client-go and apimachinery, which lack the interfaces.
var (
	_ discovery.CachedDiscoveryInterfaceWithContext     = (*clientgo.CachedDiscovery)(nil)
	_ discovery.AggregatedDiscoveryInterfaceWithContext = (*clientgo.CachedDiscovery)(nil)
)

func TestRESTMapper_ImplementsInterfaceWithContext(t *testing.T) {
	mapper := restmapper.New(anykind.NewOffline(&anykind.Snapshot{})).RESTMapper(t.Context())
	assert.Implements(t, (*meta.ResettableRESTMapperWithContext)(nil), mapper)
}
