package stream_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/memconn"
	"github.com/anykind/anykind/stream"
)

// byteTest is a call that runs undisturbed, and then with each fault at each byte of both directions of a connection. The call
// checks its own result and names it; "right" is the one without a fault. Each ends within the bound, and leaves no goroutine
// and no connection behind.
type byteTest struct {
	handler func(t *testing.T, f memconn.Fault) http.HandlerFunc
	call    func(t *testing.T, pods pods, f memconn.Fault) (outcome string)
	bound   time.Duration
	conn    int    // the connection with the fault, from 1
	step    int    // bytes between two faults
	flips   []byte // bits that are flipped
}

func (b byteTest) run(t *testing.T) {
	var mu sync.Mutex
	counts := map[string]int{}
	down, up := b.runFault(t, memconn.Fault{Conn: b.conn}, func(outcome string) { require.Equal(t, "right", outcome) })
	require.Less(t, down+up, 32<<10)
	faults := []memconn.Fault{{Kind: memconn.Cut}, {Kind: memconn.Stall}}
	for _, flip := range b.flips {
		faults = append(faults, memconn.Fault{Kind: memconn.Corrupt, Flip: flip})
	}
	t.Run("faults", func(t *testing.T) {
		for _, f := range faults {
			for _, upward := range []bool{false, true} {
				f := f
				size := down
				if f.Upward = upward; upward {
					size = up
				}
				t.Run(fmt.Sprintf("%s %02x upward %v", f.Kind, f.Flip, f.Upward), func(t *testing.T) {
					t.Parallel()
					f.Conn = b.conn
					for f.At = 0; f.At < size && !t.Failed(); f.At += b.step {
						b.runFault(t, f, func(outcome string) {
							mu.Lock()
							defer mu.Unlock()
							counts[string(f.Kind)+": "+outcome]++
						})
					}
				})
			}
		}
	})
	t.Logf("%d bytes down, %d up: %v", down, up, counts)
}

// runFault runs the call with one fault, in a bubble, and returns the size of the connection.
func (b byteTest) runFault(t *testing.T, f memconn.Fault, record func(outcome string)) (down, up int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		listener, conn, stop := memconn.Serve(t, b.handler(t, f), f, nil)
		begun := time.Now()
		outcome := b.call(t, pods{conn}, f)
		require.LessOrEqual(t, time.Since(begun), b.bound, "%v: %s", f, outcome)
		record(outcome)
		time.Sleep(10 * time.Second) // for a tunnel's close
		conn.Close()
		synctest.Wait()
		assert.Zero(t, listener.Open(), "%v: connections that are left", f)
		down, up = listener.Transferred()
		stop()
		if t.Failed() {
			t.Logf("%v: %s", f, outcome)
		}
	})
	return down, up
}

// scriptedFaults returns the handler of a byteTest that opens each stream and then acts by the script. A handshake may fail.
func scriptedFaults(script func(ws *websocket.Conn)) func(*testing.T, memconn.Fault) http.HandlerFunc {
	return func(*testing.T, memconn.Fault) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			ws, err := (&websocket.Upgrader{Subprotocols: []string{v5}}).Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer func() { _ = ws.Close() }()
			_ = ws.SetReadDeadline(time.Now().Add(time.Minute))
			script(ws)
		}
	}
}

// outcomeOf names the result of a call, whose errors all begin with a prefix.
func outcomeOf(t *testing.T, err error, prefix string) string {
	if err == nil {
		return "right"
	}
	require.ErrorContains(t, err, prefix)
	return "error"
}

// isSilent reports whether a fault may change a result without an error: nothing here has checksums, which TLS adds.
func isSilent(f memconn.Fault) bool { return f.Kind == memconn.Corrupt }

func TestExec_EveryByte(t *testing.T) {
	byteTest{bound: 70 * time.Second, conn: 1, step: memconn.Step(47), flips: []byte{0x15}, handler: scriptedFaults(func(ws *websocket.Conn) {
		text := strings.Join(receive(ws), "")
		send(ws, "\x01out:", "\x02err", "\x01"+text, success)
		closeNormally(ws)
	}), call: func(t *testing.T, pods pods, f memconn.Fault) string {
		var stdout, stderr bytes.Buffer
		err := stream.Exec(t.Context(), pods, "web-0", &stream.ExecOptions{
			Command: []string{"cat"}, Stdin: strings.NewReader("input"), Stdout: &stdout, Stderr: &stderr,
		})
		if err == nil && !isSilent(f) {
			assert.Equal(t, "out:\x00input\xff\x00", stdout.String())
			assert.Equal(t, "err", stderr.String())
		}
		return outcomeOf(t, err, `exec in pod "web-0": `)
	}}.run(t)
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
	archive := smallArchive(t)
	dir := t.TempDir()
	var copies atomic.Int64
	byteTest{bound: 70 * time.Second, conn: 1, step: memconn.Step(47), flips: []byte{0x15}, handler: scriptedFaults(func(ws *websocket.Conn) {
		send(ws, "\x01"+string(archive), success)
		closeNormally(ws)
		receive(ws)
	}), call: func(t *testing.T, pods pods, f memconn.Fault) string {
		local := filepath.Join(dir, fmt.Sprint(copies.Add(1)))
		err := stream.CopyFrom(t.Context(), pods, "web-0", "/data", local, nil)
		if err == nil && !isSilent(f) {
			requireFile(t, filepath.Join(local, "file"), "text")
		}
		return outcomeOf(t, err, `copy from pod "web-0": `)
	}}.run(t)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(entries), int(copies.Load()), "nothing but the copies is written")
}

func TestCopyTo_EveryByte(t *testing.T) {
	local := filepath.Join(t.TempDir(), "data")
	write(t, filepath.Join(local, "file"), "text")
	want := ""
	byteTest{bound: 70 * time.Second, conn: 1, step: memconn.Step(47), flips: []byte{0x15}, handler: scriptedFaults(func(ws *websocket.Conn) {
		received := receive(ws)
		switch text := strings.Join(received, ""); {
		case want == "":
			want = text
			fallthrough
		case text == want:
			send(ws, success)
		default:
			send(ws, "\x02tar: damaged", exit3)
		}
		closeNormally(ws)
	}), call: func(t *testing.T, pods pods, _ memconn.Fault) string {
		err := stream.CopyTo(t.Context(), pods, "web-0", local, "/data", nil)
		return outcomeOf(t, err, `copy into pod "web-0": `)
	}}.run(t)
}

func TestLogs_EveryByte(t *testing.T) {
	lines := ""
	for i := range 10 {
		lines += fmt.Sprintf("%s line %d\n", epoch.Add(time.Duration(i)*100*time.Millisecond).Format(stampFormat), i)
	}
	for _, follow := range []bool{false, true} {
		byteTest{bound: 61 * time.Minute, conn: 1, step: memconn.Step(47), flips: []byte{0x15}, handler: func(*testing.T, memconn.Fault) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, "/log") {
					_, _ = io.WriteString(w, `{"metadata":{"uid":"u"},"spec":{"containers":[{"name":"app"}]},"status":{"containerStatuses":[{"name":"app","state":{"terminated":{}}}]}}`)
					return
				}
				for line := range strings.Lines(lines) {
					_, _ = io.WriteString(w, line)
					_ = http.NewResponseController(w).Flush()
				}
			}
		}, call: func(t *testing.T, pods pods, f memconn.Fault) string {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			log, err := stream.Logs(ctx, pods, "web-0", &stream.LogOptions{Container: "app", Follow: follow, Timestamps: true})
			if err != nil {
				return outcomeOf(t, err, `read the log of pod "web-0": `)
			}
			defer log.Close()
			text, err := io.ReadAll(log)
			switch {
			case isSilent(f):
			case err == nil:
				assert.Equal(t, lines, string(text))
			case len(text) > 0:
				assert.True(t, strings.HasPrefix(lines, string(text)), "%q", text)
				assert.True(t, errors.Is(err, io.ErrUnexpectedEOF) || f.Kind == memconn.Stall && errors.Is(err, context.DeadlineExceeded), "%v", err)
			}
			return outcomeOf(t, err, "")
		}}.run(t)
	}
}

const (
	portQuestion = "hello, pod"
	portResponse = "hello, client"
)

// portOutcome is the result of one connection.
type portOutcome struct {
	err      error
	response string
	dialed   time.Duration // until there was a connection, or none
	took     time.Duration // after that
}

// portBound is how long a client may wait for a result from a peer that does not respond.
const portBound = 62 * time.Second

// clientDeadline is the deadline of a client that waits for bytes that never arrive, from a peer that responds to pings.
const clientDeadline = 3 * time.Minute

// askPort opens a connection, sends the request and reads the response.
func askPort(t *testing.T, pods pods) (seen portOutcome) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), portBound) // the handshake has no time-out of its own
	defer cancel()
	conn, err := stream.DialPort(ctx, pods, "web-0", 80)
	seen.dialed = time.Since(begin)
	if err != nil {
		seen.err = err
		return seen
	}
	defer closed(t, conn)
	begin = time.Now()
	defer func() { seen.took = time.Since(begin) }()
	require.NoError(t, conn.SetDeadline(begin.Add(clientDeadline)))
	if _, seen.err = io.WriteString(conn, portQuestion); seen.err != nil {
		return seen
	}
	_ = conn.(halfCloser).CloseWrite()
	response, err := io.ReadAll(conn)
	seen.response = string(response)
	seen.err = err
	return seen
}

// respondingPort is a server whose pods respond to the request. It closes the connection at the first invalid frame.
func respondingPort(t *testing.T, f memconn.Fault) http.HandlerFunc {
	return unreadable(func(w http.ResponseWriter, r *http.Request) {
		ws, err := (&websocket.Upgrader{Subprotocols: []string{tunnelProtocol}}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.Close() }()
		n := &node{ws: ws}
		streams := 0
		asked := ""
		for {
			frame, ok := n.strict()
			switch {
			case !ok:
				return
			case frame.kind == syn:
				streams++
				kind := map[uint32]string{1: "error", 3: "data"}[frame.stream]
				if !bytes.Contains(frame.payload, []byte("streamtype\x00\x00\x00"+string(rune(len(kind)))+kind)) ||
					!bytes.Contains(frame.payload, []byte("port\x00\x00\x00\x0280")) {
					n.control(rst, frame.stream, 1)
					continue
				}
				n.control(reply, frame.stream)
			case frame.kind == rst:
				return
			case frame.kind == 0 && frame.stream == 3:
				asked += string(frame.payload)
				if frame.flags&fin != 0 {
					if !isSilent(f) {
						assert.Equal(t, portQuestion, asked, "%v", f)
					}
					n.data(3, 0, portResponse[:5])
					n.data(3, 0, portResponse[5:])
					n.data(3, fin, "")
					n.data(1, fin, "")
				}
			}
		}
	})
}

// strict reads a frame as a node does that ends the tunnel at the first one that makes no sense.
func (n *node) strict() (f frame, ok bool) {
	for {
		header := make([]byte, 8)
		if _, err := io.ReadFull(n, header); err != nil {
			return f, false
		}
		first := binary.BigEndian.Uint32(header)
		second := binary.BigEndian.Uint32(header[4:])
		if second&0xffffff > 1<<20 {
			return f, false
		}
		f = frame{stream: first, flags: header[4], payload: make([]byte, second&0xffffff)}
		if _, err := io.ReadFull(n, f.payload); err != nil {
			return f, false
		}
		if first>>31 == 1 {
			if first>>16 != 0x8003 || len(f.payload) < 4 {
				return f, false
			}
			f.kind = uint16(first)
			f.stream = binary.BigEndian.Uint32(f.payload)
		}
		if f.kind != ping {
			return f, true
		}
		n.control(ping, f.stream)
	}
}

// differingBytes counts the bytes in which a text differs from another of its length; -1 if it has another length.
func differingBytes(a, b string) (count int) {
	if len(a) != len(b) {
		return -1
	}
	for i := range len(a) {
		if a[i] != b[i] {
			count++
		}
	}
	return count
}

func TestDialPort_EveryByte(t *testing.T) {
	byteTest{
		bound: portBound + clientDeadline, conn: 2, step: 1, flips: []byte{1, 0x80}, handler: respondingPort, // a request for the pod is the first
		call: func(t *testing.T, pods pods, f memconn.Fault) string { return checkPortOutcome(t, f, askPort(t, pods)) },
	}.run(t)
}

// checkPortOutcome checks one outcome and names its class.
func checkPortOutcome(t *testing.T, f memconn.Fault, seen portOutcome) string {
	t.Helper()
	assert.LessOrEqual(t, seen.dialed, portBound, "%v: %v", f, seen.err)
	assert.LessOrEqual(t, seen.took, clientDeadline, "%v: %v", f, seen.err)
	if !isSilent(f) {
		assert.LessOrEqual(t, seen.took, portBound, "%v: %v", f, seen.err)
		assert.True(t, strings.HasPrefix(portResponse, seen.response), "%v: %q", f, seen.response)
	}
	switch {
	case seen.err == nil && isSilent(f) && seen.response != portResponse:
		// A byte of the response may differ, or a length too long.
		assert.True(t, differingBytes(portResponse, seen.response) == 1 || strings.HasPrefix(seen.response, portResponse), "%v: %q", f, seen.response)
		return "a wrong response, undetected"
	case seen.err == nil:
		assert.Equal(t, portResponse, seen.response, "%v", f)
		return "right"
	case seen.took >= clientDeadline:
		require.ErrorIs(t, seen.err, os.ErrDeadlineExceeded, "%v", f)
		return "the caller's deadline"
	default:
		return "an error"
	}
}
