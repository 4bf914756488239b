// Package faultproxy is a proxy between a client under test and a real API server. It injects faults on a schedule determined
// by a seed: error statuses, dropped connections, delays, responses cut in the middle of a frame, half-closed and stalled
// connections, and expired credentials.
package faultproxy

import (
	"bytes"
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

// Proxy is a server on loopback. It accepts a single valid token and forwards requests as an administrator. In a storm, the
// n-th request gets the n-th fault of the schedule, and the token may expire.
type Proxy struct {
	url       string
	server    *httptest.Server
	upstreams []string // API servers; each request goes to one of them
	token     string
	client    *http.Client

	mu          sync.Mutex
	storm       bool
	maxCut      int // maximum number of bytes before a cut
	noWatchList bool
	lost        string // watch events with this text are lost; "" loses none
	onResponse  func(*http.Response)
	valid       *credential
	rng         *rand.Rand
	faults      map[string]int
	conns       map[net.Conn]struct{}
	ended       chan struct{}
}

// New starts a proxy for the sandbox's API server. The proxy is closed when the test ends. It forwards all requests until Storm
// is called.
func New(t testing.TB, seed uint64) *Proxy {
	t.Helper()
	return start(t, seed, cluster.Kubeconfig(t))
}

// NewBalanced is New for all API servers of the sandbox: each request goes to a random server, as behind a load balancer.
func NewBalanced(t testing.TB, seed uint64) *Proxy {
	t.Helper()
	return start(t, seed, cluster.Kubeconfigs(t)...)
}

func start(t testing.TB, seed uint64, kubeconfigs ...string) *Proxy {
	t.Helper()
	var cfg *transport.Config
	var servers []string
	for _, path := range kubeconfigs {
		var err error
		if cfg, err = transport.Load(t.Context(), &transport.LoadOptions{Path: path, Context: "token"}); err != nil {
			t.Fatalf("read the sandbox's kubeconfig: %v", err)
		}
		servers = append(servers, cfg.Server)
	}
	var err error
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cfg.CAData)
	through := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableCompression: true}
	p := &Proxy{
		upstreams: servers, token: cfg.Token.Reveal(), faults: map[string]int{}, conns: map[net.Conn]struct{}{}, ended: make(chan struct{}),
		client: &http.Client{Transport: through},
		rng:    rand.New(rand.NewPCG(seed, seed)), //nolint:gosec // a schedule that can be repeated
	}
	if p.valid, err = newCredential(t.TempDir()); err != nil {
		t.Fatalf("write the first token: %v", err)
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

// Storm starts the schedule of faults. Responses are cut within maxCut bytes. It closes every connection, so that
// streams must reconnect.
func (p *Proxy) Storm(maxCut int) {
	p.mu.Lock()
	p.storm = true
	p.maxCut = maxCut
	p.mu.Unlock()
	p.server.CloseClientConnections()
}

// Calm ends the storm. Responses in a stall stall for their remaining time. The current token stays valid.
func (p *Proxy) Calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.storm = false
}

// WithoutWatchList makes the proxy reject WatchList (https://kep.k8s.io/3157). Clients then list in pages.
func (p *Proxy) WithoutWatchList() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noWatchList = true
}

// Lose drops JSON watch events with a text, such as the name of an object. "" drops none. Watches from before the first call may be
// compressed, and lose none.
func (p *Proxy) Lose(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = text
}

// OnResponse sets a function that gets each response of a server before its faults. It may replace the body.
func (p *Proxy) OnResponse(f func(*http.Response)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onResponse = f
}

func (p *Proxy) isLosing() bool { return p.isLost(nil) }

// isLost reports whether an event is lost, or for nil whether any event is.
func (p *Proxy) isLost(event []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost != "" && (event == nil || bytes.Contains(event, []byte(p.lost)))
}

// eventReader reads the body of a watch without the lost events. Without a text of [Proxy.Lose], it holds nothing back.
type eventReader struct {
	proxy   *Proxy
	body    io.Reader
	ready   []byte // to be read
	pending []byte // the begin of an event that may be lost
	isMid   bool   // the begin of the current event has been read
}

func (e *eventReader) Read(b []byte) (int, error) {
	var err error
	for len(e.ready) == 0 && err == nil {
		chunk := make([]byte, 4<<10)
		var n int
		n, err = e.body.Read(chunk)
		e.add(chunk[:n])
		if err != nil {
			e.ready = append(e.ready, e.pending...)
			e.pending = nil
		}
	}
	n := copy(b, e.ready)
	if e.ready = e.ready[n:]; len(e.ready) > 0 {
		return n, nil
	}
	return n, err
}

func (e *eventReader) add(data []byte) {
	for len(data) > 0 {
		piece := data
		end := bytes.IndexByte(data, '\n') + 1
		if end > 0 {
			piece = data[:end]
		}
		data = data[len(piece):]
		if e.isMid || len(e.pending) == 0 && !e.proxy.isLosing() {
			e.ready = append(e.ready, piece...)
			e.isMid = end == 0
			continue
		}
		e.pending = append(e.pending, piece...)
		if end > 0 {
			if !e.proxy.isLost(e.pending) {
				e.ready = append(e.ready, e.pending...)
			}
			e.pending = nil
		}
	}
}

// Faults returns the number of requests for each fault name.
func (p *Proxy) Faults() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	faults := make(map[string]int, len(p.faults))
	for name, n := range p.faults {
		faults[name] = n
	}
	return faults
}

// chooseServer returns the server of a request. It takes no number of the schedule, which depends on the seed alone.
func (p *Proxy) chooseServer() string { return p.upstreams[rand.IntN(len(p.upstreams))] } //nolint:gosec // any server will do

// Connections returns the number of open connections to the proxy.
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
	case !p.isAuthenticated(r):
		writeStatus(w, http.StatusUnauthorized)
	case f.status != 0:
		writeStatus(w, f.status)
	case f.drop:
		panic(http.ErrAbortHandler) // closes the connection without a response
	case p.rejectsWatchList(r):
		writeStatus(w, http.StatusUnprocessableEntity)
	default:
		p.forward(w, r, f)
	}
}

func (p *Proxy) rejectsWatchList(r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.noWatchList && r.URL.Query().Has("sendInitialEvents")
}

func writeStatus(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1") // as API servers do
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, statuses[status])
}

// forward forwards the request and its response, with the fault.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, f fault) {
	ctx := r.Context()
	if f.life > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.life)
		defer cancel()
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, p.chooseServer()+r.URL.RequestURI(), r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	request.Header = r.Header.Clone()
	request.Header.Set("Authorization", "Bearer "+p.token)
	if p.isLosing() {
		request.Header.Del("Accept-Encoding") // Kubernetes 1.37 compresses watches
	}
	response, err := p.client.Do(request)
	if err != nil {
		panic(http.ErrAbortHandler) // as if the server itself were unreachable
	}
	p.mu.Lock()
	onResponse := p.onResponse
	p.mu.Unlock()
	if onResponse != nil {
		onResponse(response)
	}
	defer response.Body.Close()
	for name, values := range response.Header {
		if !strings.EqualFold(name, "Content-Length") {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(response.StatusCode)
	var body io.Reader = response.Body
	if r.URL.Query().Has("watch") {
		body = &eventReader{proxy: p, body: body}
	}
	p.copy(w, r, body, f)
}

func (p *Proxy) copy(w http.ResponseWriter, r *http.Request, body io.Reader, f fault) {
	flush := http.NewResponseController(w)
	left := f.cutAfter
	for chunk := make([]byte, 4<<10); ; {
		n, err := body.Read(chunk)
		if f.cut && n >= left {
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
			panic(http.ErrAbortHandler) // a cut response must not look complete
		}
	}
}

// halfClose closes the direction to the client and waits for the client to close the connection.
func halfClose(response *http.ResponseController) {
	conn, _, err := response.Hijack()
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

// sleep waits and reports whether the time has passed. It returns false if the client disconnects or the test ends.
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
