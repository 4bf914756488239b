package transport

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/anykind/anykind/transport/internal/credential"
)

type requestUserKey struct{}

// requestUser is the user that a request is made as.
type requestUser struct {
	conn       *Conn
	credential *credential.Credential
}

// withUser returns a ctx whose requests a pool authenticates.
func (c *call) withUser(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestUserKey{}, requestUser{c.conn, c.credential})
}

// RoundTrip adds the user of a request's context to requests to the server's host, and to no others, below every wrapper.
// It sends them over a connection that presents the credential's certificate. A request whose context a wrapper has replaced
// has neither a credential nor an impersonated user.
func (p *pool) RoundTrip(req *http.Request) (*http.Response, error) {
	user, ok := req.Context().Value(requestUserKey{}).(requestUser)
	c, toHost := user.credential, ok && req.URL.Host == user.conn.base.Host
	if c == nil || !toHost {
		c = &credential.Credential{}
	}
	next, err := p.transport(c.Certificate)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	if protocol := req.Header.Get("Upgrade"); protocol != "" && !strings.EqualFold(protocol, "websocket") {
		next = http1(next)
	}
	if !toHost {
		return next.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	setImpersonation(req.Header, user.conn.impersonate)
	if c.Authorization != "" {
		req.Header.Set("Authorization", c.Authorization)
	}
	return next.RoundTrip(req)
}

// renew replaces the credential after a response of 401. ok is false if the server did not reject it, or if there is no other.
func (c *call) renew(ctx context.Context, response *http.Response) (ok bool, err error) {
	if c.renewed || !c.isRejectedByServer(ctx, response) {
		return false, nil
	}
	c.renewed = true
	renewed, err := c.conn.authenticator.Renew(ctx, c.credential)
	if err != nil || renewed == c.credential {
		return false, err
	}
	c.credential = renewed
	return true, nil
}

// prepareRenewed renews the credential before the next attempt, and closes the response. If it cannot, it returns the
// response's error and its cause, if known.
func (c *call) prepareRenewed(ctx context.Context, response *http.Response) error {
	ok, renewErr := c.renew(ctx, response)
	if ok {
		discard(response.Body)
		return nil
	}
	err := statusError(response)
	if renewErr != nil {
		return fmt.Errorf("%w; renew the credential: %w", err, renewErr)
	}
	certificate := c.credential.Certificate
	if certificate != nil && certificate.Leaf != nil && time.Now().After(certificate.Leaf.NotAfter) {
		return fmt.Errorf("%w; the client certificate expired at %s (get a new one)", err, certificate.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return err
}

const (
	// maxCheckAge is how long the API server's answer about a credential is used.
	maxCheckAge = 10 * time.Second
	// recentRenewal is how long after a rejection a credential counts as new.
	recentRenewal = time.Minute
)

// credentialCheck remembers which credential the API server accepted when it was last checked.
type credentialCheck struct {
	mu       sync.Mutex
	accepted *credential.Credential
	at       time.Time
}

// isRejectedByServer reports whether it was the API server that rejected the credential with 401. Below some paths programs
// in pods, services and nodes respond, as they like. So that none of them can cause one renewal after the other, a request to
// the API server itself checks the credential there, and also if a credential is rejected again that has just been renewed
// and accepted elsewhere: an aggregated API may accept none.
func (c *call) isRejectedByServer(ctx context.Context, response *http.Response) bool {
	justRenewed := c.credential.RenewedWithin(recentRenewal) && c.credential.WasAccepted()
	if !isForwarded(response.Request, c.conn.base.Path) && !justRenewed {
		return true
	}
	check := c.conn.check
	check.mu.Lock() // held during the request: others use its result
	defer check.mu.Unlock()
	if check.accepted == c.credential && time.Since(check.at) < maxCheckAge {
		return false
	}
	version := &call{conn: c.conn, req: &Request{Path: "/version"}, credential: c.credential}
	answer, err := version.try(ctx) //nolint:bodyclose // discard does
	if err != nil {
		return false
	}
	discard(answer.Body)
	if answer.StatusCode == http.StatusUnauthorized {
		return true
	}
	check.accepted, check.at = c.credential, time.Now()
	return false
}

// isForwarded reports whether the API server forwards a request to a node, or to a program on it. prefix is the path of
// the server's URL.
func isForwarded(req *http.Request, prefix string) bool {
	_, subresource, _ := strings.Cut(newAttempt(req, prefix).Resource, "/")
	switch subresource {
	case "proxy", "log", "exec", "attach", "portforward":
		return true
	}
	return false
}
