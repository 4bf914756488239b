package transport

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport/internal/credential"
)

// renew replaces the credential after a 401. ok is false if the server did not reject the credential, or if there is no new
// credential. An error is from the renewal or from ctx.
func (c *call) renew(ctx context.Context, response *http.Response) (ok bool, err error) {
	if c.renewed {
		return false, nil
	}
	if rejected, err := c.checkCredential(ctx, response); err != nil || !rejected {
		return false, err
	}
	c.renewed = true
	renewed, err := c.conn.authenticator.Renew(ctx, c.credential)
	if err != nil || renewed == c.credential {
		return false, err
	}
	c.credential = renewed
	return true, nil
}

// prepareRenewed renews the credential before the next attempt, and closes the response. On failure it returns the response's
// error, with its cause if known.
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
	// maxCheckAge is the lifetime of a check's result.
	maxCheckAge = 10 * time.Second
	// recentRenewal is the time after a rejection in which a credential counts as new.
	recentRenewal = time.Minute
)

// credentialCheck caches the credential accepted in the last check by the API server.
type credentialCheck struct {
	// running has an element during a check. It guards the remaining fields. A mutex would not observe a ctx.
	running  chan struct{}
	accepted *credential.Credential
	at       time.Time
}

// checkCredential reports whether the API server itself rejected the credential with a 401. A 401 may come from a pod, service
// or node behind the API server, and must not cause a renewal for each request: GET /version decides then. GET /version also
// decides about a recently renewed and accepted credential, because an aggregated API may reject every credential. An error is
// from an ended ctx.
func (c *call) checkCredential(ctx context.Context, response *http.Response) (isRejected bool, err error) {
	justRenewed := c.credential.RenewedWithin(recentRenewal) && c.credential.WasAccepted()
	if !isForwarded(response.Request, c.conn.base.Path) && !justRenewed {
		return true, nil
	}
	check := c.conn.check
	select {
	case check.running <- struct{}{}: // concurrent calls wait for the result
		defer func() { <-check.running }()
	case <-ctx.Done():
		return false, fmt.Errorf("wait for a check of the credential: %w", retry.ContextError(ctx))
	}
	if check.accepted == c.credential && time.Since(check.at) < maxCheckAge {
		return false, nil
	}
	version := &call{conn: c.conn, req: &Request{Path: "/version"}, credential: c.credential}
	checked, err := version.try(ctx) //nolint:bodyclose // discard does
	if err != nil {
		if ctx.Err() != nil {
			return false, fmt.Errorf("check the credential: %w", err)
		}
		return false, nil
	}
	discard(checked.Body)
	if checked.StatusCode == http.StatusUnauthorized {
		return true, nil
	}
	check.accepted = c.credential
	check.at = time.Now()
	return false, nil
}

// isForwarded reports whether the API server forwards a request to a node, or to a program on the node. prefix is the path of the
// server's URL.
func isForwarded(req *http.Request, prefix string) bool {
	_, subresource, _ := strings.Cut(newAttempt(req, prefix).Resource, "/")
	switch subresource {
	case "proxy", "log", "exec", "attach", "portforward":
		return true
	}
	return false
}
