package transport

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/internal/sanitize"
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
// bounds the start only. When kubectl ends by itself, requests, watches and streams fail and say so, with the last errors
// that it printed. What a killed program left behind is removed when the next one calls Kubectl. nil opts mean defaults. See
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

// kubectlGrace is how long kubectl's output may stay open after its end, by processes that it left behind.
const kubectlGrace = 2 * time.Second

// kubectl is a running kubectl proxy.
type kubectl struct {
	opts   *KubectlOptions
	folder *socketFolder
	direct *http.Transport

	end   context.CancelFunc
	ended chan struct{}
	// err is why it ended, to be read after that.
	err error
}

func startKubectl(ctx context.Context, opts *KubectlOptions) (*kubectl, error) {
	sweepSocketFolders(os.TempDir())
	folder, err := newSocketFolder()
	if err != nil {
		return nil, fmt.Errorf("make a folder for its socket: %w", err)
	}
	// Not ctx's end but Close ends the process.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	k := &kubectl{opts: opts, folder: folder, end: end, ended: make(chan struct{}), direct: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", folder.socket())
		},
		DisableCompression:     true, // over a socket on this machine
		MaxResponseHeaderBytes: maxHeader,
	}}
	// Its filters protect browsers; here nobody else can reach the socket.
	command := k.command(life, "proxy", folder.argument(), "--accept-hosts=^localhost$", "--reject-paths=^$")
	serving := &servingWriter{serving: make(chan struct{})}
	command.Stdout = serving
	go k.run(command)
	select {
	case <-serving.serving:
		return k, nil
	case <-k.ended:
		k.stop()
		return nil, k.err
	case <-ctx.Done():
		k.stop()
		return nil, retry.ContextError(ctx)
	}
}

// command returns a kubectl command. The end of ctx kills it and, as that of an exec plugin, the processes that it
// started: a wrapper may run kubectl without becoming it. With a terminal, which they then share, only those are killed
// that serve the socket.
func (k *kubectl) command(ctx context.Context, args ...string) *exec.Cmd {
	name := k.opts.Command
	if name == "" {
		name = "kubectl"
	}
	command := exec.CommandContext(ctx, name, append(append([]string{}, k.opts.Args...), args...)...)
	if !hasTerminal() {
		killChildrenToo(command)
	}
	kill := command.Cancel
	command.Cancel = func() error {
		err := kill()
		k.folder.killServers()
		return err
	}
	command.WaitDelay = kubectlGrace
	return command
}

// run is the process's whole life, on one thread: on Linux the kernel ends the process with the thread that began it.
func (k *kubectl) run(command *exec.Cmd) {
	defer close(k.ended)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	endWithThread(command)
	var complaint complaints
	command.Stderr = &complaint
	if err := command.Start(); err != nil {
		k.err = err
		return
	}
	k.err = complaint.explain(command.Wait())
	k.folder.killServers() // that a wrapper has left behind
}

// servingWriter reads what kubectl proxy prints, and closes serving when that says that it is ready.
type servingWriter struct {
	serving chan struct{}
	begin   []byte
	ready   bool
}

func (w *servingWriter) Write(p []byte) (int, error) {
	const ready = "Starting to serve"
	if !w.ready && len(w.begin) < len(ready) {
		w.begin = append(w.begin, p[:min(len(p), len(ready)-len(w.begin))]...)
		if w.ready = string(w.begin) == ready; w.ready {
			close(w.serving)
		}
	}
	return len(p), nil
}

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
	k.folder.remove()
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
	return fmt.Errorf("%w%s", err, sanitize.Text(string(c.kept), maxComplaints))
}
