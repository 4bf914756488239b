//go:build unix

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/anykind/anykind/sandbox/internal/process"
)

// member is a process of the cluster, running or not.
type member struct {
	name      string // kube-apiserver, kube-apiserver-2, …
	component Component
	version   string
	path      string // of the program
	args      []string
	gates     map[string]bool
	url       string
	log       string // file with its output
	// credentials are for its clients, or nil if a kubeconfig has them.
	credentials *Credentials
	// relay is between an API server and etcd, or nil.
	relay *relay
	// probe reports whether the running process is ready.
	probe func(ctx context.Context) error

	// change is held while the process is started or stopped.
	change sync.Mutex

	mu      sync.Mutex
	process *process.Process // nil: not started, or stopped on purpose
	ready   bool
	died    *DiedError
}

// set sets the process and its state.
func (m *member) set(p *process.Process, ready bool, died *DiedError) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.process = p
	m.ready = ready
	m.died = died
}

// detach removes and returns the process, or nil: its end is expected from now on.
func (m *member) detach() *process.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.process
	m.process = nil
	m.ready = false
	m.died = nil
	return p
}

// recordDeath records the end of p. It returns false for an expected end.
func (m *member) recordDeath(p *process.Process, err *DiedError) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process != p {
		return false
	}
	m.process = nil
	m.ready = false
	m.died = err
	return true
}

// waitUntilIdle waits while the process is being started or stopped.
func (m *member) waitUntilIdle() {
	m.change.Lock()
	defer m.change.Unlock()
}

const (
	// readyTimeout bounds the time until a component is ready.
	readyTimeout = 90 * time.Second
	// stopGrace limits the time for a component to exit after SIGTERM. kube-apiserver completes its requests in a second or two,
	// and would then wait a minute for clients to end their watches.
	stopGrace = 8 * time.Second
)

// StartComponent starts a stopped component, by its name in Status, and waits
// until it is ready. It does nothing if the component is running.
func (c *Cluster) StartComponent(ctx context.Context, name string) error {
	m, err := c.member(name)
	if err != nil {
		return err
	}
	m.change.Lock()
	defer m.change.Unlock()
	if m.running() {
		return nil
	}
	return c.start(ctx, m)
}

// StopComponent stops a component, by its name in Status: with SIGTERM, or with
// SIGKILL if kill is set. Its port and data are kept for StartComponent.
func (c *Cluster) StopComponent(ctx context.Context, name string, kill bool) error {
	m, err := c.member(name)
	if err != nil {
		return err
	}
	m.change.Lock()
	defer m.change.Unlock()
	c.stop(ctx, m, kill)
	return nil
}

// RestartComponent stops a component like StopComponent, starts it again on the same port and waits until it is ready.
func (c *Cluster) RestartComponent(ctx context.Context, name string, kill bool) error {
	m, err := c.member(name)
	if err != nil {
		return err
	}
	m.change.Lock()
	defer m.change.Unlock()
	c.stop(ctx, m, kill)
	return c.start(ctx, m)
}

func (c *Cluster) member(name string) (*member, error) {
	var names []string
	for _, m := range c.members {
		if m.name == name {
			return m, nil
		}
		names = append(names, m.name)
	}
	return nil, fmt.Errorf("no component %q in this cluster (components: %s)", name, strings.Join(names, ", "))
}

func (c *Cluster) stop(ctx context.Context, m *member, kill bool) {
	p := m.detach()
	if p == nil {
		return
	}
	if kill {
		p.Kill()
		<-p.Done()
		return
	}
	p.Stop(ctx, syscall.SIGTERM, stopGrace)
}

// start starts the member and waits until it is ready. Feature gates unknown to the component are omitted.
func (c *Cluster) start(ctx context.Context, m *member) error {
	for {
		err := c.startAndWait(ctx, m)
		var died *DiedError
		if m.component == APIServer || !errors.As(err, &died) {
			return err
		}
		gate := died.unknownGate()
		if _, passed := m.gates[gate]; !passed {
			return err
		}
		c.log.InfoContext(ctx, "component does not know a feature gate; starting without it", "component", m.name, "gate", gate)
		delete(m.gates, gate)
	}
}

func (c *Cluster) startAndWait(ctx context.Context, m *member) error {
	p, logStart, err := c.run(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, errNotReady)
	defer cancel()
	if err := poll(ctx, p.Done(), m.probe); err != nil {
		select {
		case <-p.Done():
			died := c.newDiedError(m, p, logStart)
			m.set(nil, false, died)
			return died
		default:
		}
		c.stop(ctx, m, true)
		return fmt.Errorf("wait for %s: %w; %s", m.name, err, readLogExcerpt(m.log, logStart))
	}
	m.set(p, true, nil)
	c.watchers.Go(func() { c.watch(m, p, logStart) })
	return nil
}

// errNotReady is the cause of a component's failed start.
var errNotReady = fmt.Errorf("not ready after %s", readyTimeout)

// run starts the process. Its output is appended to its log, from logStart on.
func (c *Cluster) run(m *member) (_ *process.Process, logStart int64, err error) {
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, err
	}
	defer log.Close()
	if logStart, err = log.Seek(0, io.SeekEnd); err != nil {
		return nil, 0, err
	}
	cmd := exec.Command(m.path, m.commandLine()...)
	cmd.Dir = c.Dir
	cmd.Stdout = log
	cmd.Stderr = log
	p, err := c.family.Start(cmd)
	if err != nil {
		return nil, 0, err
	}
	m.set(p, false, nil)
	return p, logStart, nil
}

func (m *member) commandLine() []string {
	args := m.args
	if len(m.gates) > 0 {
		gates := map[string]string{}
		for gate, on := range m.gates {
			gates[gate] = fmt.Sprint(on)
		}
		args = append(args[:len(args):len(args)], "--feature-gates="+keyValues(maps.All(gates)))
	}
	return args
}

// watch waits for the process to end and reports an unexpected end.
func (c *Cluster) watch(m *member, p *process.Process, logStart int64) {
	<-p.Done()
	died := c.newDiedError(m, p, logStart)
	if !m.recordDeath(p, died) {
		return
	}
	c.log.Error("component died", "component", m.name, "reason", died.Reason, "log", died.LogFile)
	c.fail(died)
}

func (c *Cluster) newDiedError(m *member, p *process.Process, logStart int64) *DiedError {
	reason := p.Err()
	if reason == nil {
		reason = errors.New("exit status 0")
	}
	log := readLogExcerpt(m.log, logStart)
	return &DiedError{
		// In the parent folder, because the cluster's folder may be about to be removed.
		Component: m.name, Reason: reason, Disk: checkDisk(filepath.Dir(c.Dir)), LogCause: log.cause, LogTail: log.tail, LogFile: m.log,
	}
}

func (m *member) running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process != nil
}
