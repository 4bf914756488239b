package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/faultproxy"
	"github.com/anykind/anykind/internal/testing/workload"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// patience bounds waits for a real cluster, and for the last changes after a storm.
const patience = time.Minute

// maxReported bounds the reported violations of a property in a storm.
const maxReported = 2

// noteDefinition is a custom resource without a schema. Its objects are written in v1 and observed in v1beta1.
const noteDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: notes.history.example.com}
spec:
  group: history.example.com
  scope: Namespaced
  names: {plural: notes, singular: note, kind: Note}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// kind is a resource of the storms.
type kind struct{ written, observed, registry string }

var (
	configMaps = kind{"configmaps", "configmaps", "/registry/configmaps/"}
	notes      = kind{"notes.v1.history.example.com", "notes.v1beta1.history.example.com", "/registry/history.example.com/notes/"}
)

// TestHistory_Storms plays storms and checks all properties. The seed of a round is in its name: ANYKIND_HISTORY_SEED=n
// ANYKIND_HISTORY_ROUNDS=1 repeats it.
func TestHistory_Storms(t *testing.T) {
	servers := connect(t)
	_, err := controller.RegisterCRDs(t.Context(), servers[0], []byte(noteDefinition), nil)
	require.NoError(t, err)
	for _, server := range servers {
		_, err := server.WaitForResources(t.Context(), notes.written, notes.observed)
		require.NoError(t, err)
	}
	etcd := connectEtcd(t)
	total := 0
	events := 0
	signals := 0
	incomplete := 0
	first := workload.EnvNumber(t, "ANYKIND_HISTORY_SEED", 1)
	rounds := workload.EnvNumber(t, "ANYKIND_HISTORY_ROUNDS", 3)
	for seed := first; seed < first+rounds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			s := newStorm(t, seed, servers, etcd)
			s.play()
			h := s.settle()
			count := map[string]int{}
			for _, violation := range h.Check() {
				if count[violation.Property]++; count[violation.Property] <= maxReported {
					assert.Fail(t, violation.String())
				}
			}
			assert.Empty(t, count, "violations of each property")
			total += len(h.Observations)
			if s.signaled.Load() {
				signals++
			}
			for _, epoch := range h.Epochs {
				events += len(epoch.Events)
				if !epoch.isComplete() {
					incomplete++
				}
			}
		})
	}
	assert.NotZero(t, signals)
	t.Logf("%d storms, %d observations, %d events of etcd, %d leaders suspended or killed, %d epochs with unrecorded revisions",
		rounds, total, events, signals, incomplete)
}

// connectEtcd returns a client of etcd.
func connectEtcd(t *testing.T) *clientv3.Client {
	t.Helper()
	url, config := cluster.EtcdServer(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, TLS: config, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// connect returns a client for each API server.
func connect(t *testing.T) (servers []*dynamic.Client) {
	t.Helper()
	for _, path := range cluster.Kubeconfigs(t) {
		cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: path, Context: "admin"})
		require.NoError(t, err)
		client, err := dynamic.Connect(t.Context(), cfg)
		require.NoError(t, err)
		t.Cleanup(client.Close)
		servers = append(servers, client)
	}
	return servers
}

// process has connections and a credential of its own, through a proxy with faults. It stands for a process of its own, except that
// its controller and leader election run in a real one; see member.
type process struct {
	number uint8 // from 1
	proxy  *faultproxy.Proxy
	leases *faultproxy.Link // to the steady server, for leader election without the faults of the proxy
	link   *faultproxy.Link
	config *transport.Config
	client *dynamic.Client
	member atomic.Pointer[os.Process]
}

func newProcess(t *testing.T, seed uint64, number int, kubeconfig string, recorder *Recorder) *process {
	t.Helper()
	steady, err := transport.Load(t.Context(), &transport.LoadOptions{Path: kubeconfig, Context: "admin"})
	require.NoError(t, err)
	seed += uint64(number) - 1
	p := &process{number: uint8(number), proxy: faultproxy.NewBalanced(t, seed), leases: faultproxy.NewLink(t, strings.TrimPrefix(steady.Server, "https://"))}
	p.proxy.OnResponse(func(response *http.Response) {
		recorder.RecordResponse(p.number, map[string]string{"configmaps": configMaps.registry, "notes": notes.registry}, response)
	})
	if seed%4 >= 2 {
		p.proxy.WithoutWatchList()
	}
	cfg, err := p.proxy.Config()
	require.NoError(t, err)
	cfg.Protobuf = seed%2 == 0
	p.link = faultproxy.NewLink(t, strings.TrimPrefix(cfg.Server, "http://"))
	cfg.Server = "http://" + p.link.Address()
	p.config = cfg
	p.client, err = dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(p.client.Close)
	return p
}

// storm is a round: faults, observers and writers of its own namespaces.
type storm struct {
	t          *testing.T
	seed       uint64
	servers    []*dynamic.Client
	steady     int // the index of the server that is not restarted; the workload writes to it
	processes  []*process
	kubeconfig string   // of the steady server
	namespaces []string // the objects of the second one are in the cache of both alone
	load       *workload.Workload

	recorder   *Recorder
	etcd       *Etcd
	caches     []observedCache
	backup     string                  // the folder of a copy of etcd's data
	leader     atomic.Pointer[process] // of the last write by a leader
	led        atomic.Int64            // the number of these writes
	signaled   atomic.Bool             // a leader was suspended or killed
	candidates atomic.Int64            // members that have started

	observers sync.WaitGroup
	actors    sync.WaitGroup
	observing context.Context
	acting    context.Context
	stop      func() // ends the actors
	end       func() // ends the observers, too
}

func newStorm(t *testing.T, seed uint64, servers []*dynamic.Client, etcd *clientv3.Client) *storm {
	t.Helper()
	s := &storm{
		t: t, seed: seed, servers: servers, steady: int(seed) % len(servers), recorder: NewRecorder(), backup: filepath.Join(t.TempDir(), "etcd"),
		load: &workload.Workload{Stay: 5, Come: 20, Writers: 2, Writes: 120, MaxDelay: 15 * time.Millisecond, Reach: 1 << 12},
	}
	s.kubeconfig = cluster.Kubeconfigs(t)[s.steady]
	var err error
	s.etcd, err = RecordEtcd(t.Context(), etcd, "/registry/", s.recorder)
	require.NoError(t, err)
	for n := range 2 {
		s.processes = append(s.processes, newProcess(t, seed, n+1, s.kubeconfig, s.recorder))
	}
	prefix := fmt.Sprintf("history-%d-%x-", seed, rand.Uint32())
	for _, name := range []string{prefix + "a", prefix + "b"} {
		_, err := resource(t, servers[s.steady], "namespaces").Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}}}, nil)
		require.NoError(t, err)
		s.namespaces = append(s.namespaces, name)
	}
	observing, stopObservers := context.WithCancel(t.Context())
	acting, stopActors := context.WithCancel(t.Context())
	s.observing = observing
	s.acting = acting
	s.stop = func() { stopActors(); s.actors.Wait() }
	s.end = func() { s.stop(); stopObservers(); s.observers.Wait(); s.etcd.Close() }
	t.Cleanup(s.end)
	return s
}

// resource returns a handle on the named resource.
func resource(t *testing.T, client *dynamic.Client, name string) *dynamic.Resource {
	t.Helper()
	handle, err := client.Resource(t.Context(), name)
	require.NoError(t, err)
	return handle
}

// direct returns a handle for writes in the first namespace.
func (s *storm) direct(server int, k kind) *dynamic.Resource {
	s.t.Helper()
	return resource(s.t, s.servers[server], k.written).Namespace(s.namespaces[0])
}

// proxied returns a handle for a process.
func (s *storm) proxied(p *process, k kind) *dynamic.Resource {
	s.t.Helper()
	return resource(s.t, p.client, k.observed).Namespace(s.namespaces[0])
}

// observer returns a new observer in a process.
func (s *storm) observer(p *process, role Role, name string, k kind, namespaces string) *Observer {
	o := s.recorder.Observer(role, name, k.registry, namespaces)
	o.Process = p.number
	return o
}

// play writes while the faults happen.
func (s *storm) play() {
	handles := []*dynamic.Resource{s.direct(s.steady, configMaps), s.direct(s.steady, notes)}
	for _, handle := range handles {
		s.load.Populate(s.t, handle)
	}
	s.load.Populate(s.t, handles[0].Namespace(s.namespaces[1]))
	s.observe()
	s.awaitDelivery() // a rejected credential ends a stream before its first Synced
	s.act()
	s.prepareRestore()
	s.startFaults()
	write := func(half uint64) (wait func()) {
		var writing sync.WaitGroup
		for _, handle := range handles {
			writing.Go(func() { s.load.Write(s.t, handle, s.seed, half) })
		}
		return writing.Wait
	}
	catchUp := s.delayEtcd()
	wait := write(0)
	s.disconnect()
	signaled := make(chan struct{})
	s.actors.Go(func() {
		defer close(signaled)
		s.signal()
	})
	wait()
	catchUp()
	s.restartEtcd()
	s.hideVersion()
	wait = write(1)
	s.restartServer()
	wait()
	<-signaled
	s.stopFaults()
	rng := rand.New(rand.NewPCG(s.seed, 0)) //nolint:gosec // a script that can be repeated
	for _, handle := range handles {
		s.load.WriteOne(s.t, handle, rng)
	}
	s.stop()
}

// awaitDelivery waits until all observers have the last state, and returns its revision.
func (s *storm) awaitDelivery() int64 {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for {
		revision, err := s.etcd.Await(ctx)
		require.NoError(s.t, err)
		if len(lastingDelivered(s.history(revision))) == 0 || sleep(ctx, 200*time.Millisecond) != nil {
			return revision
		}
	}
}

// settle ends the storm and returns its history.
func (s *storm) settle() *History {
	s.t.Helper()
	revision := s.awaitDelivery()
	for _, c := range s.caches {
		c.snapshot(s)
	}
	s.end()
	return s.history(revision)
}

func (s *storm) history(revision int64) *History {
	h := s.recorder.History(s.etcd.Epochs())
	h.Settle(s.recorder.Now(), revision)
	return h
}
