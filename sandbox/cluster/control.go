//go:build unix

package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"
)

// Status is the state of a cluster, in the form of GET /status of the control socket.
type Status struct {
	Ready       bool              `json:"ready"` // all components are ready
	Dir         string            `json:"dir"`
	Kubernetes  string            `json:"kubernetes"`
	Kubeconfig  string            `json:"kubeconfig"`
	Kubeconfigs []string          `json:"kubeconfigs"`
	Kubectl     string            `json:"kubectl,omitempty"` // see Cluster.Kubectl
	PodLog      string            `json:"podLog"`
	Components  []ComponentStatus `json:"components"`
}

// ComponentStatus is the state of a process.
type ComponentStatus struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	State   string `json:"state"` // starting, ready, stopped or died
	Pid     int    `json:"pid,omitempty"`
	URL     string `json:"url"`
	Log     string `json:"log"`
	Error   string `json:"error,omitempty"` // the cause of death, with the log's last lines
	// Credentials are for clients of etcd itself.
	Credentials *Credentials `json:"credentials,omitempty"`
}

// Credentials are the certificate files of a TLS client.
type Credentials struct {
	CA   string `json:"ca"`
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// Status returns the state of the cluster and its components.
func (c *Cluster) Status() *Status {
	s := &Status{
		Ready: true, Dir: c.Dir, Kubernetes: c.Version,
		Kubeconfig: c.Kubeconfig, Kubeconfigs: c.Kubeconfigs, Kubectl: c.Kubectl, PodLog: c.PodLog(),
	}
	for _, m := range c.members {
		status := m.status()
		s.Ready = s.Ready && status.State == "ready"
		s.Components = append(s.Components, status)
	}
	return s
}

func (m *member) status() ComponentStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := ComponentStatus{Name: m.name, Version: m.version, URL: m.url, Log: m.log, State: "stopped", Credentials: m.credentials}
	switch {
	case m.died != nil:
		s.State = "died"
		s.Error = m.died.Error()
	case m.process != nil && m.ready:
		s.State = "ready"
		s.Pid = m.process.Pid()
	case m.process != nil:
		s.State = "starting"
		s.Pid = m.process.Pid()
	}
	return s
}

// ControlSocket returns the path of the unix socket for controlling the cluster by HTTP:
//
//	GET  /status
//	POST /start?component=NAME
//	POST /stop?component=NAME[&kill=true]
//	POST /restart?component=NAME[&kill=true]
//	POST /compact
//	POST /delay?component=NAME&by=DURATION
//
// Responses are JSON: a Status, {"revision": "…"} or, if a call fails, {"error": "…"} with status 400 or 500. A call returns once
// it has taken effect.
func (c *Cluster) ControlSocket() string { return filepath.Join(c.Dir, ControlSocketName) }

// ControlSocketName is the socket's name in the cluster's folder.
const ControlSocketName = "control.sock"

func (c *Cluster) serveControl() error {
	listener, err := net.Listen("unix", c.ControlSocket())
	if err != nil {
		return fmt.Errorf("open control socket: %w", err)
	}
	c.control = &http.Server{Handler: c.controlHandler(), ReadHeaderTimeout: 10 * time.Second}
	c.watchers.Go(func() { _ = c.control.Serve(listener) }) // ends with Stop, without an error
	return nil
}

func (c *Cluster) controlHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, c.Status())
	})
	mux.HandleFunc("POST /compact", func(w http.ResponseWriter, r *http.Request) {
		revision, err := c.Compact(r.Context())
		if err != nil {
			writeError(w, http.StatusInternalServerError, err)
			return
		}
		writeJSON(w, http.StatusOK, map[string]string{"revision": revision})
	})
	mux.HandleFunc("POST /delay", func(w http.ResponseWriter, r *http.Request) {
		delay, err := time.ParseDuration(r.FormValue("by"))
		if err == nil {
			err = c.DelayEtcd(r.FormValue("component"), delay)
		}
		if err != nil {
			writeError(w, http.StatusBadRequest, err)
			return
		}
		writeJSON(w, http.StatusOK, c.Status())
	})
	mux.HandleFunc("POST /start", c.handle(func(ctx context.Context, name string, _ bool) error {
		return c.StartComponent(ctx, name)
	}))
	mux.HandleFunc("POST /stop", c.handle(c.StopComponent))
	mux.HandleFunc("POST /restart", c.handle(c.RestartComponent))
	return mux
}

// handle serves a call that changes a component.
func (c *Cluster) handle(do func(ctx context.Context, name string, kill bool) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.FormValue("component")
		kill, err := strconv.ParseBool(cmp.Or(r.FormValue("kill"), "false"))
		if err != nil {
			writeError(w, http.StatusBadRequest, fmt.Errorf("kill=%q: want true or false", r.FormValue("kill")))
			return
		}
		if _, err := c.member(name); err != nil {
			writeError(w, http.StatusBadRequest, err)
			return
		}
		// A disconnecting client must not leave a component half restarted.
		if err := do(context.WithoutCancel(r.Context()), name, kill); err != nil {
			writeError(w, http.StatusInternalServerError, err)
			return
		}
		writeJSON(w, http.StatusOK, c.Status())
	}
}

func writeError(w http.ResponseWriter, code int, err error) {
	writeJSON(w, code, map[string]string{"error": err.Error()})
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // fails only if the client has disconnected
}
