package discovery

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClient_ServerVersionErrorsAreShort(t *testing.T) {
	server, client := serving(t, "")
	server.serveJSON(map[string]string{"/version": "\x1b[31m" + strings.Repeat("x", 1<<20)})
	_, err := client.ServerVersion(t.Context())
	require.ErrorContains(t, err, "decode version")
	assert.Less(t, len(err.Error()), 500)
	assert.NotContains(t, err.Error(), "\x1b")
}
