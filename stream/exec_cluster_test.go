package stream_test

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/sandboxtest"
	"github.com/anykind/anykind/stream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kubectl runs the oracle, which reads stdin, and gives what it wrote and its exit code.
func kubectl(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	path, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl, the oracle, is not installed")
	}
	cmd := exec.CommandContext(t.Context(), path, append([]string{"--kubeconfig", sandboxtest.Kubeconfig(t)}, args...)...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	err = cmd.Run()
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		return out.String(), errOut.String(), exited.ExitCode()
	}
	require.NoError(t, err)
	return out.String(), errOut.String(), 0
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

func TestACommandIsWhatItIsThroughKubectl(t *testing.T) {
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
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"exec", "-n", strings.Split(pathOf(t, pods), "/")[4], "web-0", "-i", "--"}
			wantOut, wantErr, wantCode := kubectl(t, c.stdin, append(args, c.command...)...)
			var stdout, stderr bytes.Buffer
			err := stream.Exec(t.Context(), pods, "web-0", &stream.ExecOptions{
				Command: c.command, Stdin: strings.NewReader(c.stdin), Stdout: &stdout, Stderr: &stderr,
			})
			assert.Equal(t, wantCode, codeOf(t, err), "%v", err)
			assert.True(t, wantOut == stdout.String(), "stdout: %d bytes, kubectl %d", stdout.Len(), len(wantOut))
			before, _, _ := strings.Cut(wantErr, "command terminated with")
			assert.True(t, before == stderr.String(), "stderr: %d bytes, kubectl %d", stderr.Len(), len(before))
		})
	}
}

func pathOf(t *testing.T, pods stream.Target) string {
	t.Helper()
	path, err := pods.Path("")
	require.NoError(t, err)
	return path
}
