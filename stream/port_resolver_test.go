package stream

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport"
)

// podPaths is a target without a server.
type podPaths struct{}

func (podPaths) Path(name string) (string, error) { return "/api/v1/namespaces/shop/pods/" + name, nil }
func (podPaths) Conn() *transport.Conn            { return nil }

func TestPortDialer_BoundsNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialer := &PortDialer{Target: podPaths{}}
		first, err := dialer.resolver("first")
		require.NoError(t, err)
		for i := range 4 * maxNames {
			time.Sleep(time.Millisecond)
			_, err := dialer.resolver(fmt.Sprint("web-", i))
			require.NoError(t, err)
			again, err := dialer.resolver("first")
			require.NoError(t, err)
			assert.Same(t, first, again, "the name that is used stays")
		}
		assert.Len(t, dialer.resolvers.Keys(), maxNames)
		time.Sleep(maxNameAge + 1)
		_, err = dialer.resolver("last")
		require.NoError(t, err)
		assert.Len(t, dialer.resolvers.Keys(), 1)
	})
}
