package sharding_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/sharding"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	testclient "github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/internal/testing/faultproxy"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// Members are processes of one controller over ConfigMaps, divided among the API servers of the sandbox. A reconcile writes its token
// into the object, with the resourceVersion, works for a moment, and then removes the token. A member that finds another token in place
// of its own, while its ctx has not ended, has found an overlap. A member reports each token of another member that it replaces: the
// other member must have been killed, or must have reported that the reconcile was broken off. In the end, all changes must have been
// reconciled.

const (
	namespaceEnv = "ANYKIND_SHARDING_NAMESPACE" // makes the test binary a member
	addressEnv   = "ANYKIND_SHARDING_ADDRESS"   // of the API server, for a member
	eventsEnv    = "ANYKIND_SHARDING_EVENTS"    // the number of drawn events, 6 by default
	seedEnv      = "ANYKIND_SHARDING_SEED"
	objectsEnv   = "ANYKIND_SHARDING_OBJECTS"

	tokenAnnotation = "example.com/token"
	seenAnnotation  = "example.com/seen"
)

func shortLeases(holder string) *sharding.Options {
	return &sharding.Options{Identity: holder, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 400 * time.Millisecond}
}

// TestProcess_Member is the process of a member; see TestProcesses_NoOverlap.
func TestProcess_Member(t *testing.T) {
	namespace := os.Getenv(namespaceEnv)
	if namespace == "" {
		t.Skip("a process of TestProcesses_NoOverlap")
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	client := testclient.Connect(t, "admin", func(cfg *transport.Config) { cfg.Server = "https://" + os.Getenv(addressEnv) })
	configMaps := controllertest.Resource(t, client, "configmaps").Namespace(namespace)
	holder := strconv.Itoa(os.Getpid())
	m := &processMember{holder: holder}
	m.report("start")
	group, err := sharding.New(controllertest.Resource(t, client, "leases.coordination.k8s.io").Namespace(namespace), "op", shortLeases(holder))
	require.NoError(t, err)
	objects := cache.New(configMaps, &cache.Options[unstructured.Object]{LabelSelector: "app=sharded", Shard: shard.New(shard.UID)})
	m.configMaps = objects.TrackWrites(configMaps)
	m.objects = objects
	err = group.Run(ctx, func(ctx context.Context) error {
		var cached sync.WaitGroup
		defer cached.Wait()
		cached.Go(func() { _ = objects.Run(ctx) })
		err := controller.Run(ctx, objects, m.reconcile, &controller.Options{Sharding: group, Workers: 8})
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	})
	if !errors.Is(err, context.Canceled) { // stopped before it has joined
		require.NoError(t, err)
	}
	m.report("unowned", group.Health().Unowned.Milliseconds())
	m.report("end")
}

type processMember struct {
	configMaps *dynamic.Resource
	objects    *cache.Cache[unstructured.Object]
	holder     string

	mu    sync.Mutex
	count int
}

func (m *processMember) report(words ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fmt.Println(append([]any{"report", m.holder}, words...)...)
}

func (m *processMember) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	obj, found := m.objects.Get(key.Namespace, key.Name)
	if !found {
		return 0, nil
	}
	n, _, _ := unstructured.Get[string](obj, "data", "n")
	annotations := obj.GetAnnotations()
	if annotations[seenAnnotation] == n && annotations[tokenAnnotation] == "" {
		return 0, nil
	}
	m.mu.Lock()
	m.count++
	token := fmt.Sprint(m.holder, "-", m.count)
	m.mu.Unlock()
	isDone := false
	defer func() {
		if !isDone { // the token may have been written
			m.report("broken-off", token)
		}
	}()
	written, err := m.write(ctx, obj, token, annotations[seenAnnotation])
	if err != nil {
		return 0, err
	}
	if last := annotations[tokenAnnotation]; last != "" {
		m.report("replaced", last)
	}
	time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
	for {
		_, err := m.write(ctx, written, "", n)
		if err == nil {
			m.report("reconciled")
			isDone = true
			return 0, nil
		}
		if !retry.IsConflict(err) {
			return 0, err
		}
		// A user has changed the object, or a member: this is an overlap, unless the ctx has ended.
		if written, err = m.configMaps.Get(ctx, key.Name, nil); err != nil {
			return 0, err
		}
		if found := written.GetAnnotations()[tokenAnnotation]; found != token {
			if ctx.Err() == nil {
				m.report("OVERLAP", key.Name, token, found)
			}
			return 0, fmt.Errorf("the token %s was replaced by %q", token, found)
		}
	}
}

func (m *processMember) write(ctx context.Context, obj *unstructured.Object, token, seen string) (*unstructured.Object, error) {
	obj = obj.DeepCopy()
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[seenAnnotation] = seen
	annotations[tokenAnnotation] = token
	obj.SetAnnotations(annotations)
	return m.configMaps.Update(ctx, obj, nil)
}

// process is a member's process with its own link to an API server.
type process struct {
	*exec.Cmd

	link    *faultproxy.Link
	started <-chan struct{} // closed when it handles SIGTERM
}

// processes are the processes of TestProcesses_NoOverlap.
type processes struct {
	t         *testing.T
	namespace string
	servers   []string
	random    *rand.Rand

	mu        sync.Mutex
	running   []process
	count     int
	killed    map[string]bool   // holders
	brokenOff map[string]bool   // tokens
	replaced  map[string]string // tokens, with the report
	counts    map[string]int
	problems  []string
	output    []string // other lines of the processes
	unowned   int
	readers   sync.WaitGroup
}

// serverAddresses returns the host and port of each API server of the sandbox.
func serverAddresses(t *testing.T) (addresses []string) {
	t.Helper()
	for _, path := range cluster.Kubeconfigs(t) {
		cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: path, Context: "admin"})
		require.NoError(t, err)
		addresses = append(addresses, strings.TrimPrefix(cfg.Server, "https://"))
	}
	return addresses
}

func (p *processes) start() {
	link := faultproxy.NewLink(p.t, p.servers[p.count%len(p.servers)])
	p.count++
	cmd := exec.Command(os.Args[0], "-test.run=^TestProcess_Member$", "-test.count=1")
	cmd.Env = append(os.Environ(), namespaceEnv+"="+p.namespace, addressEnv+"="+link.Address())
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, cmd.Start())
	started := make(chan struct{})
	p.running = append(p.running, process{cmd, link, started})
	p.readers.Go(func() {
		isStarted := false
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if !isStarted && strings.HasSuffix(lines.Text(), " start") {
				isStarted = true
				close(started)
			}
			p.handle(strings.Fields(lines.Text()), lines.Text())
		}
	})
}

func (p *processes) handle(words []string, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(words) < 3 || words[0] != "report" {
		p.output = append(p.output, line)
		if strings.Contains(line, "FAIL") {
			p.problems = append(p.problems, line)
		}
		return
	}
	p.counts[words[2]]++
	switch words[2] {
	case "OVERLAP":
		p.problems = append(p.problems, line)
	case "broken-off":
		p.brokenOff[words[3]] = true
	case "replaced":
		if !strings.HasPrefix(words[3], words[1]+"-") {
			p.replaced[words[3]] = line
		}
	case "unowned":
		milliseconds, _ := strconv.Atoi(words[3])
		p.unowned = max(p.unowned, milliseconds)
	}
}

func (p *processes) remove(i int) process {
	removed := p.running[i]
	p.running = slices.Delete(p.running, i, i+1)
	return removed
}

// event draws and executes an event.
func (p *processes) event() string {
	i := p.random.IntN(len(p.running))
	// A little longer than a lease, so that other members have its objects when the process continues.
	pause := time.Duration(3500+p.random.IntN(2000)) * time.Millisecond
	switch draw := p.random.IntN(5); {
	case draw == 0 && len(p.running) < 8 || len(p.running) == 1:
		p.start()
		return "add"
	case draw == 1:
		killed := p.remove(i)
		p.killed[strconv.Itoa(killed.Process.Pid)] = true
		_ = killed.Process.Kill()
		_ = killed.Wait()
		p.start()
		return "kill"
	case draw == 2:
		require.NoError(p.t, p.running[i].Process.Signal(syscall.SIGSTOP))
		time.Sleep(pause)
		require.NoError(p.t, p.running[i].Process.Signal(syscall.SIGCONT))
		return "stop"
	case draw == 3:
		p.running[i].link.Cut()
		time.Sleep(pause)
		p.running[i].link.Restore()
		return "partition"
	default:
		p.drain(p.remove(i))
		return "drain"
	}
}

func (p *processes) drain(drained process) {
	select {
	case <-drained.started:
	case <-time.After(controllertest.Timeout):
		require.Fail(p.t, "a process does not start")
	}
	require.NoError(p.t, drained.Process.Signal(syscall.SIGTERM))
	assert.NoError(p.t, drained.Wait())
}

func number(t *testing.T, env string, otherwise int) int {
	t.Helper()
	if text := os.Getenv(env); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	return otherwise
}

// TestProcesses_NoOverlap kills, stops, cuts off, drains and adds members in a drawn sequence, while the objects change.
func TestProcesses_NoOverlap(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	configMaps := controllertest.Resource(t, client, "configmaps").Namespace(namespace)
	objects := number(t, objectsEnv, 100)
	var creators sync.WaitGroup
	for worker := range 8 {
		creators.Go(func() {
			for n := worker; n < objects; n += 8 {
				_, err := configMaps.Create(t.Context(), &unstructured.Object{Object: map[string]any{
					"metadata": map[string]any{"name": fmt.Sprint("o", n), "labels": map[string]any{"app": "sharded"}}, "data": map[string]any{"n": "0"},
				}}, nil)
				assert.NoError(t, err)
			}
		})
	}
	creators.Wait()
	seed := uint64(number(t, seedEnv, 1))
	p := &processes{
		t: t, namespace: namespace, servers: serverAddresses(t), random: rand.New(rand.NewPCG(seed, 1)),
		killed: map[string]bool{}, brokenOff: map[string]bool{}, replaced: map[string]string{}, counts: map[string]int{},
	}
	defer func() {
		for _, left := range p.running {
			_ = left.Process.Kill()
			_ = left.Wait()
		}
		p.readers.Wait()
	}()
	p.start()
	p.start()
	changes, stopChanges := context.WithCancel(t.Context())
	defer stopChanges()
	changed := 0
	var changing sync.WaitGroup
	changing.Go(func() {
		random := rand.New(rand.NewPCG(seed, 2))
		for ; changes.Err() == nil; changed++ {
			patch := fmt.Sprintf(`{"data":{"n":"%d"}}`, changed+1)
			//nolint:contextcheck // the end of changes must not break a patch
			_, err := configMaps.Patch(t.Context(), fmt.Sprint("o", random.IntN(objects)), types.MergePatchType, []byte(patch), nil)
			assert.NoError(t, err)
			time.Sleep(20 * time.Millisecond)
		}
	})
	time.Sleep(5 * time.Second)
	events := map[string]int{}
	for range number(t, eventsEnv, 6) {
		events[p.event()]++
		time.Sleep(time.Duration(p.random.IntN(1500)) * time.Millisecond)
	}
	stopChanges()
	changing.Wait()
	requireReconciled(t, configMaps)
	for len(p.running) > 0 {
		p.drain(p.remove(0))
	}
	p.readers.Wait()
	for token, report := range p.replaced {
		if holder, _, _ := strings.Cut(token, "-"); !p.killed[holder] && !p.brokenOff[token] {
			p.problems = append(p.problems, "of a reconcile that was not broken off: "+report)
		}
	}
	if !assert.Empty(t, p.problems) {
		t.Log(strings.Join(p.output, "\n"))
	}
	assert.NotZero(t, p.counts["reconciled"])
	t.Logf("seed %d, %d API servers: events %v, %d changes of %d objects, %v, at most %d ms without an owner in total", seed, len(p.servers), events, changed, objects, p.counts, p.unowned)
}

// requireReconciled waits until every object has been reconciled since its last change, as long as their number shrinks.
func requireReconciled(t *testing.T, configMaps *dynamic.Resource) {
	t.Helper()
	least := math.MaxInt
	for progress := time.Now(); time.Since(progress) < controllertest.Timeout; time.Sleep(time.Second) {
		missing := countUnreconciled(t, configMaps)
		if missing == 0 {
			return
		}
		if missing < least {
			least = missing
			progress = time.Now()
		}
	}
	require.Fail(t, "objects were not reconciled", "%d", least)
}

func countUnreconciled(t *testing.T, configMaps *dynamic.Resource) (missing int) {
	t.Helper()
	for obj, err := range configMaps.List(t.Context(), nil) {
		require.NoError(t, err)
		n, found, _ := unstructured.Get[string](obj, "data", "n")
		annotations := obj.GetAnnotations()
		if found && (annotations[seenAnnotation] != n || annotations[tokenAnnotation] != "") {
			missing++
		}
	}
	return missing
}
