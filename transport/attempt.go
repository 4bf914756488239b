package transport

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/anykind/anykind/internal/pathsegment"
	"github.com/anykind/anykind/internal/resourcepath"
	"github.com/anykind/anykind/internal/sanitize"
)

// Attempt describes an attempt of a request, for [Options].OnAttempt. It has no secret: no credential, no body, no query.
type Attempt struct {
	Method string
	// URL has no query.
	URL string
	// Path is the URL's path relative to the server's URL: /api/v1/namespaces/shop/pods.
	Path string
	// Verb, Resource, Namespace and Name are as in the server's authorization and audit log: "list" and "deployments.apps",
	// "create" and "pods/eviction". For a list or watch, Name is the metadata.name required by the field selector. The namespace
	// of a Namespace is its own name. For a non-resource path, Verb is the method in lower case and the rest is "".
	Verb, Resource, Namespace, Name string
	// Number is 1 for a request's first attempt.
	Number int
	// Delay is the time before this attempt: for the rate limiter, Retry-After, or a broken connection.
	Delay time.Duration
	// Duration is the time until the header of the response.
	Duration time.Duration
	// StatusCode is the response's status, 0 without a response.
	StatusCode int
	// ContentType is the media type of the response, such as application/vnd.kubernetes.protobuf.
	ContentType string
	// Err is the error of an attempt without a response.
	Err error
}

// newAttempt returns an Attempt with the authorization attributes of a request. prefix is the path of the server's URL.
func newAttempt(req *http.Request, prefix string) Attempt {
	attempt := Attempt{Method: req.Method, URL: printableURL(req), Path: strings.TrimPrefix(req.URL.Path, prefix)}
	path, ok := resourcepath.Parse(attempt.Path)
	if !ok {
		attempt.Verb = strings.ToLower(req.Method)
		return attempt
	}
	attempt.Namespace = path.Namespace
	if path.Namespace == "" && path.Resource == "namespaces" {
		attempt.Namespace = path.Name
	}
	attempt.Resource = path.Resource
	attempt.Name = path.Name
	if path.Group != "" {
		attempt.Resource += "." + path.Group
	}
	if path.Subresource != "" {
		attempt.Resource += "/" + path.Subresource
	}
	if attempt.Verb = requestVerb(req, attempt.Name != ""); path.IsWatch {
		attempt.Verb = "watch"
	} else if attempt.Name == "" && (attempt.Verb == "list" || attempt.Verb == "watch") {
		attempt.Name = selectedName(req.URL)
	}
	return attempt
}

func (c *call) onAttempt(ctx context.Context, req *http.Request, response *http.Response, err error, duration time.Duration) {
	delay := c.delay
	c.delay = 0
	if c.conn.options.OnAttempt == nil {
		return
	}
	attempt := newAttempt(req, c.conn.base.Path)
	attempt.Number = c.attempts
	attempt.Delay = delay
	attempt.Duration = duration
	attempt.Err = err
	if response != nil {
		attempt.StatusCode = response.StatusCode
		attempt.ContentType = sanitize.Text(response.Header.Get("Content-Type"), maxContentType)
	}
	c.conn.options.OnAttempt(ctx, attempt)
}

func requestVerb(req *http.Request, named bool) string {
	switch req.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodDelete:
		if !named {
			return "deletecollection"
		}
	case http.MethodGet, http.MethodHead:
		switch {
		case named:
			return "get"
		case isWatch(req.URL):
			return "watch"
		default:
			return "list"
		}
	}
	return strings.ToLower(req.Method)
}

// isWatch reports whether the query has the option watch, with any value but false and 0.
func isWatch(u *url.URL) bool {
	if !strings.Contains(u.RawQuery, "watch") {
		return false
	}
	values := u.Query()["watch"]
	return len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// selectedName returns the metadata.name required by a field selector, or "".
func selectedName(u *url.URL) string {
	if !strings.Contains(u.RawQuery, "metadata.name") {
		return ""
	}
	selector, err := fields.ParseSelector(u.Query().Get("fieldSelector"))
	if err != nil {
		return ""
	}
	name, ok := selector.RequiresExactMatch("metadata.name")
	if !ok || len(pathsegment.Validate(name)) > 0 {
		return ""
	}
	return name
}
