//go:build unix

package sandbox

import (
	"context"
	"sync"

	"github.com/anykind/anykind/sandbox/internal/process"
)

// member is one process of the cluster, running or not.
type member struct {
	name      string // kube-apiserver, kube-apiserver-2, …
	component Component
	version   string
	path      string // of the program
	args      []string
	gates     map[string]bool
	url       string
	log       string // file that gets its output
	// credentials are its clients', nil for those of a kubeconfig.
	credentials *Credentials
	// probe reports whether the running process is ready.
	probe func(ctx context.Context) error

	// change is held by whoever starts or stops the process.
	change sync.Mutex

	mu      sync.Mutex
	process *process.Process // nil: not started, or stopped on purpose
	ready   bool
	died    *DiedError
}

// set records what became of the process.
func (m *member) set(p *process.Process, ready bool, died *DiedError) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.process, m.ready, m.died = p, ready, died
}

// take ends the cluster's interest in the process and returns it: its end is no
// longer a surprise. Nil means there is none.
func (m *member) take() *process.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.process
	m.process, m.ready, m.died = nil, false, nil
	return p
}

// diedUnasked records that p ended, unless it was taken before.
func (m *member) diedUnasked(p *process.Process, err *DiedError) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process != p {
		return false
	}
	m.process, m.ready, m.died = nil, false, err
	return true
}

// awaitChange waits until nobody starts or stops the process.
func (m *member) awaitChange() {
	m.change.Lock()
	defer m.change.Unlock()
}
