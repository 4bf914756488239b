package restconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/anykind/anykind/transport"
)

// warningCode is the code in an API server's warning headers.
const warningCode = 299

// ToConn returns a connection to the server of a client-go config. client-go authenticates the requests. Exec plugins, auth
// providers imported by the program, tokens, token files, certificates, impersonation, WrapTransport, Proxy and Dial apply to
// every request, including exec, attach and port-forward.
//
// The user agent, and thus the default field manager, is config.UserAgent, or client-go's default. RateLimiter or a positive
// QPS delay requests. client-go's default of 5 requests a second is not applied. Warnings go to the config's handler if it is
// set. Timeout bounds requests and watches but no streams, as in client-go. A config that accepts protobuf sets
// transport.Options.Protobuf. Other content types, serializers and APIPath are ignored.
//
// With an exec plugin, a request is retried once after a 401, because client-go has then run the plugin. HTTP connections are
// shared with client-go's clients of an equal config. Close closes idle connections. The default namespace is "default":
// dynamic.Client.WithDefaults changes it.
func ToConn(config *rest.Config) (*transport.Conn, error) {
	if config == nil {
		return nil, errors.New("open a connection: the rest.Config is nil")
	}
	own := rest.CopyConfig(config)
	own.UserAgent = cmp.Or(own.UserAgent, rest.DefaultKubernetesUserAgent())
	own.GroupVersion = &schema.GroupVersion{}
	server, _, err := rest.DefaultServerUrlFor(own)
	if err != nil {
		return nil, fmt.Errorf("open a connection: %w", err)
	}
	client, err := rest.HTTPClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("open a connection to %s: %w", server.Redacted(), err)
	}
	// net/http sends upgrades other than WebSocket over HTTP/2 if the server prefers it. HTTP/2 does not support them.
	own.NextProtos = []string{"http/1.1"}
	upgrades, err := rest.TransportFor(own)
	if err != nil {
		return nil, fmt.Errorf("open a connection to %s: %w", server.Redacted(), err)
	}
	return transport.New(server.String(), &http.Client{
		Transport: &configRoundTripper{next: client.Transport, upgrades: upgrades, retry: own.ExecProvider != nil},
		Timeout:   client.Timeout,
	}, &transport.Options{
		UserAgent: own.UserAgent, RateLimiter: rateLimiter(own), OnWarning: onWarning(own), RepeatWarnings: true,
		Protobuf: strings.Contains(cmp.Or(own.AcceptContentTypes, own.ContentType), runtime.ContentTypeProtobuf),
	})
}

func rateLimiter(config *rest.Config) transport.RateLimiter {
	switch {
	case config.RateLimiter != nil:
		return config.RateLimiter
	case config.QPS > 0:
		return flowcontrol.NewTokenBucketRateLimiter(config.QPS, cmp.Or(config.Burst, rest.DefaultBurst))
	}
	return nil
}

// onWarning returns a callback for the config's handler. The handler dedupes warnings itself.
func onWarning(config *rest.Config) func(context.Context, string) {
	switch {
	case config.WarningHandlerWithContext != nil:
		return func(ctx context.Context, text string) {
			config.WarningHandlerWithContext.HandleWarningHeaderWithContext(ctx, warningCode, "-", text)
		}
	case config.WarningHandler != nil:
		return func(_ context.Context, text string) {
			config.WarningHandler.HandleWarningHeader(warningCode, "-", text)
		}
	}
	return nil
}

// configRoundTripper sends requests through client-go's round trippers.
type configRoundTripper struct {
	next     http.RoundTripper // nil means http.DefaultTransport
	upgrades http.RoundTripper // speaks HTTP/1.1
	// retry is set if a request after a 401 may use a new credential.
	retry bool
}

func (c *configRoundTripper) transport(req *http.Request) http.RoundTripper {
	switch {
	case req.Header.Get("Upgrade") != "":
		return c.upgrades
	case c.next == nil:
		return http.DefaultTransport
	}
	return c.next
}

// RoundTrip implements http.RoundTripper.
func (c *configRoundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	next := c.transport(req)
	if !c.retry {
		return next.RoundTrip(req)
	}
	first := req.Clone(req.Context()) // client-go's exec plugin sets its token in this copy
	response, err := next.RoundTrip(first)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	again := req.Clone(req.Context())
	if req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			return response, nil
		}
		if again.Body, err = req.GetBody(); err != nil {
			return response, nil //nolint:nilerr // the response says what is wrong
		}
	}
	_ = response.Body.Close()
	return next.RoundTrip(again)
}

// CloseIdleConnections closes the idle connections below client-go's round trippers.
func (c *configRoundTripper) CloseIdleConnections() {
	closeIdle(c.next)
	closeIdle(c.upgrades)
}

// closeIdle is like apimachinery's net.CloseIdleConnectionsFor, but logs nothing about unsupported round trippers.
func closeIdle(next http.RoundTripper) {
	for next != nil {
		if closer, ok := next.(interface{ CloseIdleConnections() }); ok {
			closer.CloseIdleConnections()
			return
		}
		wrapper, ok := next.(utilnet.RoundTripperWrapper)
		if !ok {
			return
		}
		next = wrapper.WrappedRoundTripper()
	}
}
