package history

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/leaderelection"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// memberEnv makes the test binary a member. Its value is the member in JSON.
const memberEnv = "ANYKIND_HISTORY_MEMBER"

// member is a process of the operating system with a cache, a controller and leader election. The storm suspends and kills the leader.
// A member prints its observations: lines of JSON.
type member struct {
	Identity   string
	Namespace  string
	Server     string // the address of the process's link
	Command    string // its credential plugin
	CommandEnv map[string]string
	Protobuf   bool
	Kubeconfig string // of the steady server, for writes without faults
	Leases     string // the address of a link to the steady server
	Start      int64  // the start of the recorder, by the clock of monotonic
}

// memberReport is an observation by a member.
type memberReport struct {
	Name        string
	Observation Observation
}

// monotonic returns the time of a clock of all processes.
func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}

// TestProcess_Member is the process of a member; see TestHistory_Storms.
func TestProcess_Member(t *testing.T) {
	text := os.Getenv(memberEnv)
	if text == "" {
		t.Skip("a process of TestHistory_Storms")
	}
	var m member
	require.NoError(t, json.Unmarshal([]byte(text), &m))
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	plugin := kubeconfig.Exec{APIVersion: kubeconfig.ExecV1, Command: m.Command, InteractiveMode: kubeconfig.InteractiveNever}
	for name, value := range m.CommandEnv {
		plugin.Env = append(plugin.Env, kubeconfig.EnvVar{Name: name, Value: kubeconfig.NewSecret(value)})
	}
	proxied := &transport.Config{Server: m.Server, Exec: &transport.ExecPlugin{Exec: plugin}}
	proxied.Protobuf = m.Protobuf
	direct, err := transport.Load(ctx, &transport.LoadOptions{Path: m.Kubeconfig, Context: "admin"})
	require.NoError(t, err)
	writes := m.resource(ctx, t, direct, "configmaps")
	direct.Server = "https://" + m.Leases
	m.run(ctx, m.resource(ctx, t, proxied, "configmaps"), m.resource(ctx, t, direct, "leases.coordination.k8s.io"), writes)
}

// resource returns a handle, after as many attempts as the faults require. It is nil if ctx has ended.
func (m *member) resource(ctx context.Context, t *testing.T, cfg *transport.Config, name string) *dynamic.Resource {
	t.Helper()
	for sleep(ctx, 10*time.Millisecond) == nil {
		client, err := dynamic.Connect(ctx, cfg)
		if err != nil {
			continue
		}
		t.Cleanup(client.Close)
		if handle, err := client.Resource(ctx, name); err == nil {
			return handle.Namespace(m.Namespace)
		}
	}
	return nil
}

// run runs a controller while the member leads, and writes as the leader.
func (m *member) run(ctx context.Context, objects, leases, direct *dynamic.Resource) {
	if ctx.Err() != nil {
		return
	}
	configMaps := cache.New(objects, nil)
	var cached sync.WaitGroup
	defer cached.Wait()
	cached.Go(func() { _ = configMaps.Run(ctx) })
	m.report("", Observation{Kind: Synced})
	silent := slog.New(slog.DiscardHandler)
	for term := 0; sleep(ctx, 50*time.Millisecond) == nil; term++ {
		_ = leaderelection.Run(ctx, leases, "history", &leaderelection.Options{
			Identity: fmt.Sprintf("%s-%d", m.Identity, term), Logger: silent,
			LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
		}, func(ctx context.Context, token int64) error {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second+rand.N(3*time.Second))
			defer cancel()
			var writes sync.WaitGroup
			writes.Go(func() { m.write(ctx, direct, token) })
			defer writes.Wait()
			return controller.Run(ctx, configMaps, m.reconcile(direct), &controller.Options{Workers: 4, Grace: time.Second, Logger: silent})
		})
	}
}

// write writes as the leader. A request begins before the library compares the time with the deadline: a successor leads later.
func (m *member) write(ctx context.Context, direct *dynamic.Resource, token int64) {
	for sleep(ctx, 20*time.Millisecond) == nil {
		begin := m.now()
		if _, err := direct.Apply(ctx, newObject("leader"), &metav1.ApplyOptions{FieldManager: "history", Force: true}); err == nil {
			m.report(m.Namespace+"/leader", Observation{Begin: begin, End: m.now(), Kind: Led, Revision: token})
		}
	}
}

// reconcile returns a reconcile that ends with a request. It runs from its begin to its last permitted request: a suspended process
// goes on later, and may not send any.
func (m *member) reconcile(direct *dynamic.Resource) controller.ReconcileFunc {
	return func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		begin := m.now()
		m.report(key.String(), Observation{Begin: begin, End: begin, Kind: Reconciled})
		time.Sleep(rand.N(5 * time.Millisecond))
		last := m.now()
		if _, err := direct.Get(ctx, "leader", nil); err == nil {
			m.report(key.String(), Observation{Begin: begin, End: last, Kind: Reconciled})
		}
		if rand.IntN(10) == 0 {
			return 0, errors.New("drawn")
		}
		return 0, nil
	}
}

func (m *member) now() int64 { return monotonic() - m.Start }

func (m *member) report(name string, o Observation) {
	line, _ := json.Marshal(memberReport{name, o})
	_, _ = os.Stdout.Write(append(line, '\n')) // at once: the process may be killed
}

// runMembers runs a member until the storm ends. A killed member is replaced.
func (s *storm) runMembers(p *process) {
	o := s.recorder.Observer(Processes, fmt.Sprint("process-", p.number), configMaps.registry, s.namespaces[0]+"/")
	m := member{
		Namespace: s.namespaces[0], Server: p.config.Server, Protobuf: p.config.Protobuf, Command: p.config.Exec.Command,
		CommandEnv: map[string]string{}, Kubeconfig: s.kubeconfig, Leases: p.leases.Address(), Start: monotonic() - s.recorder.Now(),
	}
	for _, variable := range p.config.Exec.Env {
		m.CommandEnv[variable.Name] = variable.Value.Reveal()
	}
	for n := 0; s.acting.Err() == nil; n++ {
		m.Identity = fmt.Sprintf("process-%d-%d", p.number, n)
		text, err := json.Marshal(m)
		assert.NoError(s.t, err)
		cmd := exec.CommandContext(s.acting, os.Args[0], "-test.run=^TestProcess_Member$", "-test.count=1")
		cmd.Env = append(os.Environ(), memberEnv+"="+string(text))
		cmd.Stderr = os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = patience
		output, err := cmd.StdoutPipe()
		if !assert.NoError(s.t, err) || !assert.NoError(s.t, cmd.Start()) {
			return
		}
		p.member.Store(cmd.Process)
		others := s.readReports(p, o, output)
		err = cmd.Wait()
		wasKilled := s.acting.Err() == nil && cmd.ProcessState.ExitCode() < 0
		assert.True(s.t, wasKilled || cmd.ProcessState.Success(), "%s: %v\n%s", m.Identity, err, others)
	}
}

// readReports records the observations of a member, and returns its other output.
func (s *storm) readReports(p *process, o *Observer, output io.Reader) (others string) {
	for lines := bufio.NewScanner(output); lines.Scan(); {
		var report memberReport
		if json.Unmarshal(lines.Bytes(), &report) != nil {
			others += lines.Text() + "\n"
			continue
		}
		switch report.Observation.Kind {
		case Synced:
			s.candidates.Add(1)
			continue
		case Led:
			s.leader.Store(p)
			s.led.Add(1)
		default:
		}
		o.Note(report.Name, "", report.Observation)
	}
	return others
}

// signal kills the leader, or suspends it for longer than its lease, and waits for the next write by a leader. It does nothing without
// a leader.
func (s *storm) signal() {
	leader := s.awaitLeader()
	if leader == nil {
		return
	}
	running := leader.member.Load()
	s.signaled.Store(true)
	if s.seed%2 == 0 {
		_ = running.Kill()
	} else {
		_ = running.Signal(syscall.SIGSTOP)
		time.Sleep(3*time.Second + rand.N(time.Second))
		_ = running.Signal(syscall.SIGCONT)
	}
	s.awaitLeader()
}

// maxElection bounds the wait for a leader: with many faults on a busy machine, no process may lead for a long time.
const maxElection = 15 * time.Second

// awaitLeader returns the process of the next write by a leader, or nil without one.
func (s *storm) awaitLeader() *process {
	ctx, cancel := context.WithTimeout(s.acting, maxElection)
	defer cancel()
	for before := s.led.Load(); s.led.Load() == before; {
		if sleep(ctx, 10*time.Millisecond) != nil {
			return nil
		}
	}
	return s.leader.Load()
}
