package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/inventory"
)

//go:embed pages.html
var htmlText string

// handler returns the pages. With tokens each request has a token, and a page has the objects of the token's user.
func handler(objects *inventory.Cache, tokens bool) http.Handler {
	templates := template.Must(template.New("").Funcs(template.FuncMap{"yaml": encodeYAML}).Parse(htmlText))
	mux := http.NewServeMux()
	handle := func(pattern, name string, read func(*http.Request, *inventory.View) (map[string]any, error)) {
		mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) {
			var data map[string]any
			var body bytes.Buffer
			contentType := "text/html; charset=utf-8"
			view, err := viewOf(r, objects, tokens)
			if err == nil {
				data, err = read(r, view)
			}
			if health := objects.Health(); err == nil && health != nil {
				data["error"] = health.Error()
			}
			if isJSON := r.URL.Query().Get("format") == "json"; err == nil && isJSON {
				contentType = "application/json"
				err = json.NewEncoder(&body).Encode(data)
			} else if err == nil {
				err = templates.ExecuteTemplate(&body, name, data)
			}
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			if err != nil {
				writeError(w, err)
				return
			}
			w.Header().Set("Content-Type", contentType)
			_, _ = body.WriteTo(w) // the client may be gone
		})
	}
	handle("/{$}", "kinds", kinds)
	handle("/objects", "objects", search)
	handle("/objects/{uid}", "object", object)
	return http.TimeoutHandler(mux, timeout, "timeout\n")
}

// viewOf returns the objects for a request. A token is a bearer token, or in a browser the password.
func viewOf(r *http.Request, objects *inventory.Cache, tokens bool) (*inventory.View, error) {
	if tokens {
		_, token, _ := r.BasicAuth()
		if bearer, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); found {
			token = bearer
		}
		return objects.ForToken(r.Context(), token)
	}
	// The name of a web site may resolve to loopback: its scripts would read the responses.
	if host := (&url.URL{Host: r.Host}).Hostname(); host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return nil, errors.New("the host is not localhost")
	}
	return objects.View, nil
}

func writeError(w http.ResponseWriter, err error) {
	code := http.StatusBadRequest // an invalid query
	var status apierrors.APIStatus
	var failed net.Error
	if errors.As(err, &status) {
		code = int(status.Status().Code)
	} else if errors.As(err, &failed) {
		code = http.StatusBadGateway
	}
	if code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="a token as the password"`)
	}
	http.Error(w, err.Error(), code)
}
