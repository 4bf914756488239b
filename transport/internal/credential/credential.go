// Package credential holds what requests authenticate with, where it comes from and when it is renewed.
//
// A [Credential] is an Authorization header, a client certificate, both or neither. It is immutable, and a credential that
// has not changed keeps its pointer: transport pools compare certificates by pointer, and parsing one takes longer than a
// request. An [Authenticator] returns the current credential, and another one after the server rejected it with 401:
//
//   - [Static] uses a token, a user name and password, and a certificate with its key, given inline or as files. While a
//     [File] cannot be read, is empty, or only one of certificate and key has been replaced, the previous content stays in use.
//   - [Cache] keeps a credential that takes long to obtain, from an exec plugin or by an OIDC refresh, until ten seconds
//     before it expires: a request takes its time, and clocks differ.
//
// Cache coalesces concurrent fetches as golang.org/x/sync/singleflight does, with differences that requests need: a caller
// stops waiting when its own ctx ends, a fetch that nobody waits for is canceled unless it must complete, and a caller whose
// ctx has ended starts none. A fetch that starts because of a rejection counts as a renewal. After renewals in a row that the
// server did not accept, the next one waits (1 s, doubled up to 1 min), and until then callers get the previous result: a
// server that rejects every credential must not cause a log-in for each request.
//
// Memory is bounded by one credential, one fetch in flight and the content of the files, for each connection.
package credential

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Credential authenticates a request: a token, a password or a certificate. The zero value is anonymous.
type Credential struct {
	Authorization string // value of the header
	Certificate   *tls.Certificate
	Expires       time.Time // for a Cache; the zero time means never

	// renewedAt is the time at which it replaced one that a server rejected, the zero time if it did not.
	renewedAt time.Time
	// accepted is set once a server has answered a request with it otherwise than by 401; nil if that is not recorded.
	accepted *atomic.Bool
}

// Authenticator returns credentials. It is safe for concurrent use.
type Authenticator interface {
	// Credential returns the current one. It may read files, run a program or send requests, until ctx ends.
	Credential(ctx context.Context) (*Credential, error)
	// Renew returns a credential to use instead of one that the server rejected, or the same if there is no other.
	Renew(ctx context.Context, rejected *Credential) (*Credential, error)
}

// SetAccepted records that a server has accepted the credential.
func (c *Credential) SetAccepted() {
	if c != nil && c.accepted != nil {
		c.accepted.Store(true)
	}
}

// WasAccepted reports whether a server is known to have accepted the credential.
func (c *Credential) WasAccepted() bool { return c.accepted != nil && c.accepted.Load() }

// RenewedWithin reports whether it replaced a rejected credential less than d ago.
func (c *Credential) RenewedWithin(d time.Duration) bool { return time.Since(c.renewedAt) < d }

// WithCertificate returns the credential with a client certificate as well.
func (c *Credential) WithCertificate(certificate *tls.Certificate) *Credential {
	both := *c
	both.Certificate = certificate
	return &both
}

// equal reports whether a server would see no difference.
func (c *Credential) equal(other *Credential) bool {
	return other != nil && c.Authorization == other.Authorization && c.Certificate == other.Certificate
}

func equalCertificates(a, b *Credential) bool {
	return a.Certificate != nil && b.Certificate != nil &&
		slices.EqualFunc(a.Certificate.Certificate, b.Certificate.Certificate, bytes.Equal)
}

// Bearer returns the Authorization header for a token, "" for none. Its error does not show the token.
func Bearer(token string) (string, error) {
	token = strings.TrimSpace(token)
	if token == "" {
		return "", nil
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errors.New("the token has a control character, which a header cannot hold")
	}
	return "Bearer " + token, nil
}

// maxRedirects is as many as net/http follows by default.
const maxRedirects = 10

// CheckRedirect is an http.Client's CheckRedirect for requests that carry credentials: it allows redirects on the same
// host only.
func CheckRedirect(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		return fmt.Errorf("the server redirects to another host, %s://%s, where credentials must not go "+
			"(configure that one if it is the right one)", req.URL.Scheme, req.URL.Host)
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects: the server redirects in a circle", maxRedirects)
	}
	return nil
}
