//go:build unix

package sandbox

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
	"syscall"
	"time"

	"github.com/anykind/anykind/sandbox/internal/process"
)

const (
	// readyTimeout is how long a component may take to become ready.
	readyTimeout = 90 * time.Second
	// stopGrace is how long a component may take to end after SIGTERM. kube-apiserver has answered its requests after a
	// second or two, and would then wait a minute for watches that their clients do not end.
	stopGrace = 8 * time.Second
)

// StartComponent starts a stopped component, by its name in Status, and waits
// until it is ready. It does nothing when the component runs.
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

// RestartComponent stops a component as StopComponent does, starts it again on
// the same port and waits until it is ready.
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
	return nil, fmt.Errorf("this sandbox has no component %q; it has %s", name, strings.Join(names, ", "))
}

func (c *Cluster) stop(ctx context.Context, m *member, kill bool) {
	p := m.take()
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

// start runs the member and waits until it is ready. A feature gate that only
// other components know is left out.
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
		c.log.InfoContext(ctx, "component does not know a feature gate; starting it without", "component", m.name, "gate", gate)
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
		return fmt.Errorf("waiting for %s: %w; %s", m.name, err, readLogExcerpt(m.log, logStart))
	}
	m.set(p, true, nil)
	c.watchers.Go(func() { c.watch(m, p, logStart) })
	return nil
}

// errNotReady is why a component's start is given up.
var errNotReady = fmt.Errorf("not ready after %s", readyTimeout)

// run starts the process, with its output appended to its log from logStart on.
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
	cmd.Stdout, cmd.Stderr = log, log
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

// watch notices the end of a running process that nobody asked for.
func (c *Cluster) watch(m *member, p *process.Process, logStart int64) {
	<-p.Done()
	died := c.newDiedError(m, p, logStart)
	if !m.diedUnasked(p, died) {
		return
	}
	c.log.Error("a component died", "component", m.name, "reason", died.Reason, "log", died.LogFile)
	c.fail(died)
}

func (c *Cluster) newDiedError(m *member, p *process.Process, logStart int64) *DiedError {
	reason := p.Err()
	if reason == nil {
		reason = errors.New("exit status 0")
	}
	log := readLogExcerpt(m.log, logStart)
	return &DiedError{
		// Beside the cluster's folder, which may be about to be removed.
		Component: m.name, Reason: reason, Disk: checkDisk(filepath.Dir(c.Dir)), LogCause: log.cause, LogTail: log.tail, LogFile: m.log,
	}
}

func (m *member) running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process != nil
}
