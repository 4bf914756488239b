package transport

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"
)

// checkInterval is how long the API server's word on a credential counts.
const checkInterval = 10 * time.Second

// renewedInterval is how long a credential counts as new after a refusal.
const renewedInterval = time.Minute

// credentialChecks remembers the credential that the API server accepted last, when it was asked.
type credentialChecks struct {
	mu       sync.Mutex
	accepted *identity
	at       time.Time
}

// refusedByServer reports whether it was the API server that refused the credential with 401. Below some paths others
// answer, whose answer may look like the API server's in every way: programs in pods, services and nodes. There the API
// server is asked itself, so that no program can make this one log in again and again. So it is where a credential that is
// new because of a refusal, and has been accepted since, is refused again: an aggregated API may accept none.
func (c *call) refusedByServer(ctx context.Context, response *http.Response) bool {
	justRenewed := time.Since(c.id.renewed) < renewedInterval && c.id.wasAccepted()
	if !isForwarded(response.Request, c.conn.base.Path) && !justRenewed {
		return true
	}
	checks := &c.conn.checks
	checks.mu.Lock() // held while the server is asked: others wait for the answer, within their own attempt's time
	defer checks.mu.Unlock()
	if checks.accepted == c.id && time.Since(checks.at) < checkInterval {
		return false
	}
	check := &call{conn: c.conn, req: &Request{Path: "/version"}, id: c.id}
	answer, err := check.try(ctx) //nolint:bodyclose // discard does
	if err != nil {
		return false
	}
	discard(answer.Body)
	if answer.StatusCode == http.StatusUnauthorized {
		return true
	}
	checks.accepted, checks.at = c.id, time.Now()
	return false
}

// isForwarded reports whether the API server passes a request on to a node, or to a program on it. prefix is the path of
// the server's URL.
func isForwarded(req *http.Request, prefix string) bool {
	_, resource := verbAndResource(req, prefix)
	_, subresource, _ := strings.Cut(resource, "/")
	switch subresource {
	case "proxy", "log", "exec", "attach", "portforward":
		return true
	}
	return false
}
