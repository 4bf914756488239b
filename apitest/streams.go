package apitest

import "github.com/anykind/anykind/apitest/internal/podstream"

// The functions that answer the streaming subresources of pods, nodes and services, and what they get.
type (
	// Streams are the functions of a test; what is nil is answered with 501.
	Streams = podstream.Hooks
	// Pod is the pod that a request is for.
	Pod = podstream.Pod
	// LogOptions are the parameters of a request for logs.
	LogOptions = podstream.LogOptions
	// Session is a running exec or attach.
	Session = podstream.Session
	// TerminalSize is the size of a session's terminal in characters.
	TerminalSize = podstream.Size
	// ExitError ends a session with an exit status other than 0.
	ExitError = podstream.ExitError
)
