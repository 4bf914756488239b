package apitest

import "github.com/anykind/anykind/apitest/internal/podstream"

// The functions that answer the streaming subresources of pods, nodes and services, and what they get.
type (
	// Streams are the functions of a test that answer streams; a request without its function is answered with 501. They are
	// called concurrently, and their ctx ends with the request. An error is answered as a Status, or with an [ExitError] as the exit
	// status of an exec. The fields are
	//
	//	Logs        func(ctx context.Context, pod Pod, opts LogOptions) (io.Reader, error)
	//	Exec        func(ctx context.Context, session *Session) error
	//	Attach      func(ctx context.Context, session *Session) error
	//	PortForward func(ctx context.Context, pod Pod, port int, conn io.ReadWriteCloser) error
	//	Proxy       func(resource, namespace, name string) http.Handler // resource is pods, services or nodes
	Streams = podstream.Hooks
	// Pod is the pod that a request is for, with the fields
	//
	//	Namespace, Name, Container string
	//	Object                     map[string]any // as stored; read-only
	Pod = podstream.Pod
	// LogOptions are the parameters of a request for logs. The server applies TailLines and LimitBytes to what the function returns,
	// unless Follow is set, and SinceTime and Timestamps if its lines begin with times as a kubelet's do (RFC 3339). A reader that is
	// an io.Closer is closed. The fields are
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
	//	Stdout, Stderr io.Writer // discard what the client does not want
	//	TTY            bool
	//	Resizes        <-chan TerminalSize
	Session = podstream.Session
	// TerminalSize is the Width and Height of a session's terminal in characters.
	TerminalSize = podstream.Size
	// ExitError ends a session with an exit status other than 0, its Code.
	ExitError = podstream.ExitError
)
