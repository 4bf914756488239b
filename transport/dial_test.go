package transport_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport"
)

func TestConfig_Dial(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Host)) }))
	defer server.Close()
	var dialed []string
	got, err := ask(t, &transport.Config{
		Server: "http://apiserver.invalid",
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialed = append(dialed, network+" "+address)
			return (&net.Dialer{}).DialContext(ctx, network, strings.TrimPrefix(server.URL, "http://"))
		},
	})
	require.NoError(t, err)
	assert.Equal(t, "apiserver.invalid", got)
	assert.Equal(t, []string{"tcp apiserver.invalid:80"}, dialed)
}
