//go:build unix

package sandbox

// Status is a snapshot of a cluster, as GET /status of the control socket
// answers it.
type Status struct {
	Ready       bool              `json:"ready"` // every component is
	Dir         string            `json:"dir"`
	Kubernetes  string            `json:"kubernetes"`
	Kubeconfig  string            `json:"kubeconfig"`
	Kubeconfigs []string          `json:"kubeconfigs"`
	Kubectl     string            `json:"kubectl,omitempty"` // see Cluster.Kubectl
	PodLog      string            `json:"podLog"`
	Components  []ComponentStatus `json:"components"`
}

// ComponentStatus is a snapshot of one process.
type ComponentStatus struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	State   string `json:"state"` // starting, ready, stopped or died
	Pid     int    `json:"pid,omitempty"`
	URL     string `json:"url"`
	Log     string `json:"log"`
	Error   string `json:"error,omitempty"` // how it died, with its log's last lines
	// Credentials are for who talks to etcd past the API server.
	Credentials *Credentials `json:"credentials,omitempty"`
}

// Credentials are the files that a TLS client of a component needs.
type Credentials struct {
	CA   string `json:"ca"`
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// Status returns what is running.
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
		s.State, s.Error = "died", m.died.Error()
	case m.process != nil && m.ready:
		s.State, s.Pid = "ready", m.process.Pid()
	case m.process != nil:
		s.State, s.Pid = "starting", m.process.Pid()
	}
	return s
}
