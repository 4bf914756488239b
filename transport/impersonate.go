package transport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Impersonate returns a Conn for impersonated requests with c's credential. The credential needs the verb impersonate for the
// user, and for each group, uid and extra: https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/. The user
// replaces c's impersonated user, if any. Without as.User it returns an error: an empty name must not make requests as the
// credential's own user.
//
// The Conn shares network connections, credential and Options with c, but no responses. Each Conn has its own set of warnings
// already passed to OnWarning. A round tripper of WrapTransport must not cache responses across requests: it does not see the
// user.
func (c *Conn) Impersonate(as Impersonation) (*Conn, error) {
	if as.User == "" {
		return nil, errors.New("impersonate: the user is missing")
	}
	derived := c.derive()
	derived.impersonate = impersonationHeader(as)
	return derived, nil
}

// WithOnWarning returns a Conn with onWarning in place of c's [Options].OnWarning. It is called once for each text unless
// RepeatWarnings is set; nil means no calls. Everything else is shared with c.
func (c *Conn) WithOnWarning(onWarning func(ctx context.Context, text string)) *Conn {
	derived := c.derive()
	derived.options.OnWarning = onWarning
	return derived
}

// derive returns a Conn with c's network connections and credential. Only c's Close closes them.
func (c *Conn) derive() *Conn {
	derived := *c
	derived.warnings = &warningSet{}
	derived.closeIdle = func() {}
	return &derived
}

// impersonationHeader returns the headers of an impersonated user.
func impersonationHeader(as Impersonation) http.Header {
	header := http.Header{}
	if as.User != "" {
		header.Set("Impersonate-User", as.User)
	}
	if as.UID != "" {
		header.Set("Impersonate-Uid", as.UID)
	}
	if len(as.Groups) > 0 {
		header["Impersonate-Group"] = slices.Clip(slices.Clone(as.Groups)) // appending copies it
	}
	for key, values := range as.Extra {
		for _, value := range values {
			header.Add("Impersonate-Extra-"+escapeHeaderKey(strings.ToLower(key)), value)
		}
	}
	return header
}

// escapeHeaderKey percent-encodes the bytes not permitted in a header name; the server decodes them.
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

// setImpersonation replaces all impersonation headers of a request by impersonate, unless impersonate is empty.
func setImpersonation(header, impersonate http.Header) {
	if len(impersonate) == 0 {
		return
	}
	maps.DeleteFunc(header, func(name string, _ []string) bool {
		return strings.HasPrefix(http.CanonicalHeaderKey(name), "Impersonate-")
	})
	maps.Copy(header, impersonate)
}
