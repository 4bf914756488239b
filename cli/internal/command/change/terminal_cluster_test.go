//go:build !windows

package change

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/cluster"
)

// terminal is anyctl in a terminal of its own.
type terminal struct {
	file *os.File
	cmd  *exec.Cmd
	done chan struct{} // the output has ended

	mu     sync.Mutex
	output bytes.Buffer
}

func buildAnyctl(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "anyctl")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/anykind/anykind/cli/cmd/anyctl").CombinedOutput()
	require.NoError(t, err, "%s", output)
	return path
}

func (e *env) terminal(t *testing.T, program string, columns uint16, args ...string) *terminal {
	t.Helper()
	args = append([]string{"--kubeconfig", cluster.Kubeconfig(t), "--cache-dir", t.TempDir(), "-n", e.namespace}, args...)
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "TERM=xterm")
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: columns})
	require.NoError(t, err)
	term := &terminal{file: file, cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(term.done)
		_, _ = io.Copy(term, file) // ends when the program closes its terminal
	}()
	t.Cleanup(func() { _ = file.Close(); <-term.done })
	return term
}

func (term *terminal) Write(p []byte) (int, error) {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.output.Write(p)
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.output.String()
}

func (term *terminal) awaitText(t *testing.T, pattern string) {
	t.Helper()
	want := regexp.MustCompile(pattern)
	require.Eventually(t, func() bool { return want.MatchString(term.text()) }, time.Minute, 20*time.Millisecond, "no %s in %q", pattern, term.text())
}

// interrupt types Ctrl-C and returns the exit code.
func (term *terminal) interrupt(t *testing.T) int {
	t.Helper()
	_, err := term.file.WriteString("\x03")
	require.NoError(t, err)
	return term.wait(t)
}

func (term *terminal) wait(t *testing.T) int {
	t.Helper()
	err := term.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	<-term.done
	return term.cmd.ProcessState.ExitCode()
}

func TestTerminal_Commands(t *testing.T) {
	cluster.Kubeconfig(t) // without a sandbox there is nothing to build for
	program := buildAnyctl(t)
	for name, test := range map[string]func(*testing.T, string){
		"wait is interrupted":           interruptWaitInTerminal,
		"rollout status is interrupted": interruptRolloutStatusInTerminal,
		"rollout status completes":      completeRolloutStatusInTerminal,
		"edit":                          editInTerminal,
	} {
		t.Run(name, func(t *testing.T) { test(t, program) })
	}
}

func interruptWaitInTerminal(t *testing.T, program string) {
	e := newEnv(t)
	e.apply(t, settings)
	term := e.terminal(t, program, 60, "wait", "--for=condition=Never", "cm/a", "--timeout=1h")
	term.awaitText(t, `waiting for configmaps "a": condition=Never: .*\((1|2)s\)`)
	assert.Equal(t, 130, term.interrupt(t))
	for line := range strings.SplitSeq(term.text(), "\n") {
		shown := regexp.MustCompile(`\x1b\[\d*[A-Z]|\r`).ReplaceAllString(line, "")
		assert.LessOrEqual(t, len([]rune(shown)), 60, "%q", shown)
	}
	assert.Regexp(t, `\x1b\[1A\x1b\[J[^a-z]*$`, term.text(), "the status line is removed at the end")
}

func interruptRolloutStatusInTerminal(t *testing.T, program string) {
	e := newEnv(t)
	e.apply(t, strings.ReplaceAll(editedDeployment, "spec: {containers", "spec: {nodeSelector: {none: none}, containers"))
	require.Equal(t, 0, e.run(t, "", "rollout", "resume", "deploy/web").code)
	term := e.terminal(t, program, 200, "rollout", "status", "deploy/web")
	term.awaitText(t, `0 of 1 updated replicas are available\.\.\. \(1s\)`)
	assert.Equal(t, 130, term.interrupt(t))
	assert.Regexp(t, `\x1b\[1A\x1b\[J[^a-z]*$`, term.text(), "the status line is removed at the end")
}

func completeRolloutStatusInTerminal(t *testing.T, program string) {
	e := newEnv(t)
	e.apply(t, strings.ReplaceAll(editedDeployment, "paused: true", "paused: false"))
	term := e.terminal(t, program, 80, "rollout", "status", "deploy/web")
	assert.Equal(t, 0, term.wait(t))
	assert.Regexp(t, `deployment "web" successfully rolled out\r\n$`, term.text())
}

func editInTerminal(t *testing.T, program string) {
	e := newEnv(t)
	e.apply(t, settings)
	t.Setenv("KUBE_EDITOR", script(t, `test -t 0 && test -t 1 && sed -i 's/port: .*/port: "81"/' "$1"`))
	term := e.terminal(t, program, 80, "edit", "cm/a")
	assert.Equal(t, 0, term.wait(t), term.text())
	assert.Equal(t, "81", e.get(t, "configmaps", "a", "data.port"))
}
