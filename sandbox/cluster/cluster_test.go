//go:build unix

package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anykind/anykind/sandbox/internal/leftovers"
)

func TestCluster_ServesThreeUsersAndCleansUp(t *testing.T) {
	c := startCluster(t, &Options{Components: []Component{Etcd, APIServer}})
	for _, name := range []string{"admin", "token", "limited"} {
		user := newCaller(t, c.Kubeconfig, name)
		want := http.StatusOK
		if name == "limited" {
			want = http.StatusForbidden
		}
		user.must(http.MethodGet, configMaps, nil, nil)
		if code := user.send(http.MethodGet, "/api/v1/namespaces/default/secrets", nil, nil); code != want {
			t.Errorf("%s asks for secrets: %d, want %d", name, code, want)
		}
		if code := user.send(http.MethodPost, configMaps, configMap("of-"+name, ""), nil); code != want {
			t.Errorf("%s creates a configmap: %d, want %d", name, code, want)
		}
	}
	var version struct{ GitVersion string }
	newCaller(t, c.Kubeconfig, "admin").must(http.MethodGet, "/version", nil, &version)
	if version.GitVersion != c.Version {
		t.Errorf("the server says it is %s, want %s", version.GitVersion, c.Version)
	}
	if s := c.Status(); !s.Ready || len(s.Components) != 2 || s.Components[0].Pid == 0 {
		t.Errorf("status of a running cluster: %+v", s)
	}
	if err := c.Err(); err != nil {
		t.Errorf("Err of a running cluster: %v", err)
	}

	for range 2 {
		if err := c.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(c.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if left, err := leftovers.Processes(c.Dir); err != nil || len(left) > 0 {
		t.Errorf("left: %s %v", left, err)
	}
	<-c.Done()
	if err := c.Err(); !errors.Is(err, errStopped) {
		t.Errorf("Err after Stop: %v", err)
	}
}

// TestStart_TwoAPIServers runs independent subtests on one cluster.
func TestStart_TwoAPIServers(t *testing.T) {
	c := startCluster(t, &Options{
		Components: []Component{Etcd, APIServer}, APIServers: 2, FeatureGates: map[string]bool{"WatchList": false},
	})
	first := newCaller(t, c.Kubeconfigs[0], "admin")
	second := newCaller(t, c.Kubeconfigs[1], "admin")
	var old object
	first.must(http.MethodPost, configMaps, configMap("shared", "value"), &old)

	t.Run("share data", func(t *testing.T) {
		var got object
		second.must(http.MethodGet, configMaps+"/shared", nil, &got)
		if got.Data["key"] != "value" {
			t.Errorf("the second server's data is %v", got.Data)
		}
	})
	for _, kill := range []bool{false, true} {
		t.Run(map[bool]string{false: "keep data on restart", true: "keep data on crash"}[kill], func(t *testing.T) {
			before := pidOf(t, c, string(APIServer))
			if err := c.RestartComponent(t.Context(), string(APIServer), kill); err != nil {
				t.Fatal(err)
			}
			if pidOf(t, c, string(APIServer)) == before {
				t.Error("it is the same process")
			}
			first.must(http.MethodGet, configMaps+"/shared", nil, nil)
			if err := c.Err(); err != nil {
				t.Errorf("a requested restart counts as a death: %v", err)
			}
		})
	}
	t.Run("expire old revisions after compaction", func(t *testing.T) {
		for range 3 {
			first.must(http.MethodPut, configMaps+"/shared", configMap("shared", time.Now().String()), nil)
		}
		revision, err := c.Compact(t.Context())
		if err != nil || revision == "" {
			t.Fatalf("revision %q: %v", revision, err)
		}
		if _, err := c.Compact(t.Context()); err != nil {
			t.Errorf("a second time with nothing to do: %v", err)
		}
		if err := c.RestartComponent(t.Context(), string(APIServer), false); err != nil {
			t.Fatal(err)
		}
		if code := firstWatchCode(t, first, old.Metadata.ResourceVersion); code != http.StatusGone {
			t.Errorf("a watch from an old resource version: %d, want 410", code)
		}
	})
	t.Run("read old state behind a slow etcd", func(t *testing.T) {
		if err := c.DelayEtcd("kube-apiserver-2", time.Hour); err != nil {
			t.Fatal(err)
		}
		first.must(http.MethodPost, configMaps, configMap("late", ""), nil)
		const cached = configMaps + "/late?resourceVersion=0" // of the watch cache
		if code := second.send(http.MethodGet, cached, nil, nil); code != http.StatusNotFound {
			t.Errorf("the second server's watch cache has the object: %d", code)
		}
		if err := c.DelayEtcd("kube-apiserver-2", 0); err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); second.send(http.MethodGet, cached, nil, nil) != http.StatusOK; time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > 30*time.Second {
				t.Fatal("the watch cache never received the object")
			}
		}
	})
	t.Run("control socket", func(t *testing.T) { testControlSocket(t, c) })
}

func pidOf(t *testing.T, c *Cluster, name string) int {
	t.Helper()
	components := c.Status().Components
	i := slices.IndexFunc(components, func(c ComponentStatus) bool { return c.Name == name })
	if i < 0 || components[i].Pid == 0 {
		t.Fatalf("%s does not run: %+v", name, components)
	}
	return components[i].Pid
}

// firstWatchCode watches from version on and returns the code of the first event,
// if that is an error.
func firstWatchCode(t *testing.T, c *caller, version string) int {
	t.Helper()
	url := c.id.server + configMaps + "?watch=1&timeoutSeconds=5&resourceVersion=" + version
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.StatusCode
	}
	line, err := bufio.NewReader(response.Body).ReadBytes('\n')
	if err != nil {
		t.Fatalf("no event: %v", err)
	}
	var event struct{ Object struct{ Code int } }
	if err := json.Unmarshal(line, &event); err != nil {
		t.Fatal(err)
	}
	return event.Object.Code
}

func testControlSocket(t *testing.T, c *Cluster) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", c.ControlSocket())
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for _, call := range []struct {
		method, path string
		code         int
		want         string
	}{
		{http.MethodGet, "/status", 200, `"ready":true`},
		{http.MethodPost, "/stop?component=kube-apiserver-2&kill=true", 200, `"state":"stopped"`},
		{http.MethodGet, "/status", 200, `"ready":false`},
		{http.MethodPost, "/start?component=kube-apiserver-2", 200, `"ready":true`},
		{http.MethodPost, "/compact", 200, `"revision":"`},
		{http.MethodPost, "/delay?component=kube-apiserver-2&by=1ms", 200, `"ready":true`},
		{http.MethodPost, "/delay?component=kube-apiserver-2&by=0", 200, `"ready":true`},
		{http.MethodPost, "/delay?component=kube-apiserver-2&by=-1s", 400, `negative`},
		{http.MethodPost, "/delay?component=etcd&by=1s", 400, `no relay`},
		{http.MethodPost, "/restart?component=kubelet", 400, `no component \"kubelet\" in this cluster (components: etcd, kube-apiserver`},
		{http.MethodPost, "/stop?component=etcd&kill=maybe", 400, `want true or false`},
	} {
		request, err := http.NewRequestWithContext(t.Context(), call.method, "http://sandbox"+call.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body := new(strings.Builder)
		_, _ = io.Copy(body, response.Body)
		response.Body.Close()
		if response.StatusCode != call.code || !strings.Contains(body.String(), call.want) {
			t.Errorf("%s %s responded with %d %s, want %d and %s", call.method, call.path, response.StatusCode, body, call.code, call.want)
		}
	}
}

func TestCluster_ErrHasLogOfDeadComponent(t *testing.T) {
	c := startCluster(t, &Options{Components: []Component{Etcd, APIServer}})
	if err := syscall.Kill(pidOf(t, c, string(Etcd)), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the death was not reported")
	}
	var died *DiedError
	if err := c.Err(); !errors.As(err, &died) {
		t.Fatalf("Err: %v", err)
	}
	text := died.Error()
	if died.Component != string(Etcd) || !strings.Contains(text, "signal: killed") || !strings.Contains(text, `    {"level":`) {
		t.Errorf("the error is: %s", text)
	}
	if s := c.Status(); s.Ready || s.Components[0].State != "died" || s.Components[0].Error == "" {
		t.Errorf("status: %+v", s)
	}
	if err := c.StartComponent(t.Context(), string(Etcd)); err != nil {
		t.Fatalf("it cannot be restarted: %v", err)
	}
	newCaller(t, c.Kubeconfig, "admin").must(http.MethodGet, configMaps, nil, nil)
}

func TestStart_UnknownFeatureGate(t *testing.T) {
	opts := &Options{Components: []Component{Etcd, APIServer}, FeatureGates: map[string]bool{"NoSuchGate": true}}
	needBinaries(t, opts)
	_, err := Start(t.Context(), opts)
	var died *DiedError
	if !errors.As(err, &died) || !strings.Contains(err.Error(), "unrecognized feature gate: NoSuchGate") {
		t.Errorf("Start: %v", err)
	}
	if err := leftovers.Check(); err != nil {
		t.Error(err)
	}
}

func TestStart_CancelledCleansUp(t *testing.T) {
	opts := &Options{Components: []Component{Etcd, APIServer}}
	needBinaries(t, opts)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := Start(ctx, opts); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start: %v", err)
	}
	if err := leftovers.Check(); err != nil {
		t.Error(err)
	}
}
