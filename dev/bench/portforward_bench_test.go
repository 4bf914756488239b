package bench_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// forwarded is the number of bytes sent over a connection.
const forwarded = 1 << 30

// BenchmarkPortForward transfers 1 GiB in each direction between a program and a pod, over the same listener, API server
// and node, and compares checksums. In the sandbox's pods, port 2 runs the first line that it receives.
func BenchmarkPortForward(b *testing.B) {
	cluster.NeedComponents(b, cluster.Nodes, cluster.ControllerManager, cluster.Scheduler)
	pods, pod := runningPod(b)
	for _, side := range []struct {
		name    string
		forward func(b *testing.B, pods *dynamic.Resource, pod string) string
	}{{"anykind", forwardWithAnykind}, {"client-go", forwardWithClientGo}} {
		b.Run("down/"+side.name, func(b *testing.B) {
			benchmarkForward(b, side.forward(b, pods, pod), download)
		})
		b.Run("up/"+side.name, func(b *testing.B) {
			benchmarkForward(b, side.forward(b, pods, pod), upload)
		})
	}
}

// benchmarkForward measures one direction, and the peak of the heap.
func benchmarkForward(b *testing.B, address string, carry func(b *testing.B, conn net.Conn)) {
	b.SetBytes(forwarded)
	stop := make(chan struct{})
	peak := make(chan uint64)
	go func() {
		most := uint64(0)
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapInuse)
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	for b.Loop() {
		conn, err := new(net.Dialer).DialContext(b.Context(), "tcp", address)
		require.NoError(b, err)
		carry(b, conn)
		require.NoError(b, conn.Close())
	}
	close(stop)
	b.ReportMetric(float64(<-peak)/(1<<20), "MiB-heap")
}

// download reads a text of 64 bytes repeatedly.
func download(b *testing.B, conn net.Conn) {
	line := strings.Repeat("0123456789abcde", 4) + "xyz\n"
	_, err := fmt.Fprintf(conn, "yes %s | head -c %d\n", strings.TrimSpace(line), forwarded)
	require.NoError(b, err)
	require.NoError(b, conn.(*net.TCPConn).CloseWrite())
	got := sha256.New()
	want := sha256.New()
	n, err := io.Copy(got, conn)
	require.NoError(b, err)
	require.EqualValues(b, forwarded, n)
	b.StopTimer()
	for range forwarded / len(line) {
		_, _ = io.WriteString(want, line)
	}
	b.StartTimer()
	require.Equal(b, want.Sum(nil), got.Sum(nil))
}

// upload sends random bytes and reads their checksum.
func upload(b *testing.B, conn net.Conn) {
	_, err := io.WriteString(conn, "sha256sum\n")
	require.NoError(b, err)
	sum := sha256.New()
	buffer := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(buffer)
	for range forwarded / len(buffer) {
		_, _ = sum.Write(buffer)
		_, err := conn.Write(buffer)
		require.NoError(b, err)
	}
	require.NoError(b, conn.(*net.TCPConn).CloseWrite())
	response, err := io.ReadAll(conn)
	require.NoError(b, err)
	require.Equal(b, fmt.Sprintf("%x  -\n", sum.Sum(nil)), string(response))
}

func forwardWithAnykind(b *testing.B, pods *dynamic.Resource, pod string) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- stream.ForwardPort(ctx, pods, pod, 2, listener) }()
	b.Cleanup(func() {
		cancel()
		require.ErrorIs(b, <-ended, context.Canceled)
	})
	return listener.Addr().String()
}

func forwardWithClientGo(b *testing.B, pods *dynamic.Resource, pod string) string {
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig(b))
	require.NoError(b, err)
	path, err := pods.Path(pod)
	require.NoError(b, err)
	target, err := url.Parse(config.Host + path + "/portforward")
	require.NoError(b, err)
	dialer, err := portforward.NewSPDYOverWebsocketDialer(target, config)
	require.NoError(b, err)
	stop := make(chan struct{})
	ready := make(chan struct{})
	forwarder, err := portforward.New(dialer, []string{":2"}, stop, ready, io.Discard, io.Discard)
	require.NoError(b, err)
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		require.NoError(b, err)
	}
	b.Cleanup(func() {
		close(stop)
		require.NoError(b, <-ended)
	})
	ports, err := forwarder.GetPorts()
	require.NoError(b, err)
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local)
}

// runningPod creates a pod in a temporary namespace.
func runningPod(b *testing.B) (*dynamic.Resource, string) {
	cfg, err := transport.Load(b.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(b), Context: "admin"})
	require.NoError(b, err)
	client, err := dynamic.Connect(b.Context(), cfg)
	require.NoError(b, err)
	b.Cleanup(client.Close)
	pods, err := client.Resource(b.Context(), "pods")
	require.NoError(b, err)
	pods = pods.Namespace("default")
	pod := &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"generateName": "bench-"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web"}}},
	}}
	deadline := time.Now().Add(time.Minute)
	for ; ; time.Sleep(100 * time.Millisecond) {
		created, err := pods.Create(b.Context(), pod, nil)
		if err == nil {
			pod = created
			break
		}
		require.True(b, time.Now().Before(deadline), "%v", err)
	}
	for ; ; time.Sleep(100 * time.Millisecond) {
		found, err := pods.Get(b.Context(), pod.GetName(), nil)
		require.NoError(b, err)
		if phase, _, _ := unstructured.Get[string](found, "status", "phase"); phase == "Running" {
			return pods, pod.GetName()
		}
		require.True(b, time.Now().Before(deadline), "the pod does not run")
	}
}
