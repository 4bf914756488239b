package manager_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/controller/manager"
)

func TestHTTPServer_ServesUntilEnd(t *testing.T) {
	certificates := httptest.NewTLSServer(nil) // for its certificate
	defer certificates.Close()
	for scheme, config := range map[string]*tls.Config{"http": nil, "https": {Certificates: certificates.TLS.Certificates}} {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		received := make(chan struct{})
		release := make(chan struct{})
		server := &http.Server{TLSConfig: config, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { //nolint:gosec // loopback
			close(received)
			<-release
			_, _ = io.WriteString(w, "served")
		})}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- manager.HTTPServer(server, listener)(ctx) }()
		body := make(chan string, 1)
		go func() {
			response, err := certificates.Client().Get(scheme + "://" + listener.Addr().String())
			if err != nil {
				body <- err.Error()
				return
			}
			text, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			body <- string(text)
		}()
		<-received
		cancel()
		close(release)
		require.NoError(t, <-ended)
		assert.Equal(t, "served", <-body, "a running request is finished")
	}
	err := manager.HTTPServer(&http.Server{Addr: "127.0.0.1:-1"}, nil)(t.Context()) //nolint:gosec // never serves
	require.Error(t, err)
}
