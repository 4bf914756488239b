package stream_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/transport"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fault breaks the first connection of a server behind so many bytes of one direction.
type fault struct {
	mode     string // cut, stall or corrupt
	upward   bool   // what the client sends, instead of what the server does
	at       int
	released chan struct{} // ends what is stalled

	mu     sync.Mutex
	passed [2]int // bytes downward and upward
}

// faultyConn is the server's end of a connection.
type faultyConn struct {
	net.Conn
	*fault
}

var errCut = errors.New("the connection was cut")

func (c *faultyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p[:c.allowed(len(p), true)])
	return n, c.pass(p[:n], true, err)
}

func (c *faultyConn) Write(p []byte) (written int, err error) {
	for written < len(p) && err == nil {
		piece := bytes.Clone(p[written:][:c.allowed(len(p)-written, false)])
		if err = c.pass(piece, false, nil); err == nil {
			var n int
			n, err = c.Conn.Write(piece)
			written += n
		}
	}
	return written, err
}

// allowed returns how many bytes may pass before the fault, at least one.
func (c *faultyConn) allowed(n int, upward bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if upward == c.upward && c.passed[direction(upward)] < c.at {
		n = min(n, c.at-c.passed[direction(upward)])
	} else if upward == c.upward {
		n = min(n, 1)
	}
	return n
}

func direction(upward bool) int {
	if upward {
		return 1
	}
	return 0
}

// pass lets bytes go by, or breaks the connection.
func (c *faultyConn) pass(p []byte, upward bool, err error) error {
	c.mu.Lock()
	before := c.passed[direction(upward)]
	c.passed[direction(upward)] += len(p)
	c.mu.Unlock()
	if err != nil || len(p) == 0 || upward != c.upward || before < c.at || c.mode == "corrupt" && before > c.at {
		return err
	}
	switch c.mode {
	case "cut":
		_ = c.Close()
		return errCut
	case "stall":
		<-c.released
		return errCut
	case "corrupt":
		p[0] ^= 0x15
	}
	return nil
}

// faulted is serving with a fault.
func faulted(t *testing.T, f *fault, handler http.HandlerFunc, test func(t *testing.T, pods pods)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f.released = make(chan struct{})
		listener := &memory{conns: make(chan net.Conn), closed: make(chan struct{})}
		server := httptest.NewUnstartedServer(handler)
		require.NoError(t, server.Listener.Close())
		first := true
		server.Listener = wrappedListener{listener, func(conn net.Conn) net.Conn {
			if !first {
				return conn
			}
			first = false
			return &faultyConn{conn, f}
		}}
		server.Config.ErrorLog = discardLog()
		server.Start()
		defer server.Close()
		client := &http.Client{Transport: &http.Transport{DialContext: listener.dial}}
		conn, err := transport.New("http://server.test", client, nil)
		require.NoError(t, err)
		defer conn.Close()
		defer close(f.released)
		test(t, pods{conn})
	})
}

type wrappedListener struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

func (l wrappedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.wrap(conn), nil
}

// byteStep is how many bytes lie between two faults: ANYKIND_EVERY_BYTE=1 leaves none out, which takes a minute or two.
func byteStep() int {
	if os.Getenv("ANYKIND_EVERY_BYTE") != "" {
		return 1
	}
	return 47
}

// everyByte runs a call undisturbed, and then with each fault at each byte of both directions. The call checks its own
// result; each ends within the bound, and leaves no goroutine and no connection behind.
func everyByte(t *testing.T, bound time.Duration, handler http.HandlerFunc, call func(t *testing.T, pods pods, f *fault) error) {
	counts := map[string]int{}
	var mu sync.Mutex
	one := func(t *testing.T, f *fault) {
		t.Helper()
		faulted(t, f, handler, func(t *testing.T, pods pods) {
			begun := time.Now()
			err := call(t, pods, f)
			require.LessOrEqual(t, time.Since(begun), bound, "%s at byte %d, upward %v: %v", f.mode, f.at, f.upward, err)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				counts[f.mode+": right"]++
			} else {
				counts[f.mode+": error"]++
			}
		})
	}
	whole := &fault{at: 1 << 30}
	one(t, whole)
	require.Equal(t, 1, counts[": right"])
	require.Less(t, whole.passed[0]+whole.passed[1], 32<<10)
	t.Run("faults", func(t *testing.T) {
		for _, mode := range []string{"cut", "stall", "corrupt"} {
			t.Run(mode, func(t *testing.T) {
				t.Parallel()
				for _, upward := range []bool{false, true} {
					for at := 0; at < whole.passed[direction(upward)]; at += byteStep() {
						if one(t, &fault{mode: mode, upward: upward, at: at}); t.Failed() {
							t.Fatalf("%s at byte %d, upward %v", mode, at, upward)
						}
					}
				}
			})
		}
	})
	t.Logf("%d bytes down, %d up: %v", whole.passed[0], whole.passed[1], counts)
}

// trying is upgrading where that may fail.
func trying(script func(ws *websocket.Conn)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{Subprotocols: []string{v5}}
		ws, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.Close() }()
		_ = ws.SetReadDeadline(time.Now().Add(time.Minute))
		script(ws)
	}
}

// undetectable reports whether a fault may change a result without an error: nothing here has checksums, which TLS adds.
func (f *fault) undetectable() bool { return f.mode == "corrupt" }

func TestExec_EveryByte(t *testing.T) {
	everyByte(t, 70*time.Second, trying(func(ws *websocket.Conn) {
		text := strings.Join(hear(ws), "")
		say(ws, "\x01out:", "\x02err", "\x01"+text, success)
		goodbye(ws)
	}), func(t *testing.T, pods pods, f *fault) error {
		var stdout, stderr bytes.Buffer
		err := stream.Exec(t.Context(), pods, "web-0", &stream.ExecOptions{
			Command: []string{"cat"}, Stdin: strings.NewReader("input"), Stdout: &stdout, Stderr: &stderr,
		})
		if err == nil && !f.undetectable() {
			assert.Equal(t, "out:\x00input\xff\x00", stdout.String())
			assert.Equal(t, "err", stderr.String())
		}
		if err != nil {
			require.ErrorContains(t, err, `exec in pod "web-0": `)
		}
		return err
	})
}

// smallArchive is a folder named data with a file.
func smallArchive(t *testing.T) []byte {
	t.Helper()
	var text bytes.Buffer
	writer := tar.NewWriter(&text)
	for _, header := range []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "./data/", Mode: 0o755},
		{Typeflag: tar.TypeReg, Name: "./data/file", Mode: 0o644, Size: 4},
	} {
		require.NoError(t, writer.WriteHeader(header))
		if header.Size > 0 {
			_, err := io.WriteString(writer, "text")
			require.NoError(t, err)
		}
	}
	require.NoError(t, writer.Close())
	return text.Bytes()
}

func TestCopyFrom_EveryByte(t *testing.T) {
	archive, dir := smallArchive(t), t.TempDir()
	var copies atomic.Int64
	everyByte(t, 70*time.Second, trying(func(ws *websocket.Conn) {
		say(ws, "\x01"+string(archive), success)
		goodbye(ws)
		hear(ws)
	}), func(t *testing.T, pods pods, f *fault) error {
		local := filepath.Join(dir, fmt.Sprint(copies.Add(1)))
		err := stream.CopyFrom(t.Context(), pods, "web-0", "/data", local, nil)
		if err == nil && !f.undetectable() {
			requireFile(t, filepath.Join(local, "file"), "text")
		}
		if err != nil {
			require.ErrorContains(t, err, `copy from pod "web-0": `)
		}
		return err
	})
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(entries), int(copies.Load()), "nothing is written beside the copies")
}

func TestCopyTo_EveryByte(t *testing.T) {
	local := filepath.Join(t.TempDir(), "data")
	write(t, filepath.Join(local, "file"), "text")
	want := ""
	everyByte(t, 70*time.Second, trying(func(ws *websocket.Conn) {
		heard := hear(ws)
		switch text := strings.Join(heard, ""); {
		case want == "":
			want = text
			fallthrough
		case text == want:
			say(ws, success)
		default:
			say(ws, "\x02tar: damaged", exit3)
		}
		goodbye(ws)
	}), func(t *testing.T, pods pods, _ *fault) error {
		err := stream.CopyTo(t.Context(), pods, "web-0", local, "/data", nil)
		if err != nil {
			require.ErrorContains(t, err, `copy into pod "web-0": `)
		}
		return err
	})
}

func TestLogs_EveryByte(t *testing.T) {
	lines := ""
	for i := range 10 {
		lines += fmt.Sprintf("%s line %d\n", epoch.Add(time.Duration(i)*100*time.Millisecond).Format(stampFormat), i)
	}
	for _, follow := range []bool{false, true} {
		everyByte(t, 61*time.Minute, func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/log") {
				_, _ = io.WriteString(w, `{"metadata":{"uid":"u"},"spec":{"containers":[{"name":"app"}]},"status":{"containerStatuses":[{"name":"app","state":{"terminated":{}}}]}}`)
				return
			}
			for line := range strings.Lines(lines) {
				_, _ = io.WriteString(w, line)
				_ = http.NewResponseController(w).Flush()
			}
		}, func(t *testing.T, pods pods, f *fault) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			log, err := stream.Logs(ctx, pods, "web-0", &stream.LogOptions{Container: "app", Follow: follow, Timestamps: true})
			if err != nil {
				require.ErrorContains(t, err, `read the log of pod "web-0": `)
				return err
			}
			defer log.Close()
			text, err := io.ReadAll(log)
			switch {
			case f.undetectable():
			case err == nil:
				assert.Equal(t, lines, string(text))
			case len(text) > 0:
				assert.True(t, strings.HasPrefix(lines, string(text)), "%q", text)
				assert.True(t, errors.Is(err, io.ErrUnexpectedEOF) || f.mode == "stall" && errors.Is(err, context.DeadlineExceeded), "%v", err)
			}
			return err
		})
	}
}
