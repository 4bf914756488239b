// Package faultproxy stands between a client under test and a real API server and breaks what goes through, on a
// schedule that a seed determines: it refuses, drops, delays, cuts in the middle of a frame, closes
// one direction alone, stalls, and lets credentials expire.
package faultproxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
)

// Proxy is a server on loopback. It takes one token, which expires in storms, and is an administrator to the server
// behind it. In a storm the n-th request meets the n-th fault of the schedule.
type Proxy struct {
	url      string
	server   *httptest.Server
	upstream string
	token    string
	client   *http.Client

	mu    sync.Mutex
	storm bool
	reach int  // how late an answer is cut, in bytes
	lists bool // no watch begins with what there is
	valid *credential
	rng   *rand.Rand
	met   map[string]int
	conns map[net.Conn]struct{}
	ended chan struct{}
}

// New starts a proxy in front of the sandbox's API server; it ends with the test. Until Storm it lets all through.
func New(t testing.TB, seed uint64) *Proxy {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: "token"})
	if err != nil {
		t.Fatalf("reading the sandbox's kubeconfig: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cfg.CAData)
	through := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableCompression: true}
	p := &Proxy{
		upstream: cfg.Server, token: cfg.Token.Reveal(), met: map[string]int{}, conns: map[net.Conn]struct{}{}, ended: make(chan struct{}),
		client: &http.Client{Transport: through},
		rng:    rand.New(rand.NewPCG(seed, seed)), //nolint:gosec // a schedule that can be repeated
	}
	if p.valid, err = credentialIn(t.TempDir()); err != nil {
		t.Fatalf("writing the first token: %v", err)
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.Config.ConnState = p.count
	p.server.Start()
	p.url = p.server.URL
	t.Cleanup(func() {
		close(p.ended)
		p.server.CloseClientConnections()
		p.server.Close()
		through.CloseIdleConnections()
	})
	return p
}

// Storm begins the schedule of faults, in which what is cut is cut within so many bytes. It closes every connection, so
// that whoever streams must come again.
func (p *Proxy) Storm(reach int) {
	p.mu.Lock()
	p.storm, p.reach = true, reach
	p.mu.Unlock()
	p.server.CloseClientConnections()
}

// Calm lets everything through from now on; what stalls goes on to stall until its time is over. The token that is
// valid now stays so.
func (p *Proxy) Calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.storm = false
}

// WithoutWatchList makes the server one that has no WatchList (https://kep.k8s.io/3157), so that clients list in pages.
func (p *Proxy) WithoutWatchList() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists = true
}

// Met counts the faults that requests have met, by name.
func (p *Proxy) Met() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	met := make(map[string]int, len(p.met))
	for name, n := range p.met {
		met[name] = n
	}
	return met
}

// Connections is how many connections clients have to the proxy.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

func (p *Proxy) count(conn net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(p.conns, conn)
	} else {
		p.conns[conn] = struct{}{}
	}
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := p.next()
	if !p.sleep(r, f.delay) {
		return
	}
	switch {
	case !p.takes(r):
		answer(w, http.StatusUnauthorized)
	case f.status != 0:
		answer(w, f.status)
	case f.drop:
		panic(http.ErrAbortHandler) // closes the connection without an answer
	case p.refusesWatchList(r):
		answer(w, http.StatusUnprocessableEntity)
	default:
		p.forward(w, r, f)
	}
}

func (p *Proxy) refusesWatchList(r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lists && r.URL.Query().Has("sendInitialEvents")
}

func answer(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1") // as API servers do
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, statuses[status])
}

// forward hands the request on and its answer back, as far as the fault lets it.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, f fault) {
	ctx := r.Context()
	if f.life > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.life)
		defer cancel()
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, p.upstream+r.URL.RequestURI(), r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	request.Header = r.Header.Clone()
	request.Header.Set("Authorization", "Bearer "+p.token)
	response, err := p.client.Do(request)
	if err != nil {
		panic(http.ErrAbortHandler) // as if the server itself could not be reached
	}
	defer response.Body.Close()
	for name, values := range response.Header {
		if !strings.EqualFold(name, "Content-Length") {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(response.StatusCode)
	p.copy(w, r, response.Body, f)
}

func (p *Proxy) copy(w http.ResponseWriter, r *http.Request, body io.Reader, f fault) {
	flush := http.NewResponseController(w)
	left := f.after
	for chunk := make([]byte, 4<<10); ; {
		n, err := body.Read(chunk)
		if f.breaks && n >= left {
			_, _ = w.Write(chunk[:left])
			_ = flush.Flush()
			p.sleep(r, f.stall)
			if f.half {
				halfClose(flush)
			}
			panic(http.ErrAbortHandler)
		}
		left -= n
		if _, failed := w.Write(chunk[:n]); failed != nil {
			return
		}
		_ = flush.Flush()
		if err == io.EOF || errors.Is(err, context.DeadlineExceeded) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // a cut answer must not look whole
		}
	}
}

// halfClose ends what the client hears, and then waits a while for the client to leave, too.
func halfClose(answer *http.ResponseController) {
	conn, _, err := answer.Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.Copy(io.Discard, conn)
}

// sleep is false if the client left or the test ended.
func (p *Proxy) sleep(r *http.Request, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-p.ended:
	}
	return false
}
