package stream_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/stream"
)

// What the sandbox attaches an input to is a shell that runs each line.
func TestAttach_SameAsKubectl(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	large := strings.Repeat("0123456789abcdef", 200_000)
	for name, c := range map[string]struct{ stdin, stdout, stderr string }{
		"no input":         {"", "", ""},
		"both outputs":     {"echo out\necho err >&2\n", "out\n", "err\n"},
		"input to its end": {"cat; echo end\none\ntwo\n", "one\ntwo\nend\n", ""},
		"large":            {"cat\n" + large, large, ""},
		"binary":           {"cat\n\x00\xff\x01\r\n", "\x00\xff\x01\r\n", ""},
		"the process ends": {"echo out\nexit 7\necho more\n", "out\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			require.NoError(t, stream.Attach(t.Context(), pods, "web-0", &stream.AttachOptions{
				Stdin: strings.NewReader(c.stdin), Stdout: &stdout, Stderr: &stderr,
			}))
			assert.True(t, c.stdout == stdout.String(), "stdout: %d bytes, want %d", stdout.Len(), len(c.stdout))
			assert.Equal(t, c.stderr, stderr.String())
			out, errOut, code := kubectl(t, c.stdin, "attach", "-n", namespaceOf(t, pods), "web-0", "-i", "-q")
			assert.Zero(t, code)
			assert.True(t, out == stdout.String(), "stdout: %d bytes, kubectl %d", stdout.Len(), len(out))
			assert.Equal(t, errOut, stderr.String())
		})
	}
}

func TestAttach_Interactive(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	input, stdin := io.Pipe()
	stdout, output := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := stream.Attach(t.Context(), pods, "web-0", &stream.AttachOptions{Stdin: input, Stdout: output})
		_ = input.Close()
		_ = output.CloseWithError(err)
		ended <- err
	}()
	for _, word := range []string{"one", "two"} {
		_, err := io.WriteString(stdin, "echo "+word+"\n")
		require.NoError(t, err)
		response := make([]byte, len(word)+1)
		_, err = io.ReadFull(stdout, response)
		require.NoError(t, err)
		require.Equal(t, word+"\n", string(response))
	}
	_, err := io.WriteString(stdin, "cat; echo end\n")
	require.NoError(t, err)
	require.NoError(t, stdin.Close())
	rest, err := io.ReadAll(stdout)
	require.NoError(t, err)
	assert.Equal(t, "end\n", string(rest))
	require.NoError(t, <-ended)
}

// Whoever attaches without input is shown what is added to the log of the sandbox's containers.
func TestAttach_ShowsNewOutput(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	write := logged(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- stream.Attach(ctx, pods, "web-0", &stream.AttachOptions{Stdout: writer, Stderr: io.Discard})
	}()
	arrived := make(chan string, 1)
	go func() {
		text := make([]byte, len("hello"))
		_, _ = io.ReadFull(reader, text)
		arrived <- string(text)
		_, _ = io.Copy(io.Discard, reader)
	}()
	for {
		write("hello")
		select {
		case text := <-arrived:
			assert.Equal(t, "hello", text)
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
			_ = writer.Close()
			return
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
