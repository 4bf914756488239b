package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport/internal/subprocess"
)

const (
	// kubectlWaitDelay limits the time until kubectl's output is closed by its children after its end.
	kubectlWaitDelay = 2 * time.Second
	// maxExitDelay limits the wait for the end of kubectl, the possible cause of a broken connection.
	maxExitDelay = time.Second
	// maxErrorLines limits the kept error output of kubectl, in bytes.
	maxErrorLines = 1 << 10
)

// KubectlOptions are the command line of kubectl, and the connection's options.
type KubectlOptions struct {
	// Command is the program, a path or a name to look up in PATH; "" means kubectl.
	Command string
	// Args are flags accepted by every kubectl command, such as --context, --kubeconfig or --as.
	Args []string
	// An empty Options.Namespace means the namespace of kubectl's context.
	Options
}

// OpenKubectl starts the user's kubectl and sends every request through it. It is for clusters that only kubectl can reach.
// kubectl authenticates, and no credential enters this process. [Conn.Do] and [Conn.Upgrade] work as always; a rejection is the
// API server's own.
//
// The process is a `kubectl proxy` on a Unix socket in a private directory. [Conn.Close] ends it. ctx only limits the start. When
// kubectl exits by itself, requests, watches and streams fail with an error that contains its last error output. Leftovers of a
// killed program are removed by the next call of OpenKubectl. nil opts mean defaults. See
// https://kubernetes.io/docs/reference/kubectl/generated/kubectl_proxy/.
func OpenKubectl(ctx context.Context, opts *KubectlOptions) (*Conn, error) {
	if opts == nil {
		opts = &KubectlOptions{}
	}
	proxy, err := startKubectl(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("start kubectl: %w", err)
	}
	own := opts.Options
	if own.Namespace == "" {
		own.Namespace, err = proxy.namespace(ctx)
	}
	var conn *Conn
	if err == nil {
		conn, err = New("http://localhost", &http.Client{Transport: proxy}, &own)
	}
	if err != nil {
		proxy.stop()
		return nil, fmt.Errorf("start kubectl: %w", err)
	}
	conn.closeIdle = proxy.stop
	return conn, nil
}

// kubectlProxy is a running kubectl proxy, and the round tripper of requests through it.
type kubectlProxy struct {
	opts   *KubectlOptions
	dir    *subprocess.SocketDir
	direct *http.Transport

	cancel context.CancelFunc
	exited chan struct{}
	// err is the exit error. It is read after exited is closed.
	err error
}

func startKubectl(ctx context.Context, opts *KubectlOptions) (*kubectlProxy, error) {
	subprocess.SweepSocketDirs()
	dir, err := subprocess.NewSocketDir()
	if err != nil {
		return nil, fmt.Errorf("create a directory for its socket: %w", err)
	}
	// Close ends the process, not the end of ctx.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k := &kubectlProxy{opts: opts, dir: dir, cancel: cancel, exited: make(chan struct{}), direct: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", dir.Socket())
		},
		DisableCompression:     true, // over a socket on this machine
		MaxResponseHeaderBytes: maxHeader,
	}}
	// The filters protect browsers. A private socket does not need them.
	cmd := k.command(life, "proxy", dir.Argument(), "--accept-hosts=^localhost$", "--reject-paths=^$")
	output := &readyWriter{ready: make(chan struct{})}
	cmd.Stdout = output
	go k.run(cmd)
	select {
	case <-output.ready:
		return k, nil
	case <-k.exited:
	case <-ctx.Done():
	}
	k.stop()
	return nil, cmp.Or(retry.ContextError(ctx), k.err)
}

// command returns a kubectl command. The end of ctx kills it and its children, because kubectl may be the child of a wrapper.
// With a shared terminal, only the processes serving the socket are killed.
func (k *kubectlProxy) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, cmp.Or(k.opts.Command, "kubectl"), slices.Concat(k.opts.Args, args)...)
	if !subprocess.HasTerminal() {
		subprocess.KillGroup(cmd)
	}
	kill := cmd.Cancel
	cmd.Cancel = func() error {
		err := kill()
		k.dir.KillServers()
		return err
	}
	cmd.WaitDelay = kubectlWaitDelay
	return cmd
}

// run starts the process and waits for its end in a single thread: see subprocess.EndWithThread.
func (k *kubectlProxy) run(cmd *exec.Cmd) {
	defer close(k.exited)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	subprocess.EndWithThread(cmd)
	var stderr errorLines
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		k.err = err
		return
	}
	k.err = cmp.Or(stderr.explain(cmd.Wait()), errors.New("exit status 0"))
	k.dir.KillServers() // leftovers of a wrapper
}

// namespace returns the namespace of kubectl's context. An extension of the cluster may have a field of this name, too.
func (k *kubectlProxy) namespace(ctx context.Context) (string, error) {
	cmd := k.command(ctx, "config", "view", "--minify", "-o", "jsonpath={.contexts[0].context.namespace}")
	var stderr errorLines
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	return strings.TrimSpace(string(output)), retry.WithContextError(ctx, stderr.explain(err)) // a killed process has no error of ctx
}

func (k *kubectlProxy) stop() {
	k.cancel()
	<-k.exited
	k.direct.CloseIdleConnections()
	k.dir.Remove()
}

func (k *kubectlProxy) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := k.direct.RoundTrip(req)
	if err != nil {
		return nil, k.explain(req.Context(), err)
	}
	body := &kubectlBody{ReadCloser: response.Body, proxy: k, ctx: req.Context()}
	if stream, ok := response.Body.(io.ReadWriteCloser); ok && response.StatusCode == http.StatusSwitchingProtocols {
		body.isStream = true
		response.Body = struct {
			*kubectlBody
			io.Writer
		}{body, stream}
	} else {
		response.Body = body
	}
	return response, nil
}

// explain adds kubectl's own error to the error of a connection broken by kubectl's exit.
func (k *kubectlProxy) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil || !isBroken(err) && !isConnectionRefused(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, maxExitDelay)
	defer cancel()
	select {
	case <-k.exited:
	case <-ctx.Done():
		return err
	}
	return retry.Terminal(fmt.Errorf("kubectl, which makes the requests, has exited: %w: %w", k.err, err))
}

// isConnectionRefused reports whether no process listens on a socket any more.
func isConnectionRefused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EPIPE)
}

// kubectlBody explains the errors of a response's body.
type kubectlBody struct {
	io.ReadCloser
	proxy    *kubectlProxy
	ctx      context.Context //nolint:containedctx // the request's, which ends the body
	isStream bool            // its end is no success
}

func (b *kubectlBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil || err == io.EOF && !b.isStream {
		return n, err
	}
	explained := b.proxy.explain(b.ctx, err)
	if explained != err && errors.Is(err, io.EOF) { //nolint:errorlint // the very same if it is not explained
		explained = fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, explained)
	}
	return n, explained
}

// readyWriter closes ready when kubectl proxy prints its ready message.
type readyWriter struct {
	ready chan struct{}
	begin []byte // of the output
}

func (w *readyWriter) Write(p []byte) (int, error) {
	const message = "Starting to serve"
	if missing := len(message) - len(w.begin); missing > 0 && len(p) > 0 {
		w.begin = append(w.begin, p[:min(len(p), missing)]...)
		if string(w.begin) == message {
			close(w.ready)
		}
	}
	return len(p), nil
}

// errorLines keeps kubectl's own error lines. Lines of login plugins may be secret and are dropped.
type errorLines struct{ line, kept []byte }

func (l *errorLines) Write(p []byte) (int, error) {
	for _, b := range p {
		if b == '\n' {
			l.endLine()
		} else if len(l.line) < maxErrorLines {
			l.line = append(l.line, b)
		}
	}
	return len(p), nil
}

func (l *errorLines) endLine() {
	if text, ok := strings.CutPrefix(string(l.line), "error: "); ok && len(l.kept)+len(text) < maxErrorLines {
		l.kept = append(append(l.kept, ": "...), text...)
	}
	l.line = l.line[:0]
}

// explain adds the lines to the error of the process's exit.
func (l *errorLines) explain(err error) error {
	l.endLine()
	if err == nil || len(l.kept) == 0 {
		return err
	}
	return fmt.Errorf("%w%s", err, sanitize.Text(string(l.kept), maxErrorLines))
}
