package bench_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"hash"
	"hash/crc32"
	"io"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/transport"
)

const execStatus = "\x03" + `{"metadata":{},"status":"Success"}`

// echo is an API server over TLS on which every command is cat: it measures the client, with one server for both sides.
func echo(b testing.TB) *httptest.Server {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}, ReadBufferSize: 64 << 10, WriteBufferSize: 64 << 10}
		ws, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.Close() }()
		if r.FormValue("command") == "hello" {
			_ = ws.WriteMessage(websocket.BinaryMessage, []byte("\x01hello"))
		}
		var message bytes.Buffer
		for r.FormValue("stdin") != "" {
			_, reader, err := ws.NextReader()
			if err != nil {
				return
			}
			message.Reset()
			if _, err := message.ReadFrom(reader); err != nil {
				return
			}
			data := message.Bytes()
			if data[0] == 255 {
				break
			}
			if data[0] == 0 {
				data[0] = 1
				if ws.WriteMessage(websocket.BinaryMessage, data) != nil {
					return
				}
			}
		}
		_ = ws.WriteMessage(websocket.BinaryMessage, []byte(execStatus))
		_ = ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
	}))
	b.Cleanup(server.Close)
	return server
}

// execPods returns a handle on the pods of a server.
type execPods struct{ conn *transport.Conn }

func (p execPods) Path(name string) (string, error) {
	return "/api/v1/namespaces/default/pods/" + name, nil
}
func (p execPods) Conn() *transport.Conn { return p.conn }

// execute runs a command on one side.
type execute func(ctx context.Context, command string, stdin io.Reader, stdout io.Writer) error

// executors returns both sides, for one server.
func executors(b testing.TB, config *rest.Config, conn *transport.Conn, pod string) map[string]execute {
	path := "/api/v1/namespaces/default/pods/" + pod + "/exec"
	return map[string]execute{
		"anykind": func(ctx context.Context, command string, stdin io.Reader, stdout io.Writer) error {
			return stream.Exec(ctx, execPods{conn}, pod, &stream.ExecOptions{
				Command: []string{command}, Stdin: stdin, Stdout: stdout,
			})
		},
		"client-go": func(ctx context.Context, command string, stdin io.Reader, stdout io.Writer) error {
			query := url.Values{"command": {command}, "stdout": {"true"}}
			if stdin != nil {
				query.Set("stdin", "true")
			}
			executor, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, config.Host+path+"?"+query.Encode())
			if err != nil {
				return err
			}
			return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout})
		},
	}
}

func echoExecutors(b testing.TB) map[string]execute {
	server := echo(b)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	conn, err := transport.Open(&transport.Config{Server: server.URL, CAData: authority})
	require.NoError(b, err)
	b.Cleanup(conn.Close)
	return executors(b, &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}, conn, "web-0")
}

// sides runs a benchmark for both sides, ours first.
func sides(b *testing.B, both map[string]execute, measure func(b *testing.B, run execute)) {
	for _, side := range []string{"anykind", "client-go"} {
		b.Run(side, func(b *testing.B) { measure(b, both[side]) })
	}
}

// BenchmarkExecGigabyte sends a GiB to a command that echoes it, and compares checksums. With -benchtime 3x it sends
// three.
func BenchmarkExecGigabyte(b *testing.B) { sides(b, echoExecutors(b), gigabyte) }

func gigabyte(b *testing.B, run execute) {
	const size = 1 << 30
	block := make([]byte, 1<<20)
	_, _ = rand.New(rand.NewSource(1)).Read(block)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		table := crc32.MakeTable(crc32.Castagnoli)
		sent := &checksumWriter{Hash32: crc32.New(table)}
		came := &checksumWriter{Hash32: crc32.New(table)}
		stdin := io.TeeReader(io.LimitReader(&repeatingReader{block: block}, size), sent)
		if err := run(b.Context(), "cat", stdin, came); err != nil {
			b.Fatal(err)
		}
		if came.size != size || came.Sum32() != sent.Sum32() {
			b.Fatalf("%d bytes came back, checksums %x and %x", came.size, sent.Sum32(), came.Sum32())
		}
	}
}

// checksumWriter computes a checksum and counts bytes.
type checksumWriter struct {
	hash.Hash32
	size int64
}

func (s *checksumWriter) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	return s.Hash32.Write(p)
}

// repeatingReader repeats a block.
type repeatingReader struct {
	block []byte
	at    int
}

func (r *repeatingReader) Read(p []byte) (int, error) {
	n := copy(p, r.block[r.at:])
	r.at = (r.at + n) % len(r.block)
	return n, nil
}

// BenchmarkExecShort runs commands that exit at once, one after the other.
func BenchmarkExecShort(b *testing.B) { sides(b, echoExecutors(b), short) }

func short(b *testing.B, run execute) {
	b.ReportAllocs()
	for b.Loop() {
		if err := run(b.Context(), "true", nil, io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkExecFirstByte measures from the call to the first byte of the command's output.
func BenchmarkExecFirstByte(b *testing.B) {
	sides(b, echoExecutors(b), func(b *testing.B, run execute) {
		var total atomic.Int64
		runs := int64(0)
		for b.Loop() {
			begin := time.Now()
			stdin := newGate()
			first := &firstByte{then: func() {
				total.Add(int64(time.Since(begin)))
				stdin.open()
			}}
			if err := run(b.Context(), "hello", stdin, first); err != nil {
				b.Fatal(err)
			}
			runs++
		}
		b.ReportMetric(float64(total.Load())/float64(runs), "first-byte-ns/op")
	})
}

// gate is an input that reaches EOF once it is opened.
type gate chan struct{}

func newGate() gate                     { return make(gate) }
func (g gate) open()                    { close(g) }
func (g gate) Read([]byte) (int, error) { <-g; return 0, io.EOF }

// firstByte calls a function on the first write.
type firstByte struct{ then func() }

func (f *firstByte) Write(p []byte) (int, error) {
	if f.then != nil && len(p) > 0 {
		f.then()
		f.then = nil
	}
	return len(p), nil
}
