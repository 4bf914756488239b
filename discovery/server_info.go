package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"path"
	"strings"

	"github.com/anykind/anykind/internal/sanitize"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
)

// ServerVersion requests the server's version, GET /version.
func (c *Client) ServerVersion(ctx context.Context) (*version.Info, error) {
	doc, err := c.get(ctx, "/version", accept(plainJSON))
	if err != nil {
		return nil, err
	}
	info := &version.Info{}
	if err := json.Unmarshal(doc.body, info); err != nil {
		return nil, fmt.Errorf("GET /version: decode version: %w", sanitize.Error(err, maxText))
	}
	return info, nil
}

// OpenAPIPaths requests the index of the server's OpenAPI v3 documents. It maps each path, such as apis/apps/v1, to the URL of
// its document, relative to the server. The URL contains a hash of the document. Documents on other hosts are omitted. See
// https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3.
func (c *Client) OpenAPIPaths(ctx context.Context) (map[string]string, error) {
	doc, err := c.get(ctx, "/openapi/v3", accept(plainJSON))
	if err != nil {
		return nil, err
	}
	var index struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := codec.Unmarshal(doc.body, &index); err != nil {
		return nil, fmt.Errorf("GET /openapi/v3: decode the index: %w", sanitize.Error(err, maxText))
	}
	if len(index.Paths) == 0 {
		return nil, errors.New("GET /openapi/v3: the index is empty")
	}
	urls := make(map[string]string, len(index.Paths))
	for name, document := range index.Paths {
		if isServerRelative(document.ServerRelativeURL) {
			urls[name] = document.ServerRelativeURL
		}
	}
	return urls, nil
}

// isServerRelative reports whether a URL is a clean absolute path without a host.
func isServerRelative(text string) bool {
	target, err := url.Parse(text)
	return err == nil && target.Scheme == "" && target.Host == "" && strings.HasPrefix(target.Path, "/") &&
		path.Clean(target.Path) == strings.TrimSuffix(target.Path, "/")
}

// Capabilities are optional features of a server.
type Capabilities struct {
	Version             string     // version of the server, such as v1.36.3
	AggregatedDiscovery Capability // all resources in two requests
	ServerSideApply     Capability // fields merged by field manager
	WatchList           Capability // the initial list and subsequent events over the same connection
	WebSocketExec       Capability // exec and attach over WebSockets with half-close, v5.channel.k8s.io
	PortForwardTunnel   Capability // port-forward over WebSockets
	CBOR                Capability // objects encoded in binary
}

// Capability is an optional feature of a server.
type Capability struct {
	Supported bool
	Reason    string // basis for Supported
	Fallback  string // replacement for an unsupported feature
}

// Capabilities determines the server's features from its version and by trial. It caches the first result. Changed feature
// gates are not visible: a server may reject a supported feature.
func (c *Client) Capabilities(ctx context.Context) (*Capabilities, error) {
	if known := c.capabilities.Load(); known != nil {
		return known, nil
	}
	detected, err := c.detectCapabilities(ctx)
	if err != nil {
		return nil, fmt.Errorf("detect capabilities: %w", err)
	}
	c.capabilities.CompareAndSwap(nil, detected)
	return c.capabilities.Load(), nil
}

func (c *Client) detectCapabilities(ctx context.Context) (*Capabilities, error) {
	info, err := c.ServerVersion(ctx)
	if err != nil {
		return nil, err
	}
	version, err := utilversion.ParseGeneric(info.GitVersion)
	if err != nil {
		return nil, fmt.Errorf("server version: %w", sanitize.Error(err, maxText))
	}
	snapshot, err := c.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	cbor, err := c.detectCBOR(ctx)
	if err != nil {
		return nil, err
	}
	since := func(minor uint, fallback string) Capability {
		return Capability{
			Supported: version.AtLeast(utilversion.MajorMinor(1, minor)), Fallback: fallback,
			Reason: fmt.Sprintf("default since v1.%d; the server is %s", minor, info.GitVersion),
		}
	}
	return &Capabilities{
		Version: info.GitVersion,
		AggregatedDiscovery: Capability{
			Supported: snapshot.Aggregated, Reason: "answers of /api and /apis", Fallback: "one request for each group version",
		},
		ServerSideApply:   since(22, "none: read, change and update"),
		WatchList:         since(34, "a list in pages, then a watch"),
		WebSocketExec:     since(31, "none"),
		PortForwardTunnel: since(31, "none"),
		CBOR:              cbor,
	}, nil
}

// detectCBOR requests the default namespace. Only the Content-Type of the response matters, even if the response is an error.
func (c *Client) detectCBOR(ctx context.Context) (Capability, error) {
	capability := Capability{Reason: "content type of an answer that may be CBOR", Fallback: "JSON"}
	doc, err := c.get(ctx, "/api/v1/namespaces/default", accept("application/cbor,application/json"))
	if ctx.Err() != nil {
		return capability, err
	}
	if err != nil {
		capability.Reason = "the request that would show it failed"
		return capability, nil //nolint:nilerr // it is the reason
	}
	mediaType, _, err := mime.ParseMediaType(doc.contentType)
	capability.Supported = err == nil && mediaType == "application/cbor"
	return capability, nil
}
