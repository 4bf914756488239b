package apitest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/apitest/internal/admission"
	"github.com/anykind/anykind/apitest/internal/controllers"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/podstream"
	"github.com/anykind/anykind/apitest/internal/serve"
	"github.com/anykind/anykind/apitest/internal/store"
	"github.com/anykind/anykind/apitest/internal/write"
	"github.com/anykind/anykind/transport"
)

// Server is a Kubernetes API server inside the process. It is safe for concurrent use.
type Server struct {
	// URL is the server's base URL, such as https://127.0.0.1:41234. Restart keeps it.
	URL string

	options   Options
	store     *store.Store
	registry  *kinds.Registry
	writer    *write.Writer
	access    *access.Access
	admission *admission.Admission
	handler   *serve.Handler
	crds      *controllers.Definitions
	ctx       context.Context
	cancel    context.CancelFunc
	conn      *transport.Conn // of Client
	clock     *Clock
	requests  requestLog
	warnings  warningLog
	faults    faultList

	copyDifferences []CopyDifference // of Options.Copy; read-only after the start

	mu       sync.Mutex
	listener net.Listener
	memory   *memoryListener
	http     *http.Server
	serving  sync.WaitGroup
	closed   bool
	onClose  []func()
}

// NewServer starts a server and closes it at the end of the test. It logs each different Warning of its responses once, by t.Log.
// Invalid opts fail the test at once. nil opts mean defaults.
func NewServer(t testing.TB, opts *Options) *Server {
	t.Helper()
	s, err := start(opts, t)
	if err != nil {
		t.Fatalf("start the API server: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start starts a server outside of a test. The caller must close it. nil opts mean defaults.
func Start(opts *Options) (*Server, error) { return start(opts, nil) }

// start starts a server. It logs warnings unless t is nil.
func start(opts *Options, t testing.TB) (*Server, error) {
	s := &Server{warnings: warningLog{t: t, logged: map[string]bool{}}}
	if opts != nil {
		s.options = *opts
	}
	if s.options.Now == nil {
		s.options.Now = time.Now
	}
	s.clock = newClock(s.options.Now, s.options.Seed)
	if s.options.History <= 0 {
		s.options.History = store.DefaultLimit
	}
	s.ctx, s.cancel = context.WithCancel(context.Background()) //nolint:forbidigo // the server runs until Close
	s.store = store.New(s.options.History)
	s.registry = kinds.New(s.options.Rules)
	s.access = access.New(s.store, access.Options{Accounts: accounts(s.options.Users), RBAC: s.options.RBAC, Now: s.clock.Now})
	s.admission = s.newAdmission()
	s.onClose = append(s.onClose, s.admission.Close)
	s.writer = write.New(write.Config{Store: s.store, Registry: s.registry, Admission: s.admission, Access: s.access, Now: s.clock.Now, Seed: s.options.Seed})
	s.crds = controllers.NewDefinitions(s.ctx, s.store, s.registry, s.writer, s.clock.Now)
	s.store.SetOnWrite(s.crds.Observe)
	s.requests.limit = s.options.History
	s.faults.init(s.options.Seed, s.options.Faults)
	s.handler = serve.New(serve.Config{
		Store: s.store, Registry: s.registry, Writer: s.writer, Access: s.access, Now: s.clock.Now,
		Streams:          &podstream.Handler{Handlers: s.options.Streams, Get: s.coreObject, Now: s.clock.Now},
		BookmarkInterval: s.options.BookmarkInterval, ShardedListAndWatch: s.options.ShardedListAndWatch, OnNotValidated: s.onNotValidated(),
		Observe: s.observe, Fault: s.faults.next, Settle: s.crds.Settle,
	})
	if err := s.load(); err != nil {
		s.cancel()
		return nil, err
	}
	if err := s.listen(""); err != nil {
		s.cancel()
		return nil, err
	}
	if err := s.openConn(); err != nil {
		s.Close()
		return nil, err
	}
	return s, s.startControllers()
}

func (s *Server) coreObject(resource, namespace, name string) (map[string]any, bool) {
	return s.store.Get(store.Key{Resource: resource, Namespace: namespace, Name: name})
}

// admin is the user of Client, Config and Kubeconfig.
func admin() access.User {
	return access.User{Name: "kubernetes-admin", Groups: []string{access.GroupMasters}}
}

// adminToken is no secret: every server of the process accepts it, on loopback.
const adminToken = "apitest-admin"

// panicWriter writes the server's panics, which are defects of this package. Errors of TLS and of connections are dropped: a client
// may close a connection at any time.
type panicWriter struct{ io.Writer }

// Write implements io.Writer.
func (w panicWriter) Write(text []byte) (int, error) {
	if !bytes.Contains(text, []byte(": panic serving ")) {
		return len(text), nil
	}
	return w.Writer.Write(text)
}

// listen begins to accept connections at address, or at a free port if it is "".
func (s *Server) listen(address string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("the server is closed")
	}
	s.http = &http.Server{
		Handler: s.handler, ErrorLog: log.New(panicWriter{os.Stderr}, "", 0), ReadHeaderTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return s.ctx },
	}
	if s.options.InMemory {
		if s.memory == nil {
			s.memory = newMemoryListener()
		}
		s.URL = "http://" + memoryHost
		s.serve(s.memory.reopen())
		return nil
	}
	if address == "" {
		address = "127.0.0.1:0"
	}
	authority, err := sharedAuthority()
	if err != nil {
		return fmt.Errorf("create certificates: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", address)
	if err != nil {
		return err
	}
	s.http.TLSConfig = authority.serverConfig()
	s.URL = "https://" + listener.Addr().String()
	s.listener = listener
	s.serve(tls.NewListener(listener, s.http.TLSConfig))
	return nil
}

func (s *Server) serve(listener net.Listener) {
	server := s.http
	s.serving.Go(func() { _ = server.Serve(listener) })
}

// Close stops the server and closes its connections. Running requests are canceled.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	server := s.http
	onClose := s.onClose
	s.mu.Unlock()
	for _, f := range onClose {
		f()
	}
	s.cancel()
	_ = server.Close()
	s.handler.Wait()
	s.serving.Wait()
}

// Restart closes all connections, stops accepting for the duration down, and serves again at the same address with the same
// objects and history. It is like replacing the API server's process and keeping etcd. With 0, clients may connect again at once.
func (s *Server) Restart(down time.Duration) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errors.New("restart the API server: it is closed")
	}
	server := s.http
	address := ""
	if s.listener != nil {
		address = s.listener.Addr().String()
	}
	s.mu.Unlock()
	_ = server.Close()
	s.serving.Wait()
	if down > 0 {
		timer := time.NewTimer(down)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.ctx.Done():
		}
	}
	if err := s.listen(address); err != nil {
		return fmt.Errorf("restart the API server: %w", err)
	}
	return nil
}

// Compact removes the history up to the present, like etcd's compaction. Lists and watches at an older resourceVersion, and
// continued lists, get 410. Running watches continue.
func (s *Server) Compact() { s.store.Compact(s.store.Revision()) }
