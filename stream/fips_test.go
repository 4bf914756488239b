package stream_test

import (
	"bytes"
	"context"
	"crypto/fips140"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/credentials"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// fipsKubeconfig is the variable that makes TestFIPS140_OnlyApprovedAlgorithms the client.
const fipsKubeconfig = "ANYKIND_TEST_FIPS_KUBECONFIG"

// TestFIPS140_OnlyApprovedAlgorithms runs the client in a process in which other algorithms panic. The servers are in this
// process.
func TestFIPS140_OnlyApprovedAlgorithms(t *testing.T) {
	if path := os.Getenv(fipsKubeconfig); path != "" {
		require.True(t, fips140.Enforced())
		useWithFIPS(t, path)
		return
	}
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("the FIPS 140-3 module does not run on every platform")
	}
	issuer := credentials.NewIssuer(t)
	token := credentials.IDToken("ann", time.Now().Add(time.Hour))
	issuer.Respond(token, "")
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if assert.Equal(t, "Bearer "+token, r.Header.Get("Authorization")) {
			serveFIPSClient(t, w, r)
		}
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "config")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `
current-context: x
contexts: [{name: x, context: {cluster: c, user: ann, namespace: shop}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: ann, user: {auth-provider: {name: oidc, config: {idp-issuer-url: %q, client-id: %s, client-secret: %s,
  refresh-token: %s, idp-certificate-authority-data: %s}}}}]
`, server.URL, base64.StdEncoding.EncodeToString(authority), issuer.IssuerURL(), credentials.ClientID, credentials.ClientSecret,
		credentials.RefreshToken, base64.StdEncoding.EncodeToString(issuer.CAData())), 0o600))
	program, err := os.Executable()
	require.NoError(t, err)
	client := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.v")
	client.Env = append(os.Environ(), "GODEBUG=fips140=only", fipsKubeconfig+"="+path)
	output, err := client.CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.Contains(t, string(output), "--- PASS: "+t.Name())
	assert.Len(t, issuer.Requests(), 1)
}

// serveFIPSClient responds to useWithFIPS.
func serveFIPSClient(t *testing.T, w http.ResponseWriter, r *http.Request) {
	const pod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0","namespace":"shop","resourceVersion":"1"}}`
	switch {
	case strings.HasSuffix(r.URL.Path, "/portforward"):
		greet(w, r)
	case r.Header.Get("Upgrade") != "":
		upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
			send(ws, "\x01done\n", success)
			closeNormally(ws)
		}, v5)(w, r)
	case r.URL.Query().Get("watch") != "":
		_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`, pod)
	case strings.HasSuffix(r.URL.Path, "/pods"):
		_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[%s]}`, pod)
	default:
		_, _ = io.WriteString(w, pod)
	}
}

// useWithFIPS lists, watches, runs a command, attaches and forwards a port with a token of OIDC.
func useWithFIPS(t *testing.T, kubeconfig string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg, err := transport.Load(ctx, &transport.LoadOptions{Path: kubeconfig})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	defer conn.Close()
	pods := dynamic.New(conn, nil).ForGVR(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("shop")
	var seen []string
	for pod, err := range pods.List(ctx, nil) {
		require.NoError(t, err)
		seen = append(seen, "listed "+pod.GetName())
	}
	events, err := pods.OpenWatch(ctx, nil)
	require.NoError(t, err)
	defer events.Close()
	event, err := events.Next()
	require.NoError(t, err)
	assert.Equal(t, watch.Added, event.Type)
	assert.Equal(t, []string{"listed web-0"}, seen)
	_, err = unstructured.Encode(event.Object)
	require.NoError(t, err)

	var stdout bytes.Buffer
	require.NoError(t, stream.Exec(ctx, pods, "web-0", &stream.ExecOptions{Command: []string{"true"}, Stdout: &stdout}))
	assert.Equal(t, "done\n", stdout.String())

	stdout.Reset()
	require.NoError(t, stream.Attach(ctx, pods, "web-0", &stream.AttachOptions{Container: "app", Stdout: &stdout}))
	assert.Equal(t, "done\n", stdout.String())

	port, err := stream.DialPort(ctx, pods, "web-0", 8080)
	require.NoError(t, err)
	defer func() { _ = port.Close() }()
	_, err = io.WriteString(port, "GET / HTTP/1.0\r\n\r\n")
	require.NoError(t, err)
	response, err := io.ReadAll(port)
	require.NoError(t, err)
	assert.Contains(t, string(response), "200 OK")
}
