// Package credential implements the credentials of requests, their sources and their renewal.
//
// A [Credential] is an Authorization header, a client certificate, both or neither. It is immutable, and an unchanged credential
// keeps its pointer: transport pools compare certificates by pointer, and parsing a certificate takes longer than a request. An
// [Authenticator] returns the current credential, and a renewed credential after a 401:
//
//   - [Static] uses a token, a user name and password, and a certificate with its key, given inline or as files. While a
//     [File] is unreadable or empty, or only half of a certificate and key pair has been replaced, the previous content stays
//     in use.
//   - [Cache] keeps a credential with a slow source, an exec plugin or an OIDC refresh, until ten seconds before it expires: a
//     request takes its time, and clocks differ.
//
// Cache coalesces concurrent fetches like golang.org/x/sync/singleflight, with three differences: a caller stops waiting when its
// own ctx ends, a fetch without waiters is canceled unless it must complete, and a caller with an ended ctx starts no fetch. A
// fetch started by a rejection is a renewal. After consecutive renewals without an accepted credential, the next renewal is
// delayed (1 s, doubled up to 1 min), and until then callers get the previous result: a server rejecting every credential must
// not cause a log-in for each request.
//
// Memory per connection is limited to a credential, a fetch in flight and the content of the files.
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

	// renewedAt is the time at which this credential replaced a rejected credential, or the zero time.
	renewedAt time.Time
	// accepted is set after a response other than 401; nil if that is not recorded.
	accepted *atomic.Bool
}

// Authenticator returns credentials. It is safe for concurrent use.
type Authenticator interface {
	// Credential returns the current credential. It may read files, run a program or send requests, until ctx ends.
	Credential(ctx context.Context) (*Credential, error)
	// Renew returns a credential to replace the rejected credential, or rejected itself if there is no replacement.
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

// RenewedWithin reports whether the credential replaced a rejected credential less than d ago.
func (c *Credential) RenewedWithin(d time.Duration) bool { return time.Since(c.renewedAt) < d }

// WithCertificate returns the credential with a client certificate as well.
func (c *Credential) WithCertificate(certificate *tls.Certificate) *Credential {
	both := *c
	both.Certificate = certificate
	return &both
}

// equal reports whether the credentials are equal for a server.
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
		return "", errors.New("the token has a control character and cannot be sent in a header")
	}
	return "Bearer " + token, nil
}

// maxRedirects is net/http's default limit.
const maxRedirects = 10

// CheckRedirect is an http.Client's CheckRedirect for requests with credentials: it permits redirects on the same host only.
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
