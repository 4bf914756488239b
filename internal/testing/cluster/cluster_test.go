package cluster

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

// recorder is a testing.TB that records whether the test was skipped or failed.
type recorder struct {
	testing.TB
	outcome string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(string, ...any) {
	r.outcome = "skipped"
	runtime.Goexit()
}

func (r *recorder) Fatalf(string, ...any) {
	r.outcome = "failed"
	runtime.Goexit()
}

// outcomeOf runs body as a test and returns its outcome.
func outcomeOf(t *testing.T, body func(testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t, outcome: "passed"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		body(r)
	}()
	<-done
	return r.outcome
}

// fakeSandbox serves a control socket of a sandbox with that kubectl. calls returns the calls since the last time.
func fakeSandbox(t *testing.T, kubectl string) (calls func() []string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "cluster-") //nolint:usetesting // t.TempDir's path may be too long for a socket.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	listener, err := net.Listen("unix", filepath.Join(folder, "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 20)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Method + " " + r.URL.String()
		if r.FormValue("component") == "kubelet" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error": "no such component"}`)
			return
		}
		fmt.Fprintf(w, `{"kubeconfigs": ["one", "two"], "podLog": "pod.log", "kubectl": %q, "components": [{"name": "etcd", "state": "ready"}]}`, kubectl)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	t.Setenv(dirEnv, folder)
	return func() []string {
		var all []string
		for len(seen) > 0 {
			all = append(all, <-seen)
		}
		return all
	}
}

func TestKubeconfig_WithoutSandbox(t *testing.T) {
	t.Setenv(dirEnv, "")
	for require, want := range map[string]string{"": "skipped", "1": "failed"} {
		t.Setenv(requireEnv, require)
		if got := outcomeOf(t, func(t testing.TB) { Kubeconfig(t) }); got != want {
			t.Errorf("%s=%q: the test %s", requireEnv, require, got)
		}
	}
}

func TestNeedComponents_WithoutComponent(t *testing.T) {
	fakeSandbox(t, "")
	for require, want := range map[string]string{"": "skipped", "1": "failed"} {
		t.Setenv(requireEnv, require)
		if got := outcomeOf(t, func(t testing.TB) { NeedComponents(t, Etcd, Nodes) }); got != want {
			t.Errorf("%s=%q: the test %s", requireEnv, require, got)
		}
		if got := outcomeOf(t, func(t testing.TB) { NeedComponents(t, Etcd) }); got != "passed" {
			t.Errorf("%s=%q with the component: the test %s", requireEnv, require, got)
		}
	}
}

func TestKubectl_WithoutKubectl(t *testing.T) {
	fakeSandbox(t, "")
	for require, want := range map[string]string{"": "skipped", "1": "failed"} {
		t.Setenv(requireEnv, require)
		if got := outcomeOf(t, func(t testing.TB) { Kubectl(t) }); got != want {
			t.Errorf("%s=%q: the test %s", requireEnv, require, got)
		}
	}
}

func TestKubectlOnPath(t *testing.T) {
	kubectl := filepath.Join(t.TempDir(), "kubectl")
	if err := os.WriteFile(kubectl, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	fakeSandbox(t, kubectl)
	if got := Kubectl(t); got != kubectl {
		t.Errorf("kubectl is %s, want %s", got, kubectl)
	}
	KubectlOnPath(t)
	if got, err := exec.LookPath("kubectl"); err != nil || got != kubectl {
		t.Errorf("the PATH names %s (%v), want %s", got, err, kubectl)
	}
}

func TestControl_Calls(t *testing.T) {
	calls := fakeSandbox(t, "")
	if got := Kubeconfigs(t); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("kubeconfigs %s", got)
	}
	if got := PodLog(t); got != "pod.log" {
		t.Errorf("pod log %s", got)
	}
	calls()
	RestartAPIServer(t, true)
	Compact(t)
	t.Run("delayed for one test", func(t *testing.T) { DelayEtcd(t, "kube-apiserver-2", time.Second) })
	t.Run("stopped for one test", func(t *testing.T) { Stop(t, Etcd) })
	want := []string{
		"POST /restart?component=kube-apiserver&kill=true", "POST /compact",
		"POST /delay?by=1s&component=kube-apiserver-2", "POST /delay?by=0s&component=kube-apiserver-2",
		"POST /stop?component=etcd&kill=true", "POST /start?component=etcd",
	}
	if got := calls(); !slices.Equal(got, want) {
		t.Errorf("called %s, want %s", got, want)
	}
	if got := outcomeOf(t, func(t testing.TB) { Restart(t, "kubelet", false) }); got != "failed" {
		t.Errorf("after an error of the sandbox, the test %s", got)
	}
}
