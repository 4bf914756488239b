package transport

import (
	"net/url"
	"strings"
)

// requestError reports that a request got no response. errors.As finds a *url.Error in it, as in errors of http.Client.
type requestError struct {
	method, url string // printable
	err         error
}

func (e *requestError) Error() string { return e.method + " " + e.url + ": " + e.err.Error() }

func (e *requestError) Unwrap() error { return e.err }

// As implements the method that errors.As calls. Op is as in errors of http.Client: Get for GET.
func (e *requestError) As(target any) bool {
	found, ok := target.(**url.Error)
	if ok {
		*found = &url.Error{Op: e.method[:1] + strings.ToLower(e.method[1:]), URL: e.url, Err: e.err}
	}
	return ok
}
