package transport

import (
	"context"
	"net/http"
)

// Options are what a program chooses for a connection, whatever it connects to. Their zero values are valid defaults.
type Options struct {
	// Namespace is where namespaced resources are looked for unless a handle says otherwise; "" means "default".
	Namespace string
	// UserAgent names the program in the server's audit log and, up to its first slash, as the default field
	// manager of what it writes. "" means anykind/VERSION (OS/ARCH).
	UserAgent string
	// Limiter, if any, is asked before every attempt, and its error ends the request: a *rate.Limiter of
	// golang.org/x/time/rate will do. There is none by default: the server protects itself, and says when to
	// come back.
	Limiter Limiter
	// Wrap puts another round tripper around the connection's own, such as OpenTelemetry's. It sees every attempt,
	// without credentials.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Observe is called after every attempt, in the goroutine that made it.
	Observe func(context.Context, Attempt)
	// Warn is called with every warning of the server, once for a connection unless WarnRepeated is set. See
	// [CollectWarnings] for those of one call, and https://kubernetes.io/blog/2020/09/03/warnings/.
	Warn func(ctx context.Context, text string)
	// WarnRepeated calls Warn with the same text for each response that has it.
	WarnRepeated bool
}

// Limiter makes its callers wait for their turn.
type Limiter interface {
	// Wait returns when it is the caller's turn, or the error why it will not be.
	Wait(context.Context) error
}
