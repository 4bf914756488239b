package parity_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientgo "k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/anykind/anykind/controller/leaderelection"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
)

// Durations of every candidate: short, but with four seconds between the renew deadline and the lease's end, so that a
// busy machine stops leading in time.
const (
	leaseDuration = 7 * time.Second
	renewDeadline = 3 * time.Second
	retryPeriod   = 300 * time.Millisecond
)

// leadership records who leads, and fails the test if two lead at once.
type leadership struct {
	t     *testing.T
	taken atomic.Bool
	mu    sync.Mutex
	terms []string // the leaders, in order
}

func (s *leadership) start(leader string) {
	assert.True(s.t, s.taken.CompareAndSwap(false, true), "%s leads while another leads", leader)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.terms = append(s.terms, leader)
}

func (s *leadership) stop() { s.taken.Store(false) }

func (s *leadership) termsOf(leader string) (count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.terms {
		if one == leader {
			count++
		}
	}
	return count
}

// TestLeaderElection_OneLeaderWithClientGo runs two candidates of anykind and two of client-go for one Lease of a real
// server, which restarts twice. They stop leading, some without releasing the Lease, as in a crash, or are disconnected
// from the server.
func TestLeaderElection_OneLeaderWithClientGo(t *testing.T) {
	path := cluster.Kubeconfig(t)
	clientset := clientGoClientset(t, path)
	removeLease := func() {
		_ = clientset.CoordinationV1().Leases("default").Delete(context.Background(), "leadership", metav1.DeleteOptions{})
	}
	removeLease()
	t.Cleanup(removeLease)

	ctx, stop := context.WithTimeout(t.Context(), 4*time.Minute)
	defer stop()
	leading := &leadership{t: t}
	var all sync.WaitGroup
	for n := range 2 {
		all.Go(func() { standAnykind(ctx, t, path, fmt.Sprint("anykind-", n), leading) })
		theirs := clientGoClientset(t, path)
		all.Go(func() { standClientGo(ctx, t, theirs, fmt.Sprint("client-go-", n), leading) })
	}
	enough := func(each int) func() bool {
		return func() bool {
			ours := leading.termsOf("anykind")
			theirs := leading.termsOf("client-go")
			return ours >= each && theirs >= each
		}
	}
	for round := range 3 {
		require.Eventually(t, enough(3*(round+1)), 3*time.Minute, 100*time.Millisecond)
		if round < 2 {
			cluster.RestartAPIServer(t, round == 1)
		}
	}
	stop()
	all.Wait()
	lease, err := clientset.CoordinationV1().Leases("default").Get(t.Context(), "leadership", metav1.GetOptions{})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, int(*lease.Spec.LeaseTransitions), len(leading.terms)-1, "every term has a token of its own")
}

// leadTerm returns how long a candidate leads, unless it is interrupted, and how it stops.
func leadTerm() (time.Duration, int) {
	return time.Duration(rand.IntN(1500)) * time.Millisecond, rand.IntN(4)
}

func standAnykind(ctx context.Context, t *testing.T, path, name string, leading *leadership) {
	for term := 0; ctx.Err() == nil; term++ {
		cfg, err := transport.Load(ctx, &transport.LoadOptions{Path: path})
		if !assert.NoError(t, err) {
			return
		}
		var cutOff atomic.Bool
		cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			return tripper(func(r *http.Request) (*http.Response, error) {
				if cutOff.Load() {
					return nil, errors.New("cut off")
				}
				return next.RoundTrip(r)
			})
		}
		client, err := dynamic.Connect(ctx, cfg)
		if err != nil {
			_ = wait(ctx, retryPeriod) // the server restarts
			continue
		}
		leases, err := client.Resource(ctx, "leases.coordination.k8s.io")
		if err == nil {
			_ = leaderelection.Run(ctx, leases.Namespace("default"), "leadership", &leaderelection.Options{
				Identity: fmt.Sprint(name, "-", term), LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
			}, func(ctx context.Context, _ int64) error {
				leading.start("anykind")
				defer leading.stop()
				length, ending := leadTerm()
				if err := wait(ctx, length); err == nil && ending == 0 {
					cutOff.Store(true)
					<-ctx.Done()
				}
				return nil
			})
		}
		client.Close()
		_ = wait(ctx, retryPeriod)
	}
}

// clientGoClientset returns a clientset with its own connections.
func clientGoClientset(t *testing.T, path string) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	http, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(http.Transport) })
	client, err := kubernetes.NewForConfigAndClient(config, http)
	require.NoError(t, err)
	return client
}

func standClientGo(ctx context.Context, t *testing.T, client *kubernetes.Clientset, name string, leading *leadership) {
	for term := 0; ctx.Err() == nil; term++ {
		standing, step := context.WithCancel(ctx)
		length, ending := leadTerm()
		finished := make(chan struct{})
		var led, left atomic.Bool
		elector, err := clientgo.NewLeaderElector(clientgo.LeaderElectionConfig{
			Lock: afterwards{&resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "leadership"}, Client: client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprint(name, "-", term)},
			}, &left},
			LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: ending != 0,
			Callbacks: clientgo.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					defer close(finished)
					led.Store(true)
					if ctx.Err() != nil {
						return // it was over before this goroutine ran
					}
					leading.start("client-go")
					_ = wait(ctx, length)
					leading.stop()
					left.Store(true)
					step()
				},
				OnStoppedLeading: func() {},
			},
		})
		if !assert.NoError(t, err) {
			step()
			return
		}
		elector.Run(standing)
		step()
		if elector.IsLeader() || led.Load() {
			<-finished
		}
		_ = wait(ctx, retryPeriod)
	}
}

// afterwards is a lock that is released only after the leader has stopped. client-go itself releases it before it cancels
// the leader's context if it could not renew it in time.
type afterwards struct {
	resourcelock.Interface
	left *atomic.Bool
}

func (a afterwards) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" && !a.left.Load() {
		return errors.New("the leader has not left")
	}
	return a.Interface.Update(ctx, record)
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func wait(ctx context.Context, length time.Duration) error {
	select {
	case <-time.After(length):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
