package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/stream"
)

var ls = []string{"ls"}

func TestExec_Request(t *testing.T) {
	for name, c := range map[string]struct {
		opts stream.ExecOptions
		want url.Values
	}{
		"nothing of its output": {
			stream.ExecOptions{Command: []string{"ls", "-l", "a b&c"}},
			url.Values{"command": {"ls", "-l", "a b&c"}, "stdout": {"true"}},
		},
		"its input alone": {
			stream.ExecOptions{Command: ls, Stdin: strings.NewReader("")}, url.Values{"command": ls, "stdin": {"true"}},
		},
		"both outputs in a container": {
			stream.ExecOptions{Command: ls, Container: "web", Stdout: io.Discard, Stderr: io.Discard},
			url.Values{"command": ls, "container": {"web"}, "stdout": {"true"}, "stderr": {"true"}},
		},
		"a terminal has one output": {
			stream.ExecOptions{Command: ls, Stderr: io.Discard, TTY: true},
			url.Values{"command": ls, "stdout": {"true"}, "tty": {"true"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, upgrading(t, func(ws *websocket.Conn, r *http.Request) {
				assert.Equal(t, "/api/v1/namespaces/shop/pods/web-0/exec", r.URL.Path)
				assert.Equal(t, c.want, r.URL.Query())
				assert.Equal(t, "v5.channel.k8s.io", r.Header.Get("Sec-WebSocket-Protocol"))
				send(ws, success)
				closeNormally(ws)
			}, v5), func(t *testing.T, pods pods) {
				require.NoError(t, stream.Exec(t.Context(), pods, "web-0", &c.opts))
			})
		})
	}
}

func TestExec_InvalidWithoutRequest(t *testing.T) {
	serving(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was made") }, func(t *testing.T, pods pods) {
		require.ErrorContains(t, stream.Exec(t.Context(), pods, "web-0", nil), "no command")
		require.ErrorContains(t, stream.Exec(t.Context(), pods, "", &stream.ExecOptions{Command: ls}), "the name is empty")
		require.ErrorContains(t, stream.Attach(t.Context(), pods, "", nil), "the name is empty")
	})
}

func TestExec_ExitStatus(t *testing.T) {
	for name, c := range map[string]struct {
		messages []string
		check    func(t *testing.T, err error)
	}{
		"success":              {[]string{success}, func(t *testing.T, err error) { require.NoError(t, err) }},
		"an empty greeting":    {[]string{"\x01", "", success}, func(t *testing.T, err error) { require.NoError(t, err) }},
		"in pieces":            {[]string{success[:9], "\x03" + success[9:]}, func(t *testing.T, err error) { require.NoError(t, err) }},
		"an unknown channel":   {[]string{"\x09new", "\xff\x01", success}, func(t *testing.T, err error) { require.NoError(t, err) }},
		"the first one counts": {[]string{exit3, success}, func(t *testing.T, err error) { require.Error(t, err) }},
		"exit code": {[]string{exit3}, func(t *testing.T, err error) {
			var exited *stream.ExitError
			require.ErrorAs(t, err, &exited)
			assert.Equal(t, 3, exited.Code)
			assert.EqualError(t, err, "the command ended with exit code 3")
		}},
		"it could not run": {[]string{failure}, func(t *testing.T, err error) {
			require.True(t, apierrors.IsInternalError(err), "%v", err)
			assert.EqualError(t, err, `exec in pod "web-0": no such file: lss`)
		}},
		"an exit code that is none": {[]string{strings.Replace(exit3, `"3"`, `"three"`, 1)}, func(t *testing.T, err error) {
			var status apierrors.APIStatus
			require.ErrorAs(t, err, &status)
		}},
		"none": {[]string{"\x01half"}, func(t *testing.T, err error) {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.ErrorContains(t, err, "before the exit status arrived")
		}},
		"none that is whole": {[]string{success[:20]}, func(t *testing.T, err error) { require.ErrorIs(t, err, io.ErrUnexpectedEOF) }},
		"one without end": {[]string{"\x03" + strings.Repeat(" ", 1<<20), "\x03 "}, func(t *testing.T, err error) {
			require.ErrorContains(t, err, "larger than 1 MiB")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
				send(ws, c.messages...)
				closeNormally(ws)
			}, v5), func(t *testing.T, pods pods) {
				c.check(t, stream.Exec(t.Context(), pods, "web-0", &stream.ExecOptions{Command: ls}))
			})
		})
	}
}

func TestExec_ConnectionEndsWithoutStatus(t *testing.T) {
	for name, end := range map[string]func(*websocket.Conn){
		"well": closeNormally,
		"going": func(ws *websocket.Conn) {
			_ = ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1001, ""))
		},
		"cut off": func(*websocket.Conn) {},
		"within a message": func(ws *websocket.Conn) {
			_, _ = ws.NetConn().Write([]byte{0x82, 100, 1, 'x'})
		},
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
				send(ws, "\x01part")
				end(ws)
			}, v5), func(t *testing.T, pods pods) {
				cmd := stream.Command(t.Context(), pods, "web-0", "ls")
				stdout, err := cmd.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, cmd.Start())
				text, err := io.ReadAll(stdout)
				assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
				assert.Contains(t, string(text), "part")
				assert.ErrorIs(t, cmd.Wait(), io.ErrUnexpectedEOF)
			})
		})
	}
}

func TestExec_ProtocolErrors(t *testing.T) {
	for name, frame := range map[string][]byte{
		"text":              {0x81, 2, 1, 'x'},
		"reserved bits":     {0xf2, 2, 1, 'x'},
		"a masked frame":    {0x82, 0x82, 0, 0, 0, 0, 1, 'x'},
		"a huge frame":      {0x82, 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"a bad close":       {0x88, 1, 7},
		"an endless length": {0x82, 126, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
				_, _ = ws.NetConn().Write(frame)
			}, v5), func(t *testing.T, pods pods) {
				err := stream.Exec(t.Context(), pods, "web-0", &stream.ExecOptions{Command: ls})
				require.ErrorContains(t, err, `exec in pod "web-0": the connection broke`)
			})
		})
	}
}

func TestExec_SendsStdin(t *testing.T) {
	serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
		send(ws, "\x01"+strings.Join(receive(ws), "|"), success)
		closeNormally(ws)
	}, v5), func(t *testing.T, pods pods) {
		cmd := stream.Command(t.Context(), pods, "web-0", "cat")
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		var stdout bytes.Buffer
		cmd.Stdout = &stdout
		require.NoError(t, cmd.Start())
		_, err = io.WriteString(stdin, "one")
		require.NoError(t, err)
		_, err = io.WriteString(stdin, "two")
		require.NoError(t, err)
		require.NoError(t, stdin.Close())
		require.NoError(t, cmd.Wait())
		assert.Equal(t, "\x00one|\x00two|\xff\x00", stdout.String())
		_, err = io.WriteString(stdin, "more")
		assert.ErrorIs(t, err, io.ErrClosedPipe)
	})
}

func TestExec_UnreadStdin(t *testing.T) {
	serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
		send(ws, exit3)
		closeNormally(ws)
	}, v5), func(t *testing.T, pods pods) {
		endless, end := io.Pipe() // never gives anything
		defer func() { _ = end.Close() }()
		for _, stdin := range []io.Reader{strings.NewReader(strings.Repeat("x", 1<<20)), endless} {
			err := stream.Exec(t.Context(), pods, "web-0", &stream.ExecOptions{Command: ls, Stdin: stdin})
			var exited *stream.ExitError
			require.ErrorAs(t, err, &exited)
		}
	})
}

func TestExec_StreamErrorsEndCommand(t *testing.T) {
	broken := errors.New("disk full")
	serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
		send(ws, "\x01out")
		receive(ws)
	}, v5), func(t *testing.T, pods pods) {
		err := stream.Exec(t.Context(), pods, "web-0", &stream.ExecOptions{Command: ls, Stdout: failingStream{broken}})
		require.ErrorIs(t, err, broken)
		require.EqualError(t, err, `exec in pod "web-0": write stdout: disk full`)
		err = stream.Exec(t.Context(), pods, "web-0", &stream.ExecOptions{Command: ls, Stdin: failingStream{broken}})
		require.EqualError(t, err, `exec in pod "web-0": read stdin: disk full`)

		cmd := stream.Command(t.Context(), pods, "web-0", "ls")
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		require.NoError(t, stdout.Close())
		require.ErrorIs(t, cmd.Wait(), io.ErrClosedPipe)
	})
}

type failingStream struct{ err error }

func (f failingStream) Write([]byte) (int, error) { return 0, f.err }
func (f failingStream) Read([]byte) (int, error)  { return 0, f.err }

func TestExec_SendsTerminalSizes(t *testing.T) {
	serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
		for range 2 {
			_, message, err := ws.ReadMessage()
			assert.NoError(t, err)
			send(ws, "\x01"+string(message))
		}
		send(ws, success)
		closeNormally(ws)
	}, v5), func(t *testing.T, pods pods) {
		sizes := make(chan stream.TerminalSize, 2)
		sizes <- stream.TerminalSize{Width: 80, Height: 24}
		sizes <- stream.TerminalSize{Width: 132, Height: 43}
		var stdout bytes.Buffer
		err := stream.Exec(t.Context(), pods, "web-0", &stream.ExecOptions{Command: ls, Stdout: &stdout, TTY: true, Resize: sizes})
		require.NoError(t, err)
		assert.Equal(t, "\x04"+`{"Width":80,"Height":24}`+"\x04"+`{"Width":132,"Height":43}`, stdout.String())
	})
}

func TestExec_ContextClosesConnection(t *testing.T) {
	received := make(chan []string, 1)
	cause := errors.New("lunch")
	for name, begin := range map[string]func(context.Context) (context.Context, context.CancelFunc, error){
		"cancelled": func(ctx context.Context) (context.Context, context.CancelFunc, error) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Hour, cancel)
			return ctx, cancel, context.Canceled
		},
		"late": func(ctx context.Context) (context.Context, context.CancelFunc, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			return ctx, cancel, context.DeadlineExceeded
		},
		"for a cause": func(ctx context.Context) (context.Context, context.CancelFunc, error) {
			ctx, cancel := context.WithTimeoutCause(ctx, time.Hour, cause)
			return ctx, cancel, cause
		},
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
				send(ws, "\x01begun")
				received <- receive(ws)
			}, v5), func(t *testing.T, pods pods) {
				ctx, cancel, want := begin(t.Context())
				defer cancel()
				cmd := stream.Command(ctx, pods, "web-0", "sleep")
				stdout, err := cmd.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, cmd.Start())
				text, err := io.ReadAll(stdout)
				assert.Equal(t, "begun", string(text))
				require.ErrorIs(t, err, want)
				require.ErrorIs(t, cmd.Wait(), want)
				require.ErrorIs(t, cmd.Wait(), ctx.Err())
				assert.Empty(t, <-received)
			})
		})
	}
}

func TestExec_ContextEndsHandshake(t *testing.T) {
	serving(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(t *testing.T, pods pods) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err := stream.Exec(ctx, pods, "web-0", &stream.ExecOptions{Command: ls})
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestExec_VanishedServerTimesOut(t *testing.T) {
	var gone chan struct{}
	serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
		send(ws, "\x01begun")
		<-gone // without a response, as after a cut cable
	}, v5), func(t *testing.T, pods pods) {
		gone = make(chan struct{})
		defer close(gone)
		begin := time.Now()
		err := stream.Exec(t.Context(), pods, "web-0", &stream.ExecOptions{Command: ls})
		require.ErrorContains(t, err, "has sent nothing for 1m1s")
		assert.Equal(t, 61*time.Second, time.Since(begin))
	})
}

func TestExec_TimeoutNamesUnreadStdin(t *testing.T) {
	var gone chan struct{}
	serving(t, upgrading(t, func(*websocket.Conn, *http.Request) { <-gone }, v5), func(t *testing.T, pods pods) {
		gone = make(chan struct{})
		defer close(gone)
		err := stream.Exec(t.Context(), pods, "web-0", &stream.ExecOptions{Command: ls, Stdin: strings.NewReader("x")})
		require.ErrorContains(t, err, "a command that leaves it unread for so long keeps the server from responding")
	})
}

func TestExec_IdleCommandWithPings(t *testing.T) {
	var pings atomic.Int64
	serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
		respond := ws.PingHandler()
		ws.SetPingHandler(func(text string) error {
			pings.Add(1)
			return respond(text)
		})
		_ = ws.WriteControl(websocket.PingMessage, []byte("and you?"), time.Time{})
		ponged := ""
		ws.SetPongHandler(func(text string) error {
			ponged = text
			return nil
		})
		time.AfterFunc(time.Hour, func() {
			send(ws, "\x01"+ponged, success)
			closeNormally(ws)
		})
		receive(ws)
	}, v5), func(t *testing.T, pods pods) {
		out, err := stream.Command(t.Context(), pods, "web-0", "sleep").Output()
		require.NoError(t, err)
		assert.Equal(t, "and you?", string(out))
		assert.InDelta(t, 720, pings.Load(), 1)
	})
}

func TestExec_SlowWriterIsNoTimeout(t *testing.T) {
	serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
		ws.SetPingHandler(func(string) error { return nil }) // gorilla's gives up after a second
		go receive(ws)
		for range 3 {
			send(ws, "\x01"+strings.Repeat("x", 100))
		}
		send(ws, success)
		closeNormally(ws)
	}, v5), func(t *testing.T, pods pods) {
		slow := &slowly{}
		require.NoError(t, stream.Exec(t.Context(), pods, "web-0", &stream.ExecOptions{Command: ls, Stdout: slow}))
		assert.Equal(t, 300, slow.written)
	})
}

// slowly is a writer that takes an hour for each write.
type slowly struct{ written int }

func (s *slowly) Write(text []byte) (int, error) {
	time.Sleep(time.Hour)
	s.written += len(text)
	return len(text), nil
}

func TestExec_ServerKeepsConnectionOpen(t *testing.T) {
	serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
		send(ws, success, "\x01late")
		receive(ws)
	}, v5), func(t *testing.T, pods pods) {
		begin := time.Now()
		out, err := stream.Command(t.Context(), pods, "web-0", "ls").Output()
		require.NoError(t, err)
		assert.Equal(t, "late", string(out))
		assert.Equal(t, 5*time.Second, time.Since(begin))
	})
}
