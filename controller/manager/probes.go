package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/sanitize"
)

// check is a condition of readiness.
type check struct {
	name string
	run  func(ctx context.Context) error
}

// maxReason is the maximum length of the reason of a failed check.
const maxReason = 1000

// AddCheck adds a condition of readiness, for [Manager.Probes]. It is called for every probe.
func (m *Manager) AddCheck(name string, run func(ctx context.Context) error) {
	m.checks = append(m.checks, check{name, run})
}

// Probes returns the handler of the probes of a Pod: /healthz is 200 until Run has ended, and /readyz is 200 once all caches have synced
// and all checks succeed. Otherwise the code is 503. The body has a line for each condition, as that of an API server. A cache with an
// interrupted stream stays ready: all replicas would be taken out of service while the API server restarts.
func (m *Manager) Probes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if m.ended.Load() {
			http.Error(w, "the manager has ended", http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", m.serveReadiness)
	return mux
}

func (m *Manager) serveReadiness(w http.ResponseWriter, r *http.Request) {
	var text strings.Builder
	isReady := !m.ended.Load()
	report := func(name string, err error) {
		if err == nil {
			fmt.Fprintf(&text, "[+]%s ok\n", name)
			return
		}
		isReady = false
		fmt.Fprintf(&text, "[-]%s failed: %s\n", name, sanitize.Text(err.Error(), maxReason))
	}
	for _, c := range m.caches {
		report(c.name, c.syncError())
	}
	for _, c := range m.checks {
		report(c.name, c.run(r.Context()))
	}
	if !isReady {
		http.Error(w, text.String()+"not ready", http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, text.String()+"ready")
}

// closeGrace is the time for the last requests of a server.
const closeGrace = 10 * time.Second

// HTTPServer returns a function for [Manager.AddServer]. It serves on listener, or for nil on server.Addr, with TLS if server.TLSConfig
// is set. At the end of ctx it waits up to 10 seconds for running requests, and then closes their connections.
func HTTPServer(server *http.Server, listener net.Listener) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		if listener == nil {
			var err error
			if listener, err = new(net.ListenConfig).Listen(ctx, "tcp", server.Addr); err != nil {
				return err
			}
		}
		ended := make(chan error, 1)
		go func() {
			if server.TLSConfig != nil {
				ended <- server.ServeTLS(listener, "", "")
			} else {
				ended <- server.Serve(listener)
			}
		}()
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
		}
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
		defer cancel()
		err := server.Shutdown(closing)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}
}
