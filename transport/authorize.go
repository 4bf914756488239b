package transport

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

type identityKey struct{}

// asking says which identity a request's RoundTrip shall use.
func asking(ctx context.Context, id *identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// authorizing writes who asks into requests to host, and into no others, and sends them over a connection that
// showed the right certificate.
type authorizing struct {
	host        string
	impersonate http.Header
	connections *connections
}

func (a *authorizing) RoundTrip(req *http.Request) (*http.Response, error) {
	id, _ := req.Context().Value(identityKey{}).(*identity)
	if id == nil || req.URL.Host != a.host {
		id = &identity{}
	}
	next, err := a.connections.showing(id.certificate)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	if req.URL.Host != a.host {
		return next.RoundTrip(req)
	}
	authorized := req.Clone(req.Context())
	a.write(id, authorized.Header)
	return next.RoundTrip(authorized)
}

// write adds what says who asks to a request's headers.
func (a *authorizing) write(id *identity, header http.Header) {
	for name, values := range a.impersonate {
		header[name] = values
	}
	if id.authorization != "" {
		header.Set("Authorization", id.authorization)
	}
}

// closeBody is what a RoundTripper owes a request that it does not send.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

func impersonationHeader(as Impersonation) http.Header {
	header := http.Header{}
	if as.User != "" {
		header.Set("Impersonate-User", as.User)
	}
	if as.UID != "" {
		header.Set("Impersonate-Uid", as.UID)
	}
	for _, group := range as.Groups {
		header.Add("Impersonate-Group", group)
	}
	for key, values := range as.Extra {
		for _, value := range values {
			header.Add("Impersonate-Extra-"+escapeHeaderKey(strings.ToLower(key)), value)
		}
	}
	return header
}

// escapeHeaderKey percent-encodes what a header's name cannot hold; the server undoes it.
func escapeHeaderKey(key string) string {
	var escaped strings.Builder
	for i := range len(key) {
		switch b := key[i]; {
		case b >= 'a' && b <= 'z', b >= '0' && b <= '9', strings.IndexByte("!#$&'*+-.^_`|~", b) >= 0:
			escaped.WriteByte(b)
		default:
			fmt.Fprintf(&escaped, "%%%02X", b)
		}
	}
	return escaped.String()
}
