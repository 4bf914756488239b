package clientgo_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/compat/clientgo"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/scripted"
)

func TestCachedDiscovery_InvalidateDuringRefresh(t *testing.T) {
	server := scripted.New("/v1 configmaps configmap ConfigMap")
	during := make(chan func(), 1)
	conn := scripted.Connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case call := <-during:
			call()
		default:
		}
		server.ServeHTTP(w, r)
	}), nil)
	cached, err := clientgo.NewDiscovery(t.Context(), conn, discovery.New(conn, nil))
	require.NoError(t, err)
	cached.Invalidate()
	during <- cached.Invalidate
	_, err = cached.ServerGroups()
	require.NoError(t, err)
	assert.False(t, cached.Fresh())

	before := server.Discoveries()
	for range 2 {
		_, err = cached.ServerGroups()
		require.NoError(t, err)
		assert.True(t, cached.Fresh())
		assert.Equal(t, before+1, server.Discoveries())
	}
}
