package transport

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/cluster"
)

// whoami returns the user that a real server authenticates.
func whoami(t *testing.T, cfg *Config) string {
	t.Helper()
	conn, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	var review struct {
		Status struct{ UserInfo struct{ Username string } }
	}
	post(t, conn, "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`, &review)
	return review.Status.UserInfo.Username
}

func post(t *testing.T, conn *Conn, path, body string, object any) {
	t.Helper()
	response, err := conn.Do(t.Context(), &Request{
		Method: http.MethodPost, Path: path, Body: []byte(body), Header: http.Header{"Content-Type": {"application/json"}},
	})
	require.NoError(t, err)
	defer response.Body.Close()
	require.NoError(t, json.NewDecoder(response.Body).Decode(object))
}

// TestLoad_ServiceAccountOnRealServer makes this machine look like a pod of the sandbox.
func TestLoad_ServiceAccountOnRealServer(t *testing.T) {
	admin, err := Load(t.Context(), &LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	conn, err := Open(admin)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	var account struct{ Metadata struct{ Name string } }
	post(t, conn, "/api/v1/namespaces/default/serviceaccounts", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"generateName":"robot-"}}`, &account)
	var issued struct{ Status struct{ Token string } }
	post(t, conn, "/api/v1/namespaces/default/serviceaccounts/"+account.Metadata.Name+"/token",
		`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`, &issued)

	at, env := nowhere(t)
	server, err := url.Parse(admin.Server)
	require.NoError(t, err)
	env["KUBERNETES_SERVICE_HOST"] = server.Hostname()
	env["KUBERNETES_SERVICE_PORT"] = server.Port()
	write(t, filepath.Join(at.serviceAccountDir, "token"), issued.Status.Token)
	write(t, filepath.Join(at.serviceAccountDir, "ca.crt"), string(admin.CAData))
	write(t, filepath.Join(at.serviceAccountDir, "namespace"), "default")
	cfg, err := at.load(t.Context(), &LoadOptions{})
	require.NoError(t, err)
	assert.Equal(t, "system:serviceaccount:default:"+account.Metadata.Name, whoami(t, cfg))
}

func TestLoad_RunningKubectlProxy(t *testing.T) {
	kubeconfig := cluster.Kubeconfig(t)
	proxy := exec.CommandContext(t.Context(), cluster.Kubectl(t), "--kubeconfig", kubeconfig, "--context", "token", "proxy", "--port=0")
	output, err := proxy.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, proxy.Start())
	t.Cleanup(func() { _ = proxy.Process.Kill(); _ = proxy.Wait() })
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	address, found := strings.CutPrefix(strings.TrimSpace(line), "Starting to serve on ")
	require.True(t, found, line)

	at, _ := nowhere(t)
	at.kubectlProxyURL = "http://" + address
	cfg, err := at.load(t.Context(), &LoadOptions{})
	require.NoError(t, err)
	assert.Equal(t, "token-admin", whoami(t, cfg))
}
