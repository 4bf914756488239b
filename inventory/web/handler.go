package web

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
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

// maxErrorCode is the last code of a response with an error.
const maxErrorCode = 599

// Options are the options of [Handler].
type Options struct {
	// Tokens requires a token of the cluster in each request, as the bearer token, or in a browser as the password. A page has the
	// objects that the user of the token may list. This needs a server with TLS. Handlers below different paths have different realms
	// of Basic authentication: a browser asks for the token of each cluster.
	//
	// Without Tokens every client sees all objects of the cache. Requests are then rejected unless their host is localhost or a loopback
	// address: a web site may resolve to loopback, and would read the pages in the user's browser.
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
	s := &server{
		objects: objects, requiresToken: opts != nil && opts.Tokens,
		templates: template.Must(template.New("").Funcs(template.FuncMap{"yaml": encodeYAML}).Parse(htmlText)),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page("kinds", kinds))
	mux.HandleFunc("GET /objects", s.page("objects", search))
	mux.HandleFunc("GET /object", s.page("object", object))
	return http.TimeoutHandler(mux, timeout, "timeout\n")
}

type server struct {
	objects       *inventory.Cache
	requiresToken bool
	templates     *template.Template
}

// readFunc returns the data of a page from the objects that the user of the request may list.
type readFunc func(r *http.Request, view *inventory.View) (map[string]any, error)

// page returns the handler of a page, which is rendered by the template of its name.
func (s *server) page(name string, read readFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		view, err := s.view(r)
		if err != nil {
			writeError(w, r, err)
			return
		}
		data, err := read(r, view)
		if err != nil {
			writeError(w, r, err)
			return
		}
		if health := s.objects.Health(); health != nil {
			data["error"] = health.Error()
		}
		var body bytes.Buffer
		if r.URL.Query().Get("format") == "json" {
			w.Header().Set("Content-Type", "application/json")
			err = json.NewEncoder(&body).Encode(data)
		} else {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			err = s.templates.ExecuteTemplate(&body, name, data)
		}
		if err != nil {
			writeError(w, r, err)
			return
		}
		_, _ = body.WriteTo(w) // the client may be gone
	}
}

// view returns the objects for a request. A token is a bearer token, or in a browser the password.
func (s *server) view(r *http.Request) (*inventory.View, error) {
	if s.requiresToken {
		_, token, _ := r.BasicAuth()
		if bearer, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); found {
			token = bearer
		}
		return s.objects.ForToken(r.Context(), token)
	}
	// The name of a web site may resolve to loopback: its scripts would read the responses.
	if host := (&url.URL{Host: r.Host}).Hostname(); host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return nil, errors.New("the host is not localhost")
	}
	return s.objects.View, nil
}

func writeError(w http.ResponseWriter, r *http.Request, err error) {
	code := http.StatusBadRequest // an invalid query
	var status apierrors.APIStatus
	var failed net.Error
	if errors.As(err, &status) {
		code = int(status.Status().Code)
		if code < http.StatusBadRequest || code > maxErrorCode { // net/http panics with a code that does not exist
			code = http.StatusBadGateway
		}
	} else if errors.As(err, &failed) {
		code = http.StatusBadGateway
	}
	if code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("Basic realm=%q", "a token for "+prefix(r)+" as the password"))
	}
	http.Error(w, err.Error(), code)
}

// prefix returns the path of the handler's first page, with the prefix that http.StripPrefix has removed. A browser sends the password to
// all paths of a realm: a realm with the prefix keeps the token of a cluster from the server of the next cluster.
func prefix(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	return strings.TrimSuffix(path, r.URL.Path) + "/"
}
