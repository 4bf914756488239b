package stream

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/anykind/anykind/internal/resourcepath"
	"github.com/anykind/anykind/internal/sanitize"
)

// Proxy returns an [http.RoundTripper] to the programs in pods, behind services or on nodes of the target, through the API
// server's proxy. The host of a URL is the object's name: http://web:8080/health. The default port is the first port of a pod,
// the only port of a service, or the kubelet of a node. For https the server speaks TLS with the program, without verifying its
// certificate and over its own connections.
//
//	client := &http.Client{Transport: stream.Proxy(services.Namespace("shop"))}
//	response, err := client.Get("http://web:8080/health")
//
// Bodies are streamed in both directions, and upgrades such as WebSockets work: the Body of a response with status 101 is an
// io.ReadWriteCloser. Responses are returned unchanged, including responses of the API server itself: a Status with 403 if the
// user lacks the permission (the verbs of pods/proxy and the like follow from the HTTP method), and with 503 if no program
// listens.
//
// The API server consumes the Authorization header, so a request with this header is rejected. It rewrites links in HTML and
// redirects to its own addresses; redirects are restored. It merges double slashes in paths. Paths with an escaped slash, . or ..
// are rejected, because it would change them. Use [PortDialer] for programs that depend on these. Redirects to a different host
// are not followed.
//
// See https://kubernetes.io/docs/tasks/access-application-cluster/access-cluster-services/.
func Proxy(target Target) http.RoundTripper { return proxy{target} }

type proxy struct{ target Target }

func (p proxy) RoundTrip(req *http.Request) (*http.Response, error) {
	prefix, err := p.prefix(req)
	var server *url.URL
	if err == nil {
		server, err = url.Parse(p.target.Conn().Server() + prefix + "/" + strings.TrimPrefix(req.URL.EscapedPath(), "/"))
	}
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, fmt.Errorf("%s %s: %w", req.Method, sanitize.URL(req.URL.String()), err)
	}
	server.RawQuery = req.URL.RawQuery
	server.ForceQuery = req.URL.ForceQuery
	proxied := req.Clone(req.Context())
	proxied.URL = server
	proxied.Host = ""
	response, err := p.target.Conn().RoundTrip(proxied)
	if err != nil {
		return nil, err
	}
	response.Request = req
	response.Header = response.Header.Clone()
	if location := response.Header.Get("Location"); location != "" {
		response.Header.Set("Location", restoreLocation(location, server, prefix, req.URL))
	}
	return response, nil
}

// prefix returns the proxy path of the request's program.
func (p proxy) prefix(req *http.Request) (string, error) {
	name := req.URL.Hostname()
	port := req.URL.Port()
	switch {
	case req.URL.Scheme != "http" && req.URL.Scheme != "https":
		return "", fmt.Errorf("the scheme must be http or https")
	case name == "":
		return "", errors.New("the URL names no object: its host must be one, as in http://web-0:8080/")
	case req.URL.User != nil:
		return "", errors.New("the API server takes the user for itself: leave it out of the URL, or dial with a PortDialer")
	case !isStable(req.URL.EscapedPath()):
		return "", errors.New("the API server would change the path because of an escaped slash, . or ..: dial with a PortDialer")
	// A program may redirect, but the target must not be a different object.
	case req.Response != nil && req.Response.Request != nil && req.Response.Request.URL.Hostname() != name:
		return "", fmt.Errorf("the redirect from %s leads to another host", req.Response.Request.URL.Host)
	}
	path, err := p.target.Path(name)
	if err != nil {
		return "", err
	}
	if !hasProxy(path) {
		return "", fmt.Errorf("the API server has no proxy to %s, only to pods, services and nodes", path)
	}
	program := name
	switch {
	case req.URL.Scheme == "https":
		program = "https:" + name + ":" + port
	case port != "":
		program += ":" + port
	}
	return path[:strings.LastIndexByte(path, '/')+1] + url.PathEscape(program) + "/proxy", nil
}

// hasProxy reports whether the path is the path of a pod, a service or a node.
func hasProxy(path string) bool {
	parsed, ok := resourcepath.Parse(path)
	if !ok || parsed.Group != "" || parsed.Name == "" || parsed.Subresource != "" {
		return false
	}
	switch parsed.Resource {
	case "nodes":
		return parsed.Namespace == ""
	case "pods", "services":
		return parsed.Namespace != ""
	default:
		return false
	}
}

// isStable reports whether a path reaches the program unchanged. The API server, and proxies before it, resolve dots, possibly
// out of the proxy, and cannot distinguish an escaped slash.
func isStable(path string) bool {
	for part := range strings.SplitSeq(strings.ToLower(path), "/") {
		if dots := strings.ReplaceAll(part, "%2e", "."); dots == "." || dots == ".." || strings.Contains(part, "%2f") {
			return false
		}
	}
	return true
}

// restoreLocation restores the URL of a redirect within the program, as rewritten by the server.
func restoreLocation(location string, sent *url.URL, prefix string, requested *url.URL) string {
	to, err := url.Parse(location)
	if err != nil || to.Host != "" && to.Host != sent.Host {
		return location
	}
	path := to.EscapedPath()
	// A server behind a path prefix does not know the prefix.
	before, _, _ := strings.Cut(sent.EscapedPath(), prefix)
	rest, found := strings.CutPrefix(strings.TrimPrefix(path, before), prefix)
	if !found || rest != "" && rest[0] != '/' {
		return location
	}
	back, err := url.Parse(rest)
	if err != nil {
		return location
	}
	to.Scheme = requested.Scheme
	to.Host = requested.Host
	to.Path = back.Path
	to.RawPath = back.RawPath
	if to.Path == "" {
		to.Path = "/"
	}
	return to.String()
}
