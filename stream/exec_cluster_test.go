package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/stream"
)

// kubectlsOwn matches kubectl's own occasional log lines: about a channel that the server opens before kubectl listens, or about
// input that it could no longer send.
var kubectlsOwn = regexp.MustCompile(`(?m)^[EW]\d{4} \d\d:\d\d:\d\d\.\d+ .*\n`)

// kubectl runs the oracle, which reads stdin, and gives what the command wrote and its exit code.
func kubectl(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), cluster.Kubectl(t), append([]string{"--kubeconfig", cluster.Kubeconfig(t)}, args...)...)
	var out, errOut bytes.Buffer
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Stdout = &out
	cmd.Stderr = &errOut
	err := cmd.Run()
	stderr = kubectlsOwn.ReplaceAllString(errOut.String(), "")
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		return out.String(), stderr, exited.ExitCode()
	}
	require.NoError(t, err)
	return out.String(), stderr, 0
}

func codeOf(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	var exited *stream.ExitError
	require.ErrorAs(t, err, &exited)
	return exited.Code
}

func TestExec_SameAsKubectl(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	large := strings.Repeat("0123456789abcdef", 200_000)
	for name, c := range map[string]struct {
		stdin   string
		command []string
	}{
		"output":              {"", []string{"echo", "hello"}},
		"no output":           {"", []string{"true"}},
		"exit code":           {"", []string{"sh", "-c", "exit 7"}},
		"both outputs":        {"", []string{"sh", "-c", "echo out; echo err >&2; exit 3"}},
		"odd arguments":       {"", []string{"printf", "%s|", "a b", "", "ü&=?", "$HOME", "line\nbreak"}},
		"input to its end":    {"one\ntwo\n", []string{"cat"}},
		"large":               {large, []string{"sh", "-c", "tee /dev/stderr"}},
		"input left unread":   {large, []string{"head", "-c", "10"}},
		"binary":              {"\x00\xff\x01\r\n", []string{"cat"}},
		"a silent last words": {"", []string{"sh", "-c", "sleep 0.2; exit 1"}},
		"killed":              {"", []string{"sh", "-c", "echo out; kill -KILL $$"}},
		"terminated":          {"", []string{"sh", "-c", "kill -TERM $$"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"exec", "-n", namespaceOf(t, pods), "web-0", "-i", "--"}
			wantOut, wantErr, wantCode := kubectl(t, c.stdin, append(args, c.command...)...)
			var stdout, stderr bytes.Buffer
			err := stream.Exec(t.Context(), pods, "web-0", &stream.ExecOptions{
				Command: c.command, Stdin: strings.NewReader(c.stdin), Stdout: &stdout, Stderr: &stderr,
			})
			assert.Equal(t, wantCode, codeOf(t, err), "%v", err)
			assert.True(t, wantOut == stdout.String(), "stdout: %d bytes, kubectl %d", stdout.Len(), len(wantOut))
			before, _, _ := strings.Cut(wantErr, "command terminated with")
			assert.True(t, before == stderr.String(), "stderr: %d bytes, kubectl %d: %.200q", stderr.Len(), len(before), before)
		})
	}
}

func TestExec_SignalExitCode(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	for signal, code := range map[string]int{"KILL": 137, "TERM": 143, "HUP": 129} {
		err := stream.Command(t.Context(), pods, "web-0", "sh", "-c", "kill -"+signal+" $$").Run()
		assert.Equal(t, code, codeOf(t, err), signal)
	}
}

func TestExec_DefaultContainerSameAsKubectl(t *testing.T) {
	pods := podsOf(t)
	pod := named("several")
	pod.SetAnnotations(map[string]string{"kubectl.kubernetes.io/default-container": "second"})
	run(t, pods, pod, "first", "second")
	out, err := stream.Command(t.Context(), pods, "several", "echo", "hello").Output()
	require.NoError(t, err)
	assert.Equal(t, "hello\n", string(out))
	cmd := stream.Command(t.Context(), pods, "several", "ls")
	cmd.Container = "third"
	err = cmd.Run()
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	require.ErrorContains(t, err, "container third is not valid")
}

func TestExec_ForbiddenNamesRule(t *testing.T) {
	pods := podsOf(t)
	limited, err := connect(t, "limited").Resource(t.Context(), "pods")
	require.NoError(t, err)
	limited = limited.Namespace(namespaceOf(t, pods))
	for sub, call := range map[string]error{
		"exec":   stream.Command(t.Context(), limited, "web-0", "ls").Run(),
		"attach": stream.Attach(t.Context(), limited, "web-0", nil),
	} {
		require.True(t, apierrors.IsForbidden(call), "%v", call)
		assert.ErrorContains(t, call, `{apiGroups: [""], resources: ["pods/`+sub+`"], verbs: ["get", "create"]}`)
	}
	err = stream.Command(t.Context(), pods, "none", "ls").Run()
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestExec_MissingProgram(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	err := stream.Command(t.Context(), pods, "web-0", "no-such-program").Run()
	require.True(t, apierrors.IsInternalError(err), "%v", err)
	require.ErrorContains(t, err, "no-such-program")
}

// A command that reads its input ends with the context, for that ends the input.
func TestExec_ContextEndsCommand(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	end := filepath.Join(t.TempDir(), "ended")
	ctx, cancel := context.WithCancel(t.Context())
	cmd := stream.Command(ctx, pods, "web-0", "sh", "-c", `echo begun; cat; touch "$0"`, end)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(stdout, make([]byte, len("begun\n")))
	require.NoError(t, err)
	require.NoFileExists(t, end)
	cancel()
	require.ErrorIs(t, cmd.Wait(), context.Canceled)
	_, err = stdin.Write([]byte("x"))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.Eventually(t, func() bool { _, err := os.Stat(end); return err == nil }, patience, 50*time.Millisecond)
}

func TestExec_KilledServer(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	cmd := stream.Command(t.Context(), pods, "web-0", "sh", "-c", "echo begun; sleep 60")
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(stdout, make([]byte, len("begun\n")))
	require.NoError(t, err)
	cluster.RestartAPIServer(t, true)
	_, err = io.ReadAll(stdout)
	require.Error(t, err)
	require.ErrorContains(t, cmd.Wait(), "before the exit status arrived")
}

func TestExec_ManyCommandsLeakNothing(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	once := func() {
		out, err := stream.Command(t.Context(), pods, "web-0", "echo", "x").Output()
		assert.NoError(t, err)
		assert.Equal(t, "x\n", string(out))
	}
	once()
	goroutines := runtime.NumGoroutine()
	files := openFiles(t)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for range 50 {
				once()
			}
		})
	}
	workers.Wait()
	deadline := time.Now().Add(patience)
	for runtime.NumGoroutine() > goroutines || openFiles(t) > files {
		require.True(t, time.Now().Before(deadline), "%d goroutines, were %d; %d files, were %d",
			runtime.NumGoroutine(), goroutines, openFiles(t), files)
		time.Sleep(20 * time.Millisecond)
	}
}

// openFiles counts this process's descriptors, where the system shows them.
func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	require.NoError(t, err)
	return len(all)
}

func namespaceOf(t *testing.T, pods stream.Target) string {
	t.Helper()
	path, err := pods.Path("")
	require.NoError(t, err)
	return strings.Split(path, "/")[4]
}
