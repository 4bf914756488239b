package stream

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/stream/internal/wsconn"
	"github.com/anykind/anykind/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WebSocket subprotocols. Servers have them by default since Kubernetes 1.31, where a feature gate can still turn each off:
// TranslateStreamCloseWebsocketRequests and PortForwardWebsockets.
const (
	// protocolExec has numbered channels and a message that closes one: https://kep.k8s.io/4006.
	protocolExec = "v5.channel.k8s.io"
	// protocolTunnel is SPDY in binary messages.
	protocolTunnel = "SPDY/3.1+portforward.k8s.io"
)

// dial opens a WebSocket on a subresource of an object. The end of ctx closes it until its Detach is called. The request is
// sent once: the command may run although the handshake failed.
func dial(ctx context.Context, conn *transport.Conn, path string, query url.Values, protocol string) (*wsconn.Conn, error) {
	handshake := wsconn.NewHandshake(protocol)
	header := handshake.Header()
	header.Set("Accept", "*/*") // nodes refuse to forward ports for a client that accepts nothing but JSON
	raw, answer, err := conn.Upgrade(ctx, &transport.Request{Path: path, Query: query, Header: header})
	if err != nil {
		return nil, explainDial(ctx, err, path, protocol)
	}
	opened, err := handshake.Open(ctx, raw, answer)
	if err != nil {
		return nil, retry.WithContextError(ctx, explainProtocol(fmt.Errorf("GET %s%s: open a stream: %w", conn.Server(), path, err), protocol))
	}
	return opened, nil
}

// explainDial adds to the error of a handshake what may help: the missing RBAC rule, or the protocol if the answer is not an
// API server's.
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
	return fmt.Errorf("%w (requested %s, which servers have since Kubernetes 1.31 unless a feature gate is off)", err, protocol)
}

// explainForbidden adds the missing RBAC rule to a refusal whose text has one; there are other reasons to refuse a request.
// WebSockets are opened with GET, for which servers before 1.35 require the verb get alone, and later ones create as well:
// https://github.com/kubernetes/kubernetes/issues/133515.
func explainForbidden(err error, at string) error {
	resource := "pods/" + path.Base(at)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), fmt.Sprintf("resource %q", resource)) {
		return err
	}
	return fmt.Errorf(`%w: give the user a Role with the rule {apiGroups: [""], resources: ["%s"], verbs: ["get", "create"]} `+
		`(get opens a stream; Kubernetes 1.35 and later require create as well)`, err, resource)
}
