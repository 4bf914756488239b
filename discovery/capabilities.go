package discovery

import (
	"context"
	"fmt"
	"mime"
	"net/http"

	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// Capabilities are what a server can do beyond the plain API.
type Capabilities struct {
	// Version is the server's version, such as v1.36.3.
	Version string
	// AggregatedDiscovery tells everything in two requests.
	AggregatedDiscovery Capability
	// ServerSideApply merges fields by who owns them.
	ServerSideApply Capability
	// WatchList streams a list and what follows it over one connection.
	WatchList Capability
	// WebSocketExec carries exec and attach over WebSockets with half-close, v5.channel.k8s.io.
	WebSocketExec Capability
	// PortForwardTunnel carries port-forward over WebSockets.
	PortForwardTunnel Capability
	// CBOR encodes objects in binary.
	CBOR Capability
}

// Capability is one thing that a server can do or not.
type Capability struct {
	Supported bool
	// Because is how that is known.
	Because string
	// Otherwise is what is done where it is not supported.
	Otherwise string
}

// Capabilities asks the server for its version and tries what cannot be told from it; the first answer is kept.
// Feature gates that an administrator set against a version's defaults do not show: whoever uses a capability must
// still be ready for a server that refuses.
func (c *Client) Capabilities(ctx context.Context) (*Capabilities, error) {
	if known := c.capabilities.Load(); known != nil {
		return known, nil
	}
	learned, err := c.learn(ctx)
	if err != nil {
		return nil, fmt.Errorf("learn what the server can do: %w", err)
	}
	c.capabilities.CompareAndSwap(nil, learned)
	return c.capabilities.Load(), nil
}

func (c *Client) learn(ctx context.Context) (*Capabilities, error) {
	info, err := c.ServerVersion(ctx)
	if err != nil {
		return nil, err
	}
	version, err := utilversion.ParseGeneric(info.GitVersion)
	if err != nil {
		return nil, fmt.Errorf("the server's version %q: %w", info.GitVersion, err)
	}
	snapshot, err := c.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	cbor, err := c.tryCBOR(ctx)
	if err != nil {
		return nil, err
	}
	since := func(minor uint, otherwise string) Capability {
		return Capability{
			Supported: version.AtLeast(utilversion.MajorMinor(1, minor)), Otherwise: otherwise,
			Because: fmt.Sprintf("by default since v1.%d; the server is %s", minor, info.GitVersion),
		}
	}
	return &Capabilities{
		Version: info.GitVersion,
		AggregatedDiscovery: Capability{
			Supported: snapshot.Aggregated, Because: "what /api and /apis answered", Otherwise: "one request for each group version",
		},
		ServerSideApply:   since(22, "none: read, change and update"),
		WatchList:         since(34, "a list in pages, then a watch"),
		WebSocketExec:     since(30, "v4.channel.k8s.io, which cannot close stdin"),
		PortForwardTunnel: since(31, "v4.channel.k8s.io, one connection for each port"),
		CBOR:              cbor,
	}, nil
}

// tryCBOR reads a namespace that every cluster has: whether the user may does not matter, the answer's form does.
func (c *Client) tryCBOR(ctx context.Context) (Capability, error) {
	capability := Capability{Because: "the form of an answer that may be CBOR", Otherwise: "JSON"}
	answer, err := c.get(ctx, "/api/v1/namespaces/default", http.Header{"Accept": {"application/cbor,application/json"}})
	if ctx.Err() != nil {
		return capability, err
	}
	if err != nil {
		capability.Because = "the answer that would tell was refused"
		return capability, nil //nolint:nilerr // it was told
	}
	mediaType, _, err := mime.ParseMediaType(answer.contentType)
	capability.Supported = err == nil && mediaType == "application/cbor"
	return capability, nil
}
