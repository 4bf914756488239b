package stream_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/stream"
)

func TestCmd_WaitEndsWithContext(t *testing.T) {
	serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
		for ws.WriteMessage(websocket.BinaryMessage, []byte("\x01"+strings.Repeat("x", 1000))) == nil {
			continue
		}
	}, v5), func(t *testing.T, pods pods) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cmd := stream.Command(ctx, pods, "web-0", "yes")
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = stdout.Read(make([]byte, 10))
		require.NoError(t, err)
		time.Sleep(time.Second)
		cancel(io.ErrNoProgress)
		err = cmd.Wait()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, io.ErrNoProgress)
		_, err = io.ReadAll(stdout)
		require.ErrorIs(t, err, context.Canceled)
		_, err = stdin.Write([]byte("x"))
		require.ErrorIs(t, err, io.ErrClosedPipe)
	})
}

func TestExec_RequestedOnceAfterUncertainResponses(t *testing.T) {
	var requests atomic.Int64
	for name, c := range map[string]struct {
		respond http.HandlerFunc
		most    int64
	}{
		"a gateway's time-out": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusGatewayTimeout)
			_, _ = io.WriteString(w, "<html>gateway timeout</html>")
		}, 1},
		"a stream without a protocol": {upgrading(t, func(ws *websocket.Conn, _ *http.Request) { receive(ws) }), 1},
		"another protocol": {func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Sec-WebSocket-Protocol", "other")
			upgrading(t, func(ws *websocket.Conn, _ *http.Request) { receive(ws) }, "other")(w, r)
		}, 1},
		"a refusal of the protocols": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			requests.Store(0)
			serving(t, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				c.respond(w, r)
			}, func(t *testing.T, pods pods) {
				require.Error(t, execLs(t, pods))
				assert.Equal(t, c.most, requests.Load())
			})
		})
	}
}

// slowStatus is a Status in so many messages.
func slowStatus(ws *websocket.Conn, count int, piece string) {
	send(ws, "\x03"+`{"status":"Failure","reason":"InternalError","message":"\"{`)
	for range count {
		if ws.WriteMessage(websocket.BinaryMessage, []byte("\x03"+piece)) != nil {
			return
		}
	}
	send(ws, "\x03"+`\\"}`)
	closeNormally(ws)
}

func TestExec_StatusInPieces(t *testing.T) {
	for name, c := range map[string]struct {
		count int
		piece string
		want  string
	}{
		"of one byte":      {100_000, "a", `exec in pod "web-0": "{aaaaaa`},
		"beyond the limit": {1 << 10, strings.Repeat("a", 1<<10), "the server's Status is larger than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) { slowStatus(ws, c.count, c.piece) }, v5), func(t *testing.T, pods pods) {
				err := execLs(t, pods)
				require.ErrorContains(t, err, c.want)
				assert.Less(t, len(err.Error()), 4096)
			})
		})
	}
}

func TestExec_InvalidStatus(t *testing.T) {
	for _, status := range []string{"{}", `{"status":7}`, "}", `{"status":"Success"]`, "[]"} {
		serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
			send(ws, "\x03"+status)
			closeNormally(ws)
		}, v5), func(t *testing.T, pods pods) {
			require.ErrorContains(t, execLs(t, pods), "before the exit status arrived: the server's Status", status)
		})
	}
}

// hostile is text that would take over a terminal.
const hostile = "\x1b]52;c;cm0gLXJmIC8K\x07\x1b[2J\nforged: \u202eline"

func TestExec_SanitizesRemoteText(t *testing.T) {
	long := strings.Repeat("x", 1<<16)
	for name, script := range map[string]func(ws *websocket.Conn){
		"a Status": func(ws *websocket.Conn) {
			send(ws, "\x03"+strings.Replace(strings.Replace(failure, "no such file: lss", `\u001b[2J\nforged: `+long, 1), "\x03", "", 1))
		},
		"a reason to close": func(ws *websocket.Conn) {
			_ = ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1011, hostile))
		},
		"what tar says": func(ws *websocket.Conn) {
			send(ws, "\x02"+hostile, "\x02"+long[:32000], exit3)
			closeNormally(ws)
		},
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) { script(ws); receive(ws) }, v5), func(t *testing.T, pods pods) {
				err := stream.CopyFrom(t.Context(), pods, "web-0", "/x", t.TempDir()+"/x", nil)
				require.ErrorContains(t, err, "forged: ")
				for _, control := range []string{"\x1b", "\x07", "\n", "\u202e"} {
					assert.NotContains(t, err.Error(), control)
				}
				assert.Less(t, len(err.Error()), 4096)
			})
		})
	}
}

func TestCmd_OutputHasLimit(t *testing.T) {
	serving(t, speaking(t), func(t *testing.T, pods pods) {
		for _, collect := range []func(*stream.Cmd) ([]byte, error){(*stream.Cmd).Output, (*stream.Cmd).CombinedOutput} {
			cmd := stream.Command(t.Context(), pods, "web-0", "ls")
			cmd.MaxOutput = 7
			out, err := collect(cmd)
			require.ErrorContains(t, err, "the output is larger than 7 bytes: read it from StdoutPipe, or set MaxOutput")
			assert.Equal(t, "out ", string(out)[:4])
		}
	})
}
