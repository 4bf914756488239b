package role

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/transport"
)

const (
	// headerTimeout is the timeout for reading the header of a request.
	headerTimeout = 30 * time.Second
	// stopDelay is the time for a program to end after an interrupt.
	stopDelay = 30 * time.Second
)

// recordProgram runs a program whose kubeconfig leads to a proxy. The connection's OnAttempt records the requests.
func (o *options) recordProgram(ctx context.Context, args []string) error {
	conn, err := o.Connection.Conn(ctx)
	if err != nil {
		return err
	}
	server, stop, err := o.serve(context.WithoutCancel(ctx), conn)
	if err != nil {
		return fmt.Errorf("record %s: %w", args[0], err)
	}
	defer stop()
	folder, err := os.MkdirTemp("", "anyctl-role-") // readable by this user alone
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "kubeconfig")
	if err := writeKubeconfig(path, server, conn.Namespace()); err != nil {
		return err
	}
	program := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the user's program
	program.Cancel = func() error { return program.Process.Signal(os.Interrupt) }
	program.WaitDelay = stopDelay
	program.Env = append(os.Environ(), "KUBECONFIG="+path)
	program.Stdin = o.In
	program.Stdout = o.Out
	program.Stderr = o.Err
	err = program.Run()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		return &exit.Error{Code: max(failed.ExitCode(), 1)}
	}
	if ctx.Err() != nil {
		return nil // the roles permit the requests so far
	}
	return err
}

// writeKubeconfig writes a kubeconfig of a single server without a credential.
func writeKubeconfig(path, server, namespace string) error {
	const name = "recorded"
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []any{map[string]any{"name": name, "cluster": map[string]any{"server": server}}},
		"contexts": []any{map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": "", "namespace": namespace}}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// serve serves the API on the loopback interface. Requests need the URL's random path. Only this user can read it.
func (o *options) serve(ctx context.Context, conn *transport.Conn) (address string, stop func(), err error) {
	target, err := url.Parse(conn.Server())
	if err != nil {
		return "", nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	prefix := "/" + rand.Text()
	proxy := &httputil.ReverseProxy{
		Transport:     conn,
		FlushInterval: -1, // forwards watch events without delay
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = ""
			r.Out.Header.Del("Authorization")
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				o.Errorf("error: proxy %s %s: %v", r.Method, r.URL.Path, err)
			}
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, err.Error())
		},
	}
	handler := http.NewServeMux()
	handler.Handle(prefix+"/", http.StripPrefix(prefix, proxy))
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String() + prefix, func() { _ = server.Close() }, nil
}
