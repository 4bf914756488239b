package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dev/history"
	"github.com/anykind/anykind/dev/peers/observe"
)

// patience bounds each wait of a scenario, unless the scenario has its own bound.
const patience = 15 * time.Second

var errPatience = errors.New("it takes too long")

// observer is a built program.
type observer struct {
	library, version string
	path, mode       string
}

// trial is a scenario with an observer.
type trial struct {
	ctx      context.Context
	observer observer
	world    *world
	server   *server // the first server
	front    *front
	http     *httptest.Server

	recorder *history.Recorder
	observed *history.Observer
	process  *process
}

func newTrial(ctx context.Context, o observer, k kind) *trial {
	w := newWorld()
	t := &trial{ctx: ctx, observer: o, world: w, server: newServer(w, k), recorder: history.NewRecorder()}
	t.front = &front{servers: []*server{t.server}}
	t.http = httptest.NewServer(t.front)
	t.observed = t.recorder.Observer(history.Consumer, o.library, registry, namespace+"/")
	return t
}

// registry is the prefix of the objects' keys in etcd.
const registry = "/registry/objects/"

// close ends the observer and the servers.
func (t *trial) close() {
	t.stop()
	t.front.current().end("")
	t.http.CloseClientConnections()
	t.http.Close()
}

// process is a running observer.
type process struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	ended   chan struct{}

	mu     sync.Mutex
	events []observe.Event
	stderr strings.Builder
}

// start starts the observer.
func (t *trial) start(opts observe.Options) error {
	opts.Server = t.http.URL
	opts.Mode = t.observer.mode
	opts.Custom = t.server.kind == widgets
	p := &process{ended: make(chan struct{}), command: exec.CommandContext(t.ctx, t.observer.path, opts.Args()...)}
	p.command.Stderr = &p.stderr
	var err error
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		return err
	}
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.command.Start(); err != nil {
		return err
	}
	t.process = p
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var e observe.Event
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				t.record(e)
				p.mu.Lock()
				p.events = append(p.events, e)
				p.mu.Unlock()
			}
		}
	}()
	return nil
}

// stop ends the observer.
func (t *trial) stop() {
	if t.process == nil {
		return
	}
	_ = t.process.stdin.Close()
	<-t.process.ended
	_ = t.process.command.Wait()
	t.process = nil
}

// send sends a command.
func (t *trial) send(command string) { _, _ = io.WriteString(t.process.stdin, command+"\n") }

var kinds = map[string]history.Kind{
	observe.Added: history.Added, observe.Modified: history.Modified, observe.Deleted: history.Deleted, observe.DeletedUnknown: history.DeletedUnknown,
}

func (t *trial) record(e observe.Event) {
	if kind, isChange := kinds[e.Kind]; isChange {
		t.observed.Note(e.Namespace+"/"+e.Name, types.UID(e.UID), history.Observation{Kind: kind, Revision: history.Revision(e.Version)})
	}
}

// events returns the events of the observer so far.
func (t *trial) events() []observe.Event {
	t.process.mu.Lock()
	defer t.process.mu.Unlock()
	return slices.Clone(t.process.events)
}

// await waits for a condition.
func (t *trial) await(what string, limit time.Duration, condition func() bool) error {
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("wait for %s: %w: %s", what, errPatience, t.process.stderr.String())
		}
		if t.ctx.Err() != nil {
			return t.ctx.Err()
		}
	}
	return nil
}

// has reports whether the observer has sent an event of a kind, of an object or "".
func (t *trial) has(kind, name string) bool {
	return slices.ContainsFunc(t.events(), func(e observe.Event) bool { return e.Kind == kind && e.Name == name })
}

// begin starts the observer with three objects, and waits for its sync and for its watch.
func (t *trial) begin(opts observe.Options) error {
	t.world.put(names(3)...)
	if err := t.start(opts); err != nil {
		return err
	}
	if err := t.await("synced", patience, func() bool { return t.has(observe.Synced, "") && t.delivered() }); err != nil {
		return err
	}
	return t.watched()
}

// watched waits for an open watch.
func (t *trial) watched() error {
	return t.await("a watch", patience, func() bool { return t.front.current().open() > 0 })
}

// delivered reports whether the delivered changes are the state of the world.
func (t *trial) delivered() bool {
	return len(t.violations("every change that lasts is delivered")) == 0
}

// settle waits until the state of the world is delivered. After patience, the properties show what is missing.
func (t *trial) settle() {
	_ = t.await("the last changes", patience, t.delivered)
	time.Sleep(200 * time.Millisecond) // for wrong events after the delivery
}

// violations returns the violations of a property in the observations so far.
func (t *trial) violations(property string) []history.Violation {
	changes, revision, _ := t.world.snapshot()
	epoch := &history.Epoch{}
	created := map[string]int64{}
	for _, c := range changes {
		if c.isCreated {
			created[c.name] = c.revision
		}
		if c.isDeleted {
			created[c.name] = 0
		}
		epoch.Events = append(epoch.Events, t.recorder.Event(registry+namespace+"/"+c.name, c.revision, created[c.name]))
	}
	h := t.recorder.History([]*history.Epoch{epoch})
	h.Settle(t.recorder.Now(), revision)
	for _, p := range history.Properties() {
		if p.Name == property {
			return p.Check(h)
		}
	}
	return []history.Violation{{Text: "there is no property " + property}}
}

// violated returns the first violation of the properties, "" for none. Repetitions of a change are left to repeated.
func (t *trial) violated(properties ...string) string {
	for _, property := range properties {
		for _, violation := range t.violations(property) {
			if !isRepetition(violation) {
				return property + ": " + violation.Text
			}
		}
	}
	return ""
}

// repeated returns the first change delivered again, "" for none.
func (t *trial) repeated() string {
	for _, violation := range t.violations(goesBack) {
		if isRepetition(violation) {
			return violation.Text
		}
	}
	return ""
}

func isRepetition(v history.Violation) bool { return strings.HasSuffix(v.Text, " again") }
