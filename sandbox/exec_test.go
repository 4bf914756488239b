//go:build unix

package main

import (
	"bufio"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/anykind/anykind/sandbox/cluster"
	"github.com/anykind/anykind/sandbox/internal/leftovers"
)

func TestExec_PassesInputEnvironmentAndExitCode(t *testing.T) {
	needSmallCluster(t)
	dir := t.TempDir()
	cmd := sandboxCommand(t, "exec", smallCluster+",kubectl", "--dir", dir, "--",
		"sh", "-c", `cat; pwd; test -s "$KUBECONFIG" && test -S "$ANYKIND_SANDBOX/control.sock" && "$ANYKIND_KUBECTL" version --client && exit 7`)
	cmd.Stdin = strings.NewReader("typed\n")
	r := finish(t, cmd)
	if want := "typed\n" + dir + "\nClient Version: " + cluster.DefaultKubernetesVersion + "\n"; !strings.HasPrefix(r.stdout, want) || r.code != 7 {
		t.Errorf("printed %q and exited with %d, want %q and 7\n%s", r.stdout, r.code, want, r.stderr)
	}
}

// exec may run within the exec of another cluster, whose variables must be replaced.
func TestClusterEnvironment_SetsAllVariables(t *testing.T) {
	for kubectl, want := range map[string][]string{
		"":               {"KUBECONFIG=/dir/kubeconfig", "ANYKIND_SANDBOX=/dir", "ANYKIND_KUBECTL=", "KUBECACHEDIR=/dir/kubectl-cache"},
		"/there/kubectl": {"KUBECONFIG=/dir/kubeconfig", "ANYKIND_SANDBOX=/dir", "ANYKIND_KUBECTL=/there/kubectl", "KUBECACHEDIR=/dir/kubectl-cache"},
	} {
		if got := clusterEnvironment("/dir", kubectl); !slices.Equal(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestExec_LeavesNothingBehind ends exec while its command runs.
func TestExec_LeavesNothingBehind(t *testing.T) {
	needSmallCluster(t)
	for name, c := range map[string]struct {
		signal syscall.Signal
		code   int
	}{
		"after Ctrl-C":  {syscall.SIGINT, 128 + int(syscall.SIGINT)},
		"after SIGTERM": {syscall.SIGTERM, 128 + int(syscall.SIGTERM)},
		"after kill -9": {syscall.SIGKILL, -1},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := sandboxCommand(t, "exec", smallCluster, "--", "sh", "-c", `echo "$ANYKIND_SANDBOX"; sleep 60; :`)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			dir, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if running, err := leftovers.Processes(strings.TrimSpace(dir)); err != nil || len(running) < 2 {
				t.Errorf("only these run: %s, %v", running, err)
			}
			if err := syscall.Kill(-cmd.Process.Pid, c.signal); err != nil {
				t.Fatal(err)
			}
			// The pipe ends once the command and its children are gone, too.
			if _, err := io.Copy(io.Discard, out); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if err := leftovers.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestExec_ReportsDeathAndFails(t *testing.T) {
	needSmallCluster(t)
	cmd := sandboxCommand(t, "exec", smallCluster, "--", "sh", "-c", `echo; read -r line; exit 0`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	killProcess(t, os.TempDir(), "/bin/etcd-")
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "etcd died (signal: killed); the last lines of its log:") {
	}
	if lines.Scan(); !strings.HasPrefix(lines.Text(), "    {") {
		t.Errorf("after the error it printed %q: %v", lines.Text(), lines.Err())
	}
	_ = in.Close()
	if _, err := io.Copy(io.Discard, stderr); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}
