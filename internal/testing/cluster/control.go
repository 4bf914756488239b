package cluster

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// Names of components. Further API servers are kube-apiserver-2 and so on.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Nodes             = "nodes"
)

// RestartAPIServer restarts the first API server on the same port and waits until it is ready. kill stops it with SIGKILL, as
// in a crash.
func RestartAPIServer(t testing.TB, kill bool) {
	t.Helper()
	Restart(t, APIServer, kill)
}

// Restart restarts a component like RestartAPIServer.
func Restart(t testing.TB, component string, kill bool) {
	t.Helper()
	post(t, "/restart", url.Values{"component": {component}, "kill": {strconv.FormatBool(kill)}})
}

// Stop stops a component and starts it again when the test ends. Its data stays.
func Stop(t testing.TB, component string) {
	t.Helper()
	post(t, "/stop", url.Values{"component": {component}, "kill": {"true"}})
	t.Cleanup(func() { Start(t, component) })
}

// Start starts a stopped component and waits until it is ready.
func Start(t testing.TB, component string) {
	t.Helper()
	post(t, "/start", url.Values{"component": {component}})
}

// DelayEtcd delays etcd's responses and watch events to an API server until the test ends, so that its watch cache lags behind; 0
// ends the delay. The sandbox needs several API servers.
func DelayEtcd(t testing.TB, server string, delay time.Duration) {
	t.Helper()
	post(t, "/delay", url.Values{"component": {server}, "by": {delay.String()}})
	if delay > 0 {
		t.Cleanup(func() { DelayEtcd(t, server, 0) })
	}
}

// Compact compacts etcd to its newest revision, so that older continue tokens and,
// after RestartAPIServer, older resource versions expire (410 Gone).
func Compact(t testing.TB) {
	t.Helper()
	post(t, "/compact", nil)
}

// NeedComponents skips the test unless the sandbox runs all components. With ANYKIND_REQUIRE_SANDBOX=1 it fails the test.
func NeedComponents(t testing.TB, components ...string) {
	t.Helper()
	running := status(t).Components
	for _, name := range components {
		if !slices.ContainsFunc(running, func(c component) bool { return c.Name == name }) {
			Skipf(t, "needs %s, which this sandbox was started without (--components)", name)
		}
	}
}

// Version returns the version of Kubernetes and of kubectl.
func Version(t testing.TB) *version.Version {
	t.Helper()
	return version.MustParseSemantic(status(t).Kubernetes)
}

// PodLog returns the path of the log file shared by all pods. Format of a line:
// "2006-01-02T15:04:05.999999999Z stdout F text".
func PodLog(t testing.TB) string {
	t.Helper()
	return status(t).PodLog
}

type component struct {
	Name, State, URL string
	Credentials      credentials
}

// credentials are the files of a client's certificate.
type credentials struct{ CA, Cert, Key string }

type clusterStatus struct {
	Kubernetes  string
	Kubeconfigs []string
	Kubectl     string
	PodLog      string
	Components  []component
}

func status(t testing.TB) *clusterStatus {
	t.Helper()
	var s clusterStatus
	call(t, http.MethodGet, "/status", nil, &s)
	return &s
}

func post(t testing.TB, path string, query url.Values) {
	t.Helper()
	call(t, http.MethodPost, path, query, nil)
}

// callTimeout exceeds the sandbox's timeout for a component.
const callTimeout = 3 * time.Minute

// call sends a request to the sandbox's control socket; see cluster.Cluster in the
// module sandbox.
func call(t testing.TB, method, path string, query url.Values, result any) {
	t.Helper()
	socket := filepath.Join(dir(t), "control.sock")
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	target := url.URL{Scheme: "http", Host: "sandbox", Path: path, RawQuery: query.Encode()}
	// t.Context has already ended in Stop's cleanup.
	request, err := http.NewRequestWithContext(context.Background(), method, target.String(), nil)
	if err != nil {
		t.Fatalf("call the sandbox: %v", err)
	}
	response, err := (&http.Client{Transport: transport, Timeout: callTimeout}).Do(request)
	if err != nil {
		t.Fatalf("call the sandbox: %s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var failure struct{ Error string }
		_ = json.NewDecoder(response.Body).Decode(&failure)
		t.Fatalf("call the sandbox: %s %s: %s", method, path, failure.Error)
	}
	if result == nil {
		return
	}
	if err := json.NewDecoder(response.Body).Decode(result); err != nil {
		t.Fatalf("decode the sandbox's response to %s %s: %v", method, path, err)
	}
}
