package web

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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/inventory"
)

//go:embed pages.html
var htmlText string

// timeout bounds the work for a request.
const timeout = 30 * time.Second

// Options are the options of [Handler].
type Options struct {
	// Tokens requires a token of the cluster in each request, as the bearer token, or in a browser as the password. A page has the
	// objects that the user of the token may list. This needs a server with TLS.
	//
	// Without Tokens every client sees all objects of the cache. Requests for other hosts than localhost and loopback addresses are rejected
	// then: a web site whose name resolves to loopback would read the pages in the user's browser.
	Tokens bool
}

// Handler returns the pages of a cache: "/" has the number of objects of each kind, "/objects" is a search, and "/object?uid=UID" has an object
// with its tree of dependents, its references, readiness and Events. They are HTML without scripts, or JSON with ?format=json. Of a
// Secret the pages have only the metadata, without annotations.
//
// An invalid query has the code 400, an object that is not in the cache 404, and a missing or invalid token 401. While the cache is not
// healthy, a page has the reason beside its objects. A request ends with 503 after 30 seconds. Links are relative: http.StripPrefix serves the
// pages below a path that ends in "/".
func Handler(objects *inventory.Cache, opts *Options) http.Handler {
	tokens := opts != nil && opts.Tokens
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
	handle("/object", "object", object)
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
