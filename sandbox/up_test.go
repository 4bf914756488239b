//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anykind/anykind/sandbox/cluster"
	"github.com/anykind/anykind/sandbox/internal/build"
	"github.com/anykind/anykind/sandbox/internal/leftovers"
)

// killProcess kills the one process with both texts in its command line.
func killProcess(t *testing.T, text, program string) {
	t.Helper()
	running, err := leftovers.Processes(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range running {
		var pid int
		if _, err := fmt.Sscan(line, &pid); err == nil && strings.Contains(line, program) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no %s among %s", program, running)
}

func upStatus(t *testing.T) *cluster.Status {
	t.Helper()
	var s cluster.Status
	if err := json.Unmarshal([]byte(mustRun(t, "status", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// TestUp_Lifecycle starts a cluster and kills its supervisor, and starts another and
// stops it.
func TestUp_Lifecycle(t *testing.T) {
	needSmallCluster(t)
	t.Cleanup(func() { mustRun(t, "down") })
	mustRun(t, "up", smallCluster)
	killProcess(t, superviseCommand, os.Getenv(build.CacheEnv))
	if err := leftovers.Check(); err != nil {
		t.Errorf("after kill -9 of the supervisor: %v", err)
	}
	if r := runSandbox(t, "status"); r.code != 1 || !strings.Contains(r.stderr, "is not running") {
		t.Errorf("status after kill -9: exit code %d, %s", r.code, r.stderr)
	}

	withKubectl := smallCluster + ",kubectl"
	out := mustRun(t, "up", withKubectl)
	s := upStatus(t)
	if !strings.Contains(out, "export KUBECONFIG="+s.Kubeconfig) || !strings.Contains(out, "export PATH="+s.Dir+"/bin:") {
		t.Errorf("up said\n%s\nbut the kubeconfig is %s and kubectl %s", out, s.Kubeconfig, s.Kubectl)
	}
	began := time.Now()
	mustRun(t, "up", withKubectl)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("a second up took %s", took)
	}
	if r := runSandbox(t, "up", withKubectl, "--api-servers=2"); r.code != 1 || !strings.Contains(r.stderr, "running with other options") {
		t.Errorf("up with other options: exit code %d, %s", r.code, r.stderr)
	}
	for range 2 {
		r := runSandbox(t, "exec", "--reuse", withKubectl, "--", "sh", "-c", `echo "$ANYKIND_SANDBOX" "$ANYKIND_KUBECTL"; exit 5`)
		if r.stdout != s.Dir+" "+s.Kubectl+"\n" || r.code != 5 {
			t.Errorf("exec --reuse printed %q and exited with %d, want %s and 5", r.stdout, r.code, s.Dir)
		}
	}
	if revision := mustRun(t, "compact"); strings.TrimSpace(revision) == "" {
		t.Error("compact printed no revision")
	}
	if log := mustRun(t, "logs", "kube-apiserver"); !strings.Contains(log, "Version") {
		t.Errorf("the log is %.300s", log)
	}

	killProcess(t, s.Dir, "/bin/kube-apiserver-")
	r := runSandbox(t, "status")
	for deadline := time.Now().Add(20 * time.Second); r.code == 0 && time.Now().Before(deadline); {
		r = runSandbox(t, "status") // until the supervisor has noticed
	}
	if r.code != 1 || !strings.Contains(r.stdout, "kube-apiserver died (signal: killed)") {
		t.Errorf("status after a death: exit code %d\n%s", r.code, r.stdout)
	}
	mustRun(t, "restart", "kube-apiserver")
	if s := upStatus(t); !s.Ready {
		t.Errorf("not ready after a restart: %+v", s)
	}

	mustRun(t, "down")
	if err := leftovers.Check(); err != nil {
		t.Error(err)
	}
	checkNoRecords(t)
}
