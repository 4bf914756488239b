package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport"
)

func TestCluster_Connect_AfterRemoval(t *testing.T) {
	opened := 0
	f := New(&Options{Open: func(string, *transport.Config) (*transport.Conn, error) {
		opened++
		return nil, assert.AnError
	}})
	c := newCluster(f, "east", &transport.Config{}, nil)
	require.ErrorIs(t, c.connect().err, assert.AnError)
	c.remove()
	assert.Nil(t, c.connect())
	assert.Equal(t, 1, opened, "nobody would close a further connection")
}
