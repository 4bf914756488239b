package stream

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Proxy is an [http.RoundTripper] to the programs in pods, behind services or on nodes, which the target is a handle
// on. Requests go through the API server's proxy: to http://web:8080/health, the object's name and its port, or the
// first port of a pod, the only one of a service, the kubelet of a node, where no port is given. With https the server
// speaks TLS with the program, without checking its certificate, and over connections that are the server's own.
//
//	client := &http.Client{Transport: stream.Proxy(services.In("shop"))}
//	response, err := client.Get("http://web:8080/health")
//
// Bodies stream both ways, and upgrades such as WebSockets' work: the Body of a response with status 101 is an
// io.ReadWriteCloser. The programs' answers come as they are, and so do the API server's own refusals: a Status with
// 403 where the user may not (the verbs of pods/proxy and its like follow from the HTTP method), with 503 where nothing
// listens.
//
// The API server takes the Authorization header for itself, so that a request with one is refused here; it makes links
// in HTML and redirects lead to its own addresses, of which the redirects are undone; it merges double slashes in paths,
// and would change paths with an escaped slash, . or .., which are refused. A program that minds is better dialed with
// [PortDialer]. Redirects that lead to another host are not followed.
//
// See https://kubernetes.io/docs/tasks/access-application-cluster/access-cluster-services/.
func Proxy(target Target) http.RoundTripper { return proxy{target} }

type proxy struct{ target Target }

// RoundTrip implements http.RoundTripper.
func (p proxy) RoundTrip(req *http.Request) (*http.Response, error) {
	prefix, err := p.prefix(req)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, fmt.Errorf("%s %s: %w", req.Method, shown(req.URL), err)
	}
	server, err := url.Parse(p.target.Conn().Server() + prefix + "/" + strings.TrimPrefix(req.URL.EscapedPath(), "/"))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", req.Method, shown(req.URL), err)
	}
	server.RawQuery, server.ForceQuery = req.URL.RawQuery, req.URL.ForceQuery
	own := req.Clone(req.Context())
	own.URL, own.Host = server, ""
	response, err := p.target.Conn().RoundTrip(own)
	if err != nil {
		return nil, err
	}
	response.Request = req
	response.Header = response.Header.Clone()
	if location := response.Header.Get("Location"); location != "" {
		response.Header.Set("Location", direct(location, server, prefix, req.URL))
	}
	return response, nil
}

// shown is a URL as errors name it.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// prefix is where in the API the program is to be reached that the request is for.
func (p proxy) prefix(req *http.Request) (string, error) {
	name, port := req.URL.Hostname(), req.URL.Port()
	switch {
	case req.URL.Scheme != "http" && req.URL.Scheme != "https":
		return "", fmt.Errorf("the scheme must be http or https")
	case name == "":
		return "", errors.New("the URL names no object: its host must be one, as in http://web-0:8080/")
	case req.URL.User != nil:
		return "", errors.New("the API server takes the user for itself: leave it out of the URL, or dial with a PortDialer")
	case !survives(req.URL.EscapedPath()):
		return "", errors.New("the API server would change the path, which has an escaped slash or . or .. in it: dial with a PortDialer")
	// What redirects is the program, which may have reasons of its own to send the user elsewhere.
	case req.Response != nil && req.Response.Request != nil && req.Response.Request.URL.Hostname() != name:
		return "", fmt.Errorf("the redirect from %s leads to another host", req.Response.Request.URL.Host)
	}
	path, err := p.target.Path(name)
	if err != nil {
		return "", err
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	kind := strings.Join(parts[:max(0, len(parts)-1)], "/")
	node := kind == "api/v1/nodes"
	if !node && (len(parts) != 6 || parts[0] != "api" || parts[4] != "pods" && parts[4] != "services") {
		return "", fmt.Errorf("the API server has no proxy to %s, only to pods, services and nodes", path)
	}
	program := name
	if port != "" {
		program += ":" + port
	}
	if req.URL.Scheme == "https" {
		if port == "" {
			program += ":"
		}
		program = "https:" + program
	}
	return "/" + kind + "/" + url.PathEscape(program) + "/proxy", nil
}

// survives tells whether a path reaches the program as it is: the API server, and what may stand before it, resolves
// dots, which could lead out of the proxy, and cannot tell an escaped slash from one.
func survives(path string) bool {
	for part := range strings.SplitSeq(strings.ToLower(path), "/") {
		if dots := strings.ReplaceAll(part, "%2e", "."); dots == "." || dots == ".." || strings.Contains(part, "%2f") {
			return false
		}
	}
	return true
}

// direct undoes what the server did to a redirect within the program, so that it leads there again by its own URL.
func direct(location string, sent *url.URL, prefix string, asked *url.URL) string {
	to, err := url.Parse(location)
	if err != nil || to.Host != "" && to.Host != sent.Host {
		return location
	}
	path := to.EscapedPath()
	// A server that itself stands behind a prefix knows nothing of that.
	before, _, _ := strings.Cut(sent.EscapedPath(), prefix)
	rest, found := strings.CutPrefix(strings.TrimPrefix(path, before), prefix)
	if !found || rest != "" && rest[0] != '/' {
		return location
	}
	back, err := url.Parse(rest)
	if err != nil {
		return location
	}
	to.Scheme, to.Host, to.Path, to.RawPath = asked.Scheme, asked.Host, back.Path, back.RawPath
	if to.Path == "" {
		to.Path = "/"
	}
	return to.String()
}
