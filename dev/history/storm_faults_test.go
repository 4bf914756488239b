package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/testing/cluster"
)

// startFaults starts the faults of all proxies. It closes their connections.
func (s *storm) startFaults() {
	for _, p := range s.processes {
		p.proxy.Storm(s.load.Reach)
	}
}

func (s *storm) stopFaults() {
	for _, p := range s.processes {
		p.proxy.Calm()
	}
}

// delayEtcd lets the watch caches lag behind etcd: by little at the steady server, by much at another, or so that its watch cache seems
// to stand still. It returns a function that ends this.
func (s *storm) delayEtcd() (end func()) {
	lagging := (s.steady + 1) % len(s.servers)
	lag := time.Duration(100+rand.New(rand.NewPCG(s.seed, 1)).IntN(400)) * time.Millisecond //nolint:gosec // a script that can be repeated
	if s.seed/4%2 == 0 {
		lag = 3 * time.Second
	}
	cluster.DelayEtcd(s.t, serverName(s.steady), 2*time.Millisecond)
	cluster.DelayEtcd(s.t, serverName(lagging), lag)
	return func() {
		cluster.DelayEtcd(s.t, serverName(s.steady), 0)
		cluster.DelayEtcd(s.t, serverName(lagging), 0)
	}
}

// disconnect silences the connections of the leader. It takes longer than half a lease, and less than the leader's deadline.
func (s *storm) disconnect() {
	if leader := s.awaitLeader(); leader != nil {
		leader.link.Cut()
		leader.leases.Cut()
		time.Sleep(1600 * time.Millisecond)
		leader.leases.Restore()
		leader.link.Restore()
	}
}

// restartServer compacts etcd and restarts a server, so that resourceVersions expire.
func (s *storm) restartServer() {
	if s.seed%2 == 0 {
		cluster.Compact(s.t)
	}
	if n := (s.steady + 1) % len(s.servers); s.seed%3 == 0 && n != s.steady {
		cluster.Restart(s.t, serverName(n), s.seed%2 == 0)
	}
}

func serverName(n int) string {
	if n == 0 {
		return cluster.APIServer
	}
	return fmt.Sprintf("%s-%d", cluster.APIServer, n+1)
}

// restartEtcd kills etcd, or restores its older state.
func (s *storm) restartEtcd() {
	switch {
	case s.isRestoring():
		s.restore()
	case s.seed%5 == 4:
		cluster.Restart(s.t, cluster.Etcd, true)
	default:
		return
	}
	for server := range s.servers {
		for _, k := range []kind{configMaps, notes} {
			handle := s.direct(server, k)
			probe := newObject("probe")
			probe.SetGroupVersionKind(handle.APIResource().GVK)
			require.Eventually(s.t, func() bool {
				_, err := handle.Apply(s.t.Context(), probe, &metav1.ApplyOptions{FieldManager: "history", Force: true})
				return err == nil
			}, patience, 50*time.Millisecond)
		}
	}
}

// hideVersion does not serve the observed version of the definition for longer than a starting server. Other faults would hide that.
func (s *storm) hideVersion() {
	if s.seed%10 != 9 {
		return
	}
	s.stopFaults()
	crds := resource(s.t, s.servers[s.steady], "crd")
	for _, served := range []string{"false", "true"} {
		patch := []byte(`[{"op":"replace","path":"/spec/versions/1/served","value":` + served + `}]`)
		_, err := crds.Patch(s.t.Context(), "notes.history.example.com", types.JSONPatchType, patch, nil)
		require.NoError(s.t, err)
		if served == "false" {
			time.Sleep(8 * time.Second)
		}
	}
	s.startFaults()
}

func (s *storm) isRestoring() bool { return s.seed%10 == 7 }

// prepareRestore copies etcd's data while it is stopped.
func (s *storm) prepareRestore() {
	if !s.isRestoring() {
		return
	}
	cluster.Stop(s.t, cluster.Etcd)
	require.NoError(s.t, os.CopyFS(s.backup, os.DirFS(cluster.EtcdData(s.t))))
	cluster.Start(s.t, cluster.Etcd)
}

// restore replaces etcd's data by the copy, as etcdutl does with --bump-revision and --mark-compacted: revisions continue above those
// of the lost history, which are expired. Without that, API servers accept watches of a future revision and send nothing before it.
// The servers are stopped, because their watch caches have newer states.
func (s *storm) restore() {
	lost, err := s.etcd.Await(s.t.Context())
	require.NoError(s.t, err)
	for n := range s.servers {
		cluster.Stop(s.t, serverName(n))
	}
	cluster.Stop(s.t, cluster.Etcd)
	data := cluster.EtcdData(s.t)
	require.NoError(s.t, os.RemoveAll(data))
	require.NoError(s.t, os.CopyFS(data, os.DirFS(s.backup)))
	cluster.Start(s.t, cluster.Etcd)
	for revision := int64(0); revision < lost+1000; { // more than the servers wrote meanwhile
		response, err := s.etcd.client.Put(s.t.Context(), "/history/bump", "")
		require.NoError(s.t, err)
		revision = response.Header.Revision
	}
	_, err = s.etcd.client.Compact(s.t.Context(), lost+1000)
	require.NoError(s.t, err)
	require.NoError(s.t, s.etcd.Restored(s.t.Context()))
	for n := range s.servers {
		cluster.Start(s.t, serverName(n))
	}
}
