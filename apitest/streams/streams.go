// Package streams has the handlers of a test for the streaming subresources of pods, nodes and services: logs, exec, attach, port-forward
// and proxy. apitest.Options.Streams takes them:
//
//	server := apitest.NewServer(t, &apitest.Options{Streams: streams.Handlers{
//		Exec: func(_ context.Context, session *streams.Session) error {
//			_, err := io.Copy(session.Stdout, session.Stdin)
//			return err
//		},
//	}})
package streams

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Handlers are a test's handlers of streams. A request without a handler gets 501. Handlers are called concurrently, and their ctx ends
// with the request. An error becomes a Status; an *[ExitError] becomes the exit status of an exec.
type Handlers struct {
	// Logs returns the logs of a container. If the reader is an io.Closer, it is closed.
	Logs   func(ctx context.Context, pod Pod, opts LogOptions) (io.Reader, error)
	Exec   func(ctx context.Context, session *Session) error
	Attach func(ctx context.Context, session *Session) error
	// PortForward serves a connection to the port. The connection is closed when PortForward returns.
	PortForward func(ctx context.Context, pod Pod, port int, conn io.ReadWriteCloser) error
	// Proxy returns the handler of the proxy subresource of a pod, service or node. resource is pods, services or nodes. name may
	// have a scheme and a port, as in https:web:8443. The request's path is the part after /proxy.
	Proxy func(resource, namespace, name string) http.Handler
}

// Pod is the pod of a request.
type Pod struct {
	Namespace, Name, Container string
	// Object is the pod as stored. It is read-only.
	Object map[string]any
}

// LogOptions are the parameters of a logs request. The server applies TailLines and LimitBytes to the returned logs, unless Follow is
// set. It applies SinceTime if the lines begin with RFC 3339 times, like a kubelet's, and removes these times unless Timestamps is set.
type LogOptions struct {
	Follow, Previous, Timestamps bool
	TailLines, LimitBytes        *int64
	SinceTime                    *time.Time
}

// Session is a running exec or attach.
type Session struct {
	Pod

	Command []string  // empty for attach
	Stdin   io.Reader // nil unless the client sends it
	// Stdout and Stderr discard output that the client did not request.
	Stdout, Stderr io.Writer
	TTY            bool
	Resizes        <-chan TerminalSize
}

// TerminalSize is the size of a terminal in characters.
type TerminalSize struct{ Width, Height uint16 }

// ExitError ends a session with an exit status other than 0.
type ExitError struct{ Code int }

// Error implements error.
func (e *ExitError) Error() string {
	return fmt.Sprintf("command terminated with exit code %d", e.Code)
}
