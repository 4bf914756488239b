package stream_test

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/stream"
)

// kubectl allocates no terminal without one of its own, and so is no oracle here.

func TestExec_TerminalSize(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	cmd := stream.Command(t.Context(), pods, "web-0",
		"sh", "-c", `read begin; while [ "$(stty size)" = "0 0" ]; do sleep 0.05; done; stty size; tty >/dev/null && echo terminal`)
	var stdout bytes.Buffer
	sizes := make(chan stream.TerminalSize)
	cmd.TTY = true
	cmd.Resize = sizes
	cmd.Stdout = &stdout
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	sizes <- stream.TerminalSize{Width: 101, Height: 33}
	close(sizes)
	_, err = io.WriteString(stdin, "go\n")
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	assert.Equal(t, "go\r\n33 101\r\nterminal\r\n", stdout.String())
}

func TestExec_TerminalWithoutStdin(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	cmd := stream.Command(t.Context(), pods, "web-0", "sh", "-c", "tty >/dev/null && echo terminal; echo error >&2; exit 3")
	cmd.TTY = true
	out, err := cmd.Output()
	assert.Equal(t, 3, codeOf(t, err))
	assert.Equal(t, "terminal\r\nerror\r\n", string(out))
}

func TestExec_TerminalOutput(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	var want strings.Builder
	for i := range 50_000 {
		want.WriteString(strconv.Itoa(i+1) + "\r\n")
	}
	cmd := stream.Command(t.Context(), pods, "web-0", "seq", "50000")
	cmd.TTY = true
	out, err := cmd.Output()
	require.NoError(t, err)
	assert.True(t, want.String() == string(out), "%d bytes of %d", len(out), want.Len())
}

// The shell hands over to sleep, for dash, while it starts a program, may miss the key.
func TestExec_TerminalInterrupt(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	cmd := stream.Command(t.Context(), pods, "web-0", "sh", "-c", "echo begun; exec sleep 600")
	cmd.TTY = true
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(stdout, make([]byte, len("begun\r\n")))
	require.NoError(t, err)
	_, err = io.WriteString(stdin, "\x03")
	require.NoError(t, err)
	rest, err := io.ReadAll(stdout)
	require.NoError(t, err)
	assert.Equal(t, "^C", string(rest))
	require.Equal(t, 130, codeOf(t, cmd.Wait()))
}

func TestAttach_TerminalSizes(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "terminal")
	keys, stdin := io.Pipe()
	stdout, screen := io.Pipe()
	sizes := make(chan stream.TerminalSize)
	ended := make(chan error, 1)
	go func() {
		err := stream.Attach(t.Context(), pods, "web-0", &stream.AttachOptions{Stdin: keys, Stdout: screen, TTY: true, Resize: sizes})
		_ = keys.Close()
		_ = screen.CloseWithError(err)
		ended <- err
	}()
	lines := bufio.NewReader(stdout)
	shows := func(typed string, want ...string) {
		t.Helper()
		_, err := io.WriteString(stdin, typed+"\n")
		require.NoError(t, err)
		for _, w := range append([]string{typed}, want...) {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, w+"\r\n", line)
		}
	}
	shows("tty >/dev/null && echo terminal", "terminal")
	sizes <- stream.TerminalSize{Width: 101, Height: 33}
	shows(`until [ "$(stty size)" = "33 101" ]; do sleep 0.05; done; echo large`, "large")
	sizes <- stream.TerminalSize{Width: 80, Height: 24}
	shows(`until [ "$(stty size)" = "24 80" ]; do sleep 0.05; done; echo small`, "small")
	shows("exit 7")
	_, err := io.Copy(io.Discard, lines)
	require.NoError(t, err)
	require.NoError(t, <-ended)
}
