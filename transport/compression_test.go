package transport_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnswersAreCompressedUnlessTheConfigSaysNo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			_, _ = io.WriteString(w, "plain")
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		compressed := gzip.NewWriter(w)
		fmt.Fprint(compressed, "compressed")
		_ = compressed.Close()
	}))
	defer server.Close()
	for want, disable := range map[string]bool{"compressed": false, "plain": true} {
		got, err := ask(t, &transport.Config{Server: server.URL, DisableCompression: disable})
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}
