//go:build unix

package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anykind/anykind/sandbox/internal/leftovers"
)

func TestExecPassesInputFolderAndExitCode(t *testing.T) {
	needSmallCluster(t)
	dir := t.TempDir()
	cmd := sandboxCommand(t, "exec", smallCluster, "--dir", dir, "--",
		"sh", "-c", `cat; pwd; test -s "$KUBECONFIG" && test -S "$ANYKIND_SANDBOX/control.sock" && exit 7`)
	cmd.Stdin = strings.NewReader("typed\n")
	r := finish(t, cmd)
	if want := "typed\n" + dir + "\n"; r.stdout != want || r.code != 7 {
		t.Errorf("printed %q and exited with %d, want %q and 7\n%s", r.stdout, r.code, want, r.stderr)
	}
}

func TestExec_NamesTheClusterInTheEnvironment(t *testing.T) {
	needSmallCluster(t)
	t.Setenv(kubectlEnv, "that of another cluster")
	const script = `echo "$ANYKIND_SANDBOX" "$KUBECONFIG" "$KUBECACHEDIR" "$ANYKIND_KUBECTL"`
	for components, withKubectl := range map[string]bool{smallCluster: false, smallCluster + ",kubectl": true} {
		dir, rest, _ := strings.Cut(mustRun(t, "exec", components, "--", "sh", "-c", script), " ")
		want := dir + "/kubeconfig " + dir + "/kubectl-cache "
		if withKubectl {
			want += dir + "/bin/kubectl"
		}
		if rest != want+"\n" {
			t.Errorf("%s: the environment names %q, want %q", components, rest, want)
		}
	}
}

// TestNothingOutlivesExec ends exec while its command runs.
func TestNothingOutlivesExec(t *testing.T) {
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

func TestADeathDuringExecIsToldAndFails(t *testing.T) {
	needSmallCluster(t)
	cmd := sandboxCommand(t, "exec", smallCluster, "--", "sh", "-c", `echo; read -r line; exit 0`)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
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
	time.Sleep(300 * time.Millisecond)
	_ = in.Close()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if text := stderr.String(); !strings.Contains(text, "etcd died (signal: killed); the last lines of its log:\n    {") {
		t.Errorf("it said\n%s", text)
	}
}
