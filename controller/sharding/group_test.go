package sharding_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/controller/leaderelection"
	"github.com/anykind/anykind/controller/sharding"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/shard"
)

// keyCount is the number of hashes that the members of a test work on.
const keyCount = 24

func hashOf(key int) uint64 { return shard.Hash(fmt.Sprint("key-", key)) }

// work records which member works on each key.
type work struct {
	mu       sync.Mutex
	busy     map[int]string
	counts   map[int]int
	overlaps []string
}

func newWork() *work {
	return &work{busy: map[int]string{}, counts: map[int]int{}}
}

func (w *work) begin(key int, member string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if busy := w.busy[key]; busy != "" {
		w.overlaps = append(w.overlaps, fmt.Sprintf("key %d: %s and %s", key, busy, member))
	}
	w.busy[key] = member
	w.counts[key]++
}

func (w *work) end(key int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy[key] = ""
}

// requireAll requires work on every key since the last call.
func (w *work) requireAll(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Empty(t, w.overlaps)
	for key := range keyCount {
		require.NotZero(t, w.counts[key], "key %d", key)
	}
	clear(w.counts)
}

// member is a member of a group under test.
type member struct {
	*sharding.Group
	cutOff atomic.Bool
	stop   context.CancelFunc
	ended  chan error
}

// join starts a member that works on all keys that it may work on. A unit of work takes up to a second; after the end of its ctx it takes
// up to 4 more seconds, within the rest of the LeaseDuration.
func (w *work) join(t *testing.T, server *controllertest.Server, name string, fault func(*http.Request) error) *member {
	t.Helper()
	m := &member{ended: make(chan error, 1)}
	client := server.Connect(t, func(r *http.Request) error {
		switch {
		case m.cutOff.Load():
			return errors.New("no route to host")
		case fault != nil:
			return fault(r)
		default:
			return nil
		}
	})
	leases := controllertest.Leases(t, server.Connect(t, func(*http.Request) error { return nil }))
	var err error
	m.Group, err = sharding.New(resourceOf(t, client, leases), "op", &sharding.Options{Identity: name})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	m.stop = stop
	t.Cleanup(stop) // otherwise a failed test would not end
	go func() {
		m.ended <- m.Run(ctx, func(ctx context.Context) error { return w.run(ctx, m.Group, name) })
	}()
	return m
}

func (w *work) run(ctx context.Context, group *sharding.Group, name string) error {
	fence, err := group.NewFence(func() {})
	if err != nil {
		return err
	}
	defer fence.Close()
	var all sync.WaitGroup
	defer all.Wait()
	for key := range keyCount {
		random := rand.New(rand.NewPCG(uint64(key), shard.Hash(name)))
		all.Go(func() {
			for ctx.Err() == nil {
				if taskCtx, end, ok := fence.Begin(context.WithoutCancel(ctx), hashOf(key)); ok {
					w.begin(key, name)
					if sleep(taskCtx, time.Duration(random.IntN(1000))*time.Millisecond) != nil {
						time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
					}
					w.end(key)
					end()
				}
				_ = sleep(ctx, time.Duration(100+random.IntN(100))*time.Millisecond)
			}
		})
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// requireBalanced requires that the members have equal shares, which cover everything.
func requireBalanced(t *testing.T, members ...*member) {
	t.Helper()
	var all []shard.Range
	for _, m := range members {
		health := m.Health()
		require.NoError(t, health.Err)
		require.Len(t, health.Members, len(members))
		require.InDelta(t, 1/float64(len(members)), health.Share(), 0.15/float64(len(members)), health.Member)
		all = append(all, health.Ranges...)
	}
	require.Equal(t, shard.All(), shard.Union(all...))
}

func TestGroup_MembersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := controllertest.New(t)
		w := newWork()
		one := w.join(t, server, "one", nil)
		time.Sleep(10 * time.Second)
		require.Empty(t, one.Health().Ranges, "a deleted assignment may have had owners")
		time.Sleep(10 * time.Second)
		requireBalanced(t, one)
		w.requireAll(t)

		two := w.join(t, server, "two", nil)
		time.Sleep(5 * time.Second)
		requireBalanced(t, one, two)
		three := w.join(t, server, "three", nil)
		time.Sleep(5 * time.Second)
		requireBalanced(t, one, two, three)
		time.Sleep(10 * time.Second)
		w.requireAll(t)

		one.stop()
		require.NoError(t, <-one.ended)
		time.Sleep(5 * time.Second)
		requireBalanced(t, two, three)
		w.requireAll(t)
		require.Len(t, server.Objects("/leases/"), 3)

		two.cutOff.Store(true)
		time.Sleep(14 * time.Second)
		w.mu.Lock()
		for _, busy := range w.busy {
			assert.NotEqual(t, "two", busy)
		}
		w.mu.Unlock()
		time.Sleep(20 * time.Second)
		requireBalanced(t, three)
		require.Greater(t, three.Health().Unowned, 15*time.Second)
		two.cutOff.Store(false)
		time.Sleep(10 * time.Second)
		requireBalanced(t, two, three)
		w.requireAll(t)

		two.stop()
		three.stop()
		require.NoError(t, <-two.ended)
		require.NoError(t, <-three.ended)
		four := w.join(t, server, "four", nil)
		time.Sleep(20 * time.Second) // two may have handed over to three, which had left: its segments wait for the LeaseDuration
		requireBalanced(t, four)
		four.stop()
		require.NoError(t, <-four.ended)
		require.Len(t, server.Objects("/leases/"), 1, "the assignment is kept")
		w.requireAll(t)
	})
}

func TestGroup_AdministratorDeletesLeases(t *testing.T) {
	for name, part := range map[string]string{"of a member": "/leases/op-", "with the assignment": "/leases/op", "all": "/leases/"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, server := controllertest.New(t)
				w := newWork()
				one := w.join(t, server, "one", nil)
				two := w.join(t, server, "two", nil)
				time.Sleep(30 * time.Second)
				requireBalanced(t, one, two)
				for range 5 {
					switch name {
					case "of a member":
						server.Delete(part + strings.TrimPrefix(one.Health().Member, "op-"))
					case "with the assignment":
						server.DeleteExactly(part)
					default:
						server.Delete(part)
					}
					time.Sleep(4 * time.Second)
					w.mu.Lock()
					clear(w.counts)
					w.mu.Unlock()
					time.Sleep(time.Minute)
					requireBalanced(t, one, two)
					w.requireAll(t)
				}
				health := one.Health()
				require.NotZero(t, health.Lost+health.Released, "a member may also hand over before it notices the deletion")
				one.stop()
				two.stop()
				require.NoError(t, <-one.ended)
				require.NoError(t, <-two.ended)
			})
		})
	}
}

func TestGroup_JoinsSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := controllertest.New(t)
		w := newWork()
		var sent atomic.Int32
		m := w.join(t, server, "member", func(r *http.Request) error {
			if sent.Add(1) > 5 || r.URL.Query().Get("watch") != "" {
				return nil
			}
			<-r.Context().Done() // no response within the time-out of a round
			return r.Context().Err()
		})
		time.Sleep(2 * time.Minute)
		w.requireAll(t)
		m.stop()
		require.NoError(t, <-m.ended)
		assert.Greater(t, sent.Load(), int32(5))
	})
}

// The observers of a Lease whose creation had no response count from the creation: a read of it is no renewal.
func TestGroup_RenewsLeaseWithoutResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := controllertest.New(t)
		var mu sync.Mutex
		var requests []string
		m := newWork().join(t, server, "member", func(r *http.Request) error {
			mu.Lock()
			defer mu.Unlock()
			if r.Method == http.MethodPost && len(requests) == 0 {
				requests = append(requests, r.Method)
				server.Discard(r)
				return errors.New("connection reset")
			}
			if name := path.Base(r.URL.Path); strings.HasPrefix(name, "op-") {
				requests = append(requests, r.Method)
			}
			return nil
		})
		require.Eventually(t, func() bool { return m.Health().Member != "" }, time.Hour, 10*time.Millisecond)
		synctest.Wait()
		mu.Lock()
		assert.Equal(t, []string{"POST", "GET", "PUT"}, requests)
		mu.Unlock()
		m.stop()
		require.NoError(t, <-m.ended)
	})
}

// A member that plans goes on renewing its Lease while it deletes the Leases of many dead members on a slow server.
func TestGroup_ManyDeadMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := controllertest.New(t)
		w := newWork()
		var longest atomic.Int64
		var last time.Time
		survivor := w.join(t, server, "survivor", func(r *http.Request) error {
			switch {
			case r.Method == http.MethodDelete:
				return sleep(r.Context(), 3*time.Second)
			case r.Method == http.MethodPut && path.Base(r.URL.Path) != "op": // a renewal
				if !last.IsZero() {
					longest.Store(max(longest.Load(), int64(time.Since(last))))
				}
				last = time.Now()
			}
			return nil
		})
		members := []*member{survivor}
		for n := range 8 {
			members = append(members, w.join(t, server, fmt.Sprint("member-", n), nil))
		}
		time.Sleep(2 * time.Minute)
		requireBalanced(t, members...)
		for _, m := range members[1:] {
			m.cutOff.Store(true)
		}
		time.Sleep(2 * time.Minute)
		requireBalanced(t, survivor)
		assert.Less(t, time.Duration(longest.Load()), 10*time.Second, "the RenewDeadline")
		for _, m := range members[1:] {
			m.cutOff.Store(false)
		}
		for _, m := range members {
			m.stop()
			t.Log(<-m.ended)
		}
	})
}

func TestGroup_RunWithoutRightToWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := controllertest.New(t)
		server.Override = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/leases") {
				return false
			}
			scripted.Status(http.StatusForbidden, "Forbidden")(w, r)
			return true
		}
		group, err := sharding.New(controllertest.Leases(t, client), "op", nil)
		require.NoError(t, err)
		err = group.Run(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return nil })
		require.True(t, apierrors.IsForbidden(err), "%v", err)
	})
}

func TestGroup_StopLogsNoWarning(t *testing.T) {
	for range 10 { // the end of ctx is seen before or after the error of the watch
		synctest.Test(t, func(t *testing.T) {
			client, _ := controllertest.New(t)
			var warnings strings.Builder
			group, err := sharding.New(controllertest.Leases(t, client), "op", &sharding.Options{
				Logger: slog.New(slog.NewTextHandler(&warnings, &slog.HandlerOptions{Level: slog.LevelWarn})),
			})
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- group.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }) }()
			time.Sleep(time.Minute)
			stop()
			require.NoError(t, <-ended)
			assert.Empty(t, warnings.String())
		})
	}
}

// TestGroup_HandoverAndRenewalWithoutResponse hands over a segment by an update without a response. The watch has the result, and all
// requests after the update fail.
func TestGroup_HandoverAndRenewalWithoutResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := controllertest.New(t)
		w := newWork()
		var first *member
		var isShared, isAway atomic.Bool
		first = w.join(t, server, "first", func(r *http.Request) error {
			switch {
			case r.URL.Query().Get("watch") != "":
			case isAway.Load():
				return errors.New("no route to host")
			case isShared.Load() && r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/leases/op") && first.Health().Share() < 1:
				server.Discard(r)
				isAway.Store(true)
				return errors.New("connection reset")
			}
			return nil
		})
		time.Sleep(time.Minute)
		isShared.Store(true)
		second := w.join(t, server, "second", nil)
		require.Eventually(t, isAway.Load, time.Minute, time.Millisecond)
		for range 50 {
			time.Sleep(100 * time.Millisecond)
			assert.Empty(t, first.Health().Ranges.Intersect(second.Health().Ranges))
		}
		isAway.Store(false)
		time.Sleep(time.Minute)
		w.requireAll(t)
		first.stop()
		second.stop()
		require.NoError(t, <-first.ended)
		require.NoError(t, <-second.ended)
	})
}

// TestGroup_NoOverlapDespiteFaults has members come and go while requests and responses are lost or late, and while an administrator
// deletes Leases. The seed of a failure repeats it.
func TestGroup_NoOverlapDespiteFaults(t *testing.T) {
	seeds := uint64(4)
	if text := os.Getenv("ANYKIND_SHARDING_SEEDS"); text != "" {
		parsed, err := strconv.ParseUint(text, 10, 32)
		require.NoError(t, err)
		seeds = parsed
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { injectFaults(t, seed) })
		})
	}
}

func injectFaults(t *testing.T, seed uint64) {
	_, server := controllertest.New(t)
	w := newWork()
	var calm atomic.Bool
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1))
	chance := func(in int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(in) }
	fault := func(r *http.Request) error {
		if calm.Load() || !strings.Contains(r.URL.Path, "/leases") || r.URL.Query().Get("watch") != "" {
			return nil
		}
		switch chance(40) {
		case 0, 1:
			return errors.New("connection reset")
		case 2, 3:
			server.Discard(r)
			return errors.New("connection reset")
		case 4, 5:
			if sleep(r.Context(), time.Duration(chance(12))*time.Second) != nil {
				if chance(2) == 0 {
					copied := r.Clone(context.WithoutCancel(r.Context()))
					go func() { // it is on its way all the same
						time.Sleep(time.Duration(chance(4)) * time.Second)
						server.Discard(copied)
					}()
				}
				return r.Context().Err()
			}
		}
		return nil
	}
	members := []*member{}
	for n := range 3 {
		members = append(members, w.join(t, server, fmt.Sprint("member-", n), fault))
	}
	for n := range 25 {
		time.Sleep(time.Duration(chance(30)) * time.Second)
		m := members[chance(len(members))]
		switch chance(8) {
		case 0, 1:
			m.cutOff.Store(!m.cutOff.Load())
		case 2:
			if len(members) > 1 {
				m.stop()
			}
		case 3, 4:
			if len(members) < 6 {
				members = append(members, w.join(t, server, fmt.Sprint("member-", n+10), fault))
			}
		case 5:
			server.Delete("/leases/" + m.Health().Member)
		case 6:
			server.DeleteExactly("/leases/op")
		case 7:
			server.Delete("/leases/op")
		}
	}
	calm.Store(true)
	last := w.join(t, server, "last", nil)
	for _, m := range members {
		m.cutOff.Store(false)
		m.stop()
		t.Log(<-m.ended)
	}
	time.Sleep(2 * time.Minute)
	requireBalanced(t, last)
	w.mu.Lock()
	clear(w.counts)
	w.mu.Unlock()
	time.Sleep(10 * time.Second)
	w.requireAll(t)
	last.stop()
	require.NoError(t, <-last.ended)
	synctest.Wait()
}

func TestFence_LostLeaseEndsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := controllertest.New(t)
		group, err := sharding.New(controllertest.Leases(t, client), "op", nil)
		require.NoError(t, err)
		_, err = group.NewFence(func() {})
		require.ErrorContains(t, err, "must run within its work")
		var away atomic.Bool
		server.Fault = func(*http.Request) error {
			if away.Load() {
				return errors.New("no route to host")
			}
			return nil
		}
		err = group.Run(t.Context(), func(ctx context.Context) error {
			ready := make(chan struct{}, 10)
			fence, err := group.NewFence(func() { ready <- struct{}{} })
			require.NoError(t, err)
			defer fence.Close()
			time.Sleep(20 * time.Second)
			taskCtx, end, ok := fence.Begin(ctx, 7)
			require.True(t, ok)
			away.Store(true)
			cutOffAt := time.Now()
			<-taskCtx.Done()
			end()
			assert.ErrorIs(t, context.Cause(taskCtx), leaderelection.ErrLeaseLost)
			assert.LessOrEqual(t, time.Since(cutOffAt), 10*time.Second)
			assert.True(t, fence.Owns(7), "nobody has taken it")
			assert.False(t, fence.Admits(7))
			for len(ready) > 0 {
				<-ready
			}
			away.Store(false)
			<-ready
			assert.True(t, fence.Admits(7))
			return nil
		})
		require.NoError(t, err)
		require.ErrorContains(t, group.Run(t.Context(), nil), "it runs already, or has run")
	})
}

// unlistedCache is a cache that lists its objects once listed is closed.
type unlistedCache struct{ listed chan struct{} }

func (unlistedCache) SetShard(shard.Selector) error { return nil }

func (c unlistedCache) WaitForSync(ctx context.Context) error {
	select {
	case <-c.listed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestFence_AdmitsListedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := controllertest.New(t)
		group, err := sharding.New(controllertest.Leases(t, client), "op", &sharding.Options{Identity: "one"})
		require.NoError(t, err)
		require.NoError(t, group.Run(t.Context(), func(context.Context) error {
			objects := unlistedCache{make(chan struct{})}
			fence, err := group.NewFence(func() {}, objects)
			require.NoError(t, err)
			defer fence.Close()
			time.Sleep(time.Minute)
			assert.True(t, fence.Owns(hashOf(1)))
			assert.False(t, fence.Admits(hashOf(1)))
			close(objects.listed)
			time.Sleep(time.Minute)
			assert.True(t, fence.Admits(hashOf(1)))
			return nil
		}))
	})
}

// resourceOf returns a handle of a client, with faults, on the same resource.
func resourceOf(t *testing.T, client *dynamic.Client, leases *dynamic.Resource) *dynamic.Resource {
	t.Helper()
	return client.ForAPIResource(leases.APIResource()).Namespace("shop")
}
