//go:build unix

package measure

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestSettings_ParseResources(t *testing.T) {
	all, err := (&Settings{Resources: "pods.v1.,deployments.v1.apps,things.v2.a.example.com"}).ParseResources()
	require.NoError(t, err)
	assert.Equal(t, []schema.GroupVersionResource{
		{Version: "v1", Resource: "pods"}, {Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "a.example.com", Version: "v2", Resource: "things"},
	}, all)
	_, err = (&Settings{Resources: "pods"}).ParseResources()
	require.ErrorContains(t, err, `"pods" is not as deployments.v1.apps`)
}

func TestResidentBytes_Fields(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc of Linux")
	}
	held := make([]byte, 16<<20)
	for i := 0; i < len(held); i += 1 << 10 {
		held[i] = 1
	}
	now := residentBytes("VmRSS")
	peak := residentBytes("VmHWM")
	runtime.KeepAlive(held)
	assert.Greater(t, now, uint64(len(held)))
	assert.GreaterOrEqual(t, peak, now)
	assert.Less(t, peak, uint64(16<<30))
	assert.Zero(t, residentBytes("VmNone"))
}
