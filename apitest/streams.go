package apitest

import "github.com/anykind/anykind/apitest/internal/podstream"

// The handlers of the streaming subresources of pods, nodes and services, and their arguments.
type (
	// Streams are a test's handlers of streams. A request without a handler gets 501. Handlers are called concurrently, and their
	// ctx ends with the request. An error becomes a Status; an [ExitError] becomes the exit status of an exec. The fields are
	//
	//	Logs        func(ctx context.Context, pod Pod, opts LogOptions) (io.Reader, error)
	//	Exec        func(ctx context.Context, session *Session) error
	//	Attach      func(ctx context.Context, session *Session) error
	//	PortForward func(ctx context.Context, pod Pod, port int, conn io.ReadWriteCloser) error
	//	Proxy       func(resource, namespace, name string) http.Handler // resource is pods, services or nodes
	Streams = podstream.Hooks
	// Pod is the pod of a request, with the fields
	//
	//	Namespace, Name, Container string
	//	Object                     map[string]any // as stored; read-only
	Pod = podstream.Pod
	// LogOptions are the parameters of a logs request. The server applies TailLines and LimitBytes to the returned logs, unless
	// Follow is set. It applies SinceTime and Timestamps if the lines begin with RFC 3339 times, like a kubelet's. If the returned
	// reader is an io.Closer, it is closed. The fields are
	//
	//	Follow, Previous, Timestamps bool
	//	TailLines, LimitBytes        *int64
	//	SinceTime                    *time.Time
	LogOptions = podstream.LogOptions
	// Session is a running exec or attach, with the fields
	//
	//	Pod
	//	Command        []string // empty for attach
	//	Stdin          io.Reader // nil unless the client sends it
	//	Stdout, Stderr io.Writer // discard output that the client did not request
	//	TTY            bool
	//	Resizes        <-chan TerminalSize
	Session = podstream.Session
	// TerminalSize is the Width and Height of a session's terminal in characters.
	TerminalSize = podstream.Size
	// ExitError ends a session with its Code as the exit status, other than 0.
	ExitError = podstream.ExitError
)
