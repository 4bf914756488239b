package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/anykind/anykind/internal/retry"
)

// KubectlOptions say which kubectl is run, and how.
type KubectlOptions struct {
	// Command is the program, a path or a name to look up in PATH; "" means kubectl.
	Command string
	// Args are flags that kubectl takes with every command, such as --context, --kubeconfig or --as.
	Args []string
	// Options.Namespace, where it is "", is that of the context which kubectl uses.
	Options
}

// Kubectl starts the user's own kubectl and makes every request through it, for clusters that nothing else can reach:
// whatever kubectl does to log in happens in kubectl, and no credential enters this process. All that [Conn.Do] and
// [Conn.Upgrade] do works; a refusal is the API server's own.
//
// The process is a `kubectl proxy` on a unix socket in a folder that nobody else may enter. [Conn.Close] ends it. ctx
// bounds the start only. When kubectl ends by itself, requests fail and say so. nil opts mean defaults. See
// https://kubernetes.io/docs/reference/kubectl/generated/kubectl_proxy/.
func Kubectl(ctx context.Context, opts *KubectlOptions) (*Conn, error) {
	if opts == nil {
		opts = &KubectlOptions{}
	}
	running, err := startKubectl(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("start kubectl: %w", err)
	}
	own := opts.Options
	if own.Namespace == "" {
		own.Namespace, err = running.namespace(ctx)
	}
	var conn *Conn
	if err == nil {
		conn, err = New("http://localhost", &http.Client{Transport: running}, &own)
	}
	if err != nil {
		running.stop()
		return nil, fmt.Errorf("start kubectl: %w", err)
	}
	conn.closeIdle = running.stop
	return conn, nil
}

// kubectl is a running kubectl proxy.
type kubectl struct {
	opts   *KubectlOptions
	dir    string
	direct *http.Transport

	end   context.CancelFunc
	ended chan struct{}
	// err is why it ended, to be read after that.
	err error
}

func startKubectl(ctx context.Context, opts *KubectlOptions) (*kubectl, error) {
	dir, err := os.MkdirTemp("", "anykind-kubectl-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for its socket: %w", err)
	}
	socket := filepath.Join(dir, "socket")
	// Not ctx's end but Close ends the process.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	k := &kubectl{opts: opts, dir: dir, end: end, ended: make(chan struct{}), direct: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
		DisableCompression: true, // over a socket on this machine
	}}
	// Its filters protect browsers; here nobody else can reach the socket.
	command := k.command(life, "proxy", "--unix-socket="+socket, "--accept-hosts=^localhost$", "--reject-paths=^$")
	serving := make(chan struct{})
	go k.run(command, serving)
	select {
	case <-serving:
		return k, nil
	case <-k.ended:
		k.stop()
		return nil, k.err
	case <-ctx.Done():
		k.stop()
		return nil, retry.ContextError(ctx)
	}
}

func (k *kubectl) command(ctx context.Context, args ...string) *exec.Cmd {
	name := k.opts.Command
	if name == "" {
		name = "kubectl"
	}
	return exec.CommandContext(ctx, name, append(append([]string{}, k.opts.Args...), args...)...)
}

// run is the process's whole life, on one thread: on Linux the kernel ends the process with the thread that began it.
func (k *kubectl) run(command *exec.Cmd, serving chan<- struct{}) {
	defer close(k.ended)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	endWithThread(command)
	var complaint complaints
	command.Stderr = &complaint
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		k.err = err
		return
	}
	lines := bufio.NewReader(output)
	if line, err := lines.ReadString('\n'); err == nil && strings.HasPrefix(line, "Starting to serve") {
		close(serving)
	}
	_, _ = io.Copy(io.Discard, lines)
	k.err = complaint.explain(command.Wait())
}

// RoundTrip implements http.RoundTripper.
func (k *kubectl) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := k.direct.RoundTrip(req)
	if err == nil {
		return response, nil
	}
	select {
	case <-k.ended:
		return nil, fmt.Errorf("the kubectl that makes the requests has ended: %w", errors.Join(k.err, err))
	default:
		return nil, err
	}
}

// WrappedRoundTripper lets Upgrade find out how to dial.
func (k *kubectl) WrappedRoundTripper() http.RoundTripper { return k.direct }

// namespace asks kubectl for its context's namespace.
func (k *kubectl) namespace(ctx context.Context) (string, error) {
	command := k.command(ctx, "config", "view", "--minify", "-o", "jsonpath={..namespace}")
	var complaint complaints
	command.Stderr = &complaint
	output, err := command.Output()
	return strings.TrimSpace(string(output)), complaint.explain(err)
}

// stop ends the process and waits for it.
func (k *kubectl) stop() {
	k.end()
	<-k.ended
	k.direct.CloseIdleConnections()
	_ = os.RemoveAll(k.dir)
}

// complaints keeps what kubectl itself complains of. What login plugins write may be secret and is dropped.
type complaints struct{ line, kept []byte }

const maxComplaints = 1 << 10

func (c *complaints) Write(p []byte) (int, error) {
	for _, b := range p {
		if b != '\n' {
			if len(c.line) < maxComplaints {
				c.line = append(c.line, b)
			}
			continue
		}
		c.endLine()
	}
	return len(p), nil
}

func (c *complaints) endLine() {
	if text, ok := strings.CutPrefix(string(c.line), "error: "); ok && len(c.kept)+len(text) < maxComplaints {
		c.kept = append(append(c.kept, ": "...), text...)
	}
	c.line = c.line[:0]
}

// explain adds to a process's exit what it complained of.
func (c *complaints) explain(err error) error {
	c.endLine()
	if err == nil || len(c.kept) == 0 {
		return err
	}
	return fmt.Errorf("%w%s", err, c.kept)
}
