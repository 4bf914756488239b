//go:build unix

package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"
)

// ControlSocket is the unix socket on which programs in any language that use
// the cluster may control it, by HTTP:
//
//	GET  /status
//	POST /start?component=NAME
//	POST /stop?component=NAME[&kill=true]
//	POST /restart?component=NAME[&kill=true]
//	POST /compact
//
// Answers are JSON: a Status, {"revision": "…"} or, when a call fails,
// {"error": "…"} with a code of 400 or 500. A call answers once what it asked
// for has happened.
func (c *Cluster) ControlSocket() string { return filepath.Join(c.Dir, ControlSocketName) }

// ControlSocketName is the socket's name in the cluster's folder.
const ControlSocketName = "control.sock"

func (c *Cluster) serveControl() error {
	listener, err := net.Listen("unix", c.ControlSocket())
	if err != nil {
		return fmt.Errorf("opening the control socket: %w", err)
	}
	c.control = &http.Server{Handler: c.controlHandler(), ReadHeaderTimeout: 10 * time.Second}
	c.watchers.Go(func() { _ = c.control.Serve(listener) }) // ends with Stop, which is no error
	return nil
}

func (c *Cluster) controlHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, c.Status())
	})
	mux.HandleFunc("POST /compact", func(w http.ResponseWriter, r *http.Request) {
		revision, err := c.Compact(r.Context())
		if err != nil {
			answerError(w, http.StatusInternalServerError, err)
			return
		}
		answer(w, http.StatusOK, map[string]string{"revision": revision})
	})
	mux.HandleFunc("POST /start", c.handle(func(ctx context.Context, name string, _ bool) error {
		return c.StartComponent(ctx, name)
	}))
	mux.HandleFunc("POST /stop", c.handle(c.StopComponent))
	mux.HandleFunc("POST /restart", c.handle(c.RestartComponent))
	return mux
}

// handle serves a call that does something to a component.
func (c *Cluster) handle(do func(ctx context.Context, name string, kill bool) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.FormValue("component")
		kill, err := strconv.ParseBool(orFalse(r.FormValue("kill")))
		if err != nil {
			answerError(w, http.StatusBadRequest, fmt.Errorf("kill=%q: want true or false", r.FormValue("kill")))
			return
		}
		if _, err := c.member(name); err != nil {
			answerError(w, http.StatusBadRequest, err)
			return
		}
		// A caller that goes away must not leave a component half restarted.
		if err := do(context.WithoutCancel(r.Context()), name, kill); err != nil {
			answerError(w, http.StatusInternalServerError, err)
			return
		}
		answer(w, http.StatusOK, c.Status())
	}
}

func orFalse(value string) string {
	if value == "" {
		return "false"
	}
	return value
}

func answerError(w http.ResponseWriter, code int, err error) {
	answer(w, code, map[string]string{"error": err.Error()})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // fails only when the caller is gone
}
