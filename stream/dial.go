package stream

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/stream/internal/wsconn"
	"github.com/anykind/anykind/transport"
)

// WebSocket subprotocols. They are enabled by default since Kubernetes 1.31; the feature gates
// TranslateStreamCloseWebsocketRequests and PortForwardWebsockets can disable them.
const (
	// protocolExec has numbered channels and a message to close a channel: https://kep.k8s.io/4006.
	protocolExec = "v5.channel.k8s.io"
	// protocolTunnel is SPDY in binary messages.
	protocolTunnel = "SPDY/3.1+portforward.k8s.io"
)

// dial opens a WebSocket on a subresource of an object. The end of ctx closes it until its Detach is called. The request is sent
// once: the command may run although the handshake failed.
func dial(ctx context.Context, conn *transport.Conn, path string, query url.Values, protocol string) (*wsconn.Conn, error) {
	handshake := wsconn.NewHandshake(protocol)
	header := handshake.Header()
	header.Set("Accept", "*/*") // nodes reject port-forwarding with Accept: application/json alone
	raw, response, err := conn.Upgrade(ctx, &transport.Request{Path: path, Query: query, Header: header})
	if err != nil {
		return nil, explainDial(ctx, err, path, protocol)
	}
	opened, err := handshake.Open(ctx, raw, response)
	if err != nil {
		return nil, retry.WithContextError(ctx, explainProtocol(fmt.Errorf("GET %s%s: open a stream: %w", conn.Server(), path, err), protocol))
	}
	return opened, nil
}

// explainDial adds a hint to the error of a handshake: the missing RBAC rule, or the protocol if the response is not an API
// server's.
func explainDial(ctx context.Context, err error, path, protocol string) error {
	err = retry.WithContextError(ctx, err)
	switch {
	case ctx.Err() != nil:
		return err
	case errors.Is(err, transport.ErrNotUpgraded):
		err = fmt.Errorf("%w: %w", wsconn.ErrBadHandshake, err)
	case !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return explainForbidden(err, path)
	}
	return explainProtocol(err, protocol)
}

func explainProtocol(err error, protocol string) error {
	return fmt.Errorf("%w (requested %s; servers have it since Kubernetes 1.31, unless a feature gate is off)", err, protocol)
}

// explainForbidden adds the missing RBAC rule to an authorization error for the resource. Other 403 errors stay unchanged.
// WebSockets are opened with GET. Servers before 1.35 only require the verb get, and newer servers also create:
// https://github.com/kubernetes/kubernetes/issues/133515.
func explainForbidden(err error, at string) error {
	resource := "pods/" + path.Base(at)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), fmt.Sprintf("resource %q", resource)) {
		return err
	}
	return fmt.Errorf(`%w: give the user a Role with the rule {apiGroups: [""], resources: ["%s"], verbs: ["get", "create"]} `+
		`(get opens a stream; Kubernetes 1.35 and later require create as well)`, err, resource)
}
