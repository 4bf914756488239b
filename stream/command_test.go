package stream_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/stream"
)

// speaking is a server whose commands all write to both outputs and exit with 3.
func speaking(t *testing.T) http.HandlerFunc {
	return upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
		send(ws, "\x01out ", "\x02err ", "\x01more", exit3)
		closeNormally(ws)
	}, v5)
}

func TestCmd_Output(t *testing.T) {
	serving(t, speaking(t), func(t *testing.T, pods pods) {
		out, err := stream.Command(t.Context(), pods, "web-0", "ls").Output()
		var exited *stream.ExitError
		require.ErrorAs(t, err, &exited)
		assert.Equal(t, "out more", string(out))
		assert.Equal(t, "err ", string(exited.Stderr))

		out, err = stream.Command(t.Context(), pods, "web-0", "ls").CombinedOutput()
		require.ErrorAs(t, err, &exited)
		assert.Equal(t, "out err more", string(out))
		assert.Empty(t, exited.Stderr)

		var stderr bytes.Buffer
		cmd := stream.Command(t.Context(), pods, "web-0", "ls")
		cmd.Stderr = &stderr
		_, err = cmd.Output()
		require.ErrorAs(t, err, &exited)
		assert.Equal(t, "err ", stderr.String())
		assert.Empty(t, exited.Stderr)
	})
}

func TestCmd_OutputKeepsEndOfStderr(t *testing.T) {
	serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
		for range 100 {
			send(ws, "\x02"+strings.Repeat("x", 1000))
		}
		send(ws, "\x02the reason", exit3)
		closeNormally(ws)
	}, v5), func(t *testing.T, pods pods) {
		_, err := stream.Command(t.Context(), pods, "web-0", "ls").Output()
		var exited *stream.ExitError
		require.ErrorAs(t, err, &exited)
		assert.Len(t, exited.Stderr, 32<<10)
		assert.True(t, bytes.HasSuffix(exited.Stderr, []byte("the reason")))
	})
}

func TestCmd_PipesEndWithCommand(t *testing.T) {
	serving(t, speaking(t), func(t *testing.T, pods pods) {
		cmd := stream.Command(t.Context(), pods, "web-0", "ls")
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		stderr, err := cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		errors := make(chan string)
		go func() {
			text, err := io.ReadAll(stderr)
			assert.NoError(t, err)
			errors <- string(text)
		}()
		out, err := io.ReadAll(stdout)
		require.NoError(t, err) // that it exits with 3 is Wait's to tell
		assert.Equal(t, "out more", string(out))
		assert.Equal(t, "err ", <-errors)
		var exited *stream.ExitError
		require.ErrorAs(t, cmd.Wait(), &exited)
	})
}

func TestCmd_PipesEndWithStartError(t *testing.T) {
	serving(t, func(w http.ResponseWriter, _ *http.Request) { reject(w, 404, "NotFound", "no such pod") }, func(t *testing.T, pods pods) {
		cmd := stream.Command(t.Context(), pods, "web-0", "ls")
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.ErrorContains(t, cmd.Start(), "no such pod")
		_, err = io.ReadAll(stdout)
		require.ErrorContains(t, err, "no such pod")
		_, err = io.WriteString(stdin, "x")
		require.ErrorIs(t, err, io.ErrClosedPipe)
		require.ErrorContains(t, cmd.Wait(), "no such pod")
	})
}

func TestCmd_Misuse(t *testing.T) {
	serving(t, speaking(t), func(t *testing.T, pods pods) {
		cmd := stream.Command(t.Context(), pods, "web-0", "ls")
		require.ErrorContains(t, cmd.Wait(), "not started")
		_, err := cmd.StdoutPipe()
		require.NoError(t, err)
		_, err = cmd.StdoutPipe()
		require.ErrorContains(t, err, "is set")
		_, err = cmd.Output()
		require.ErrorContains(t, err, "is set")
		_, err = cmd.CombinedOutput()
		require.ErrorContains(t, err, "is set")
		_, err = cmd.StdinPipe()
		require.NoError(t, err)
		_, err = cmd.StdinPipe()
		require.ErrorContains(t, err, "is set")

		cmd = stream.Command(t.Context(), pods, "web-0", "ls")
		require.Error(t, cmd.Run())
		require.ErrorContains(t, cmd.Run(), "started before")
		_, err = cmd.StdoutPipe()
		require.ErrorContains(t, err, "is started")
	})
}
