package controller_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func leases(t testing.TB, client *dynamic.Client) *dynamic.Resource {
	t.Helper()
	return resource(t, client, "leases.coordination.k8s.io").In("shop")
}

func as(identity string) *controller.LeadOptions { return &controller.LeadOptions{Identity: identity} }

// until leads until ctx ends.
func until(ctx context.Context, _ int64) error {
	<-ctx.Done()
	return nil
}

// spec is what the Lease "op" says.
func spec(t testing.TB, server *memory) map[string]any {
	t.Helper()
	all := server.all("/leases/op")
	require.Len(t, all, 1)
	found, _ := all[0]["spec"].(map[string]any)
	return found
}

func TestOneLeadsAndTheNextTakesOverWhenItReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := inMemory(t)
		handle := leases(t, client)
		first, stop := context.WithCancel(t.Context())
		var ended time.Time
		var told []string
		var all sync.WaitGroup
		all.Go(func() {
			assert.NoError(t, controller.Lead(first, handle, "op", as("one"), func(ctx context.Context, token int64) error {
				assert.EqualValues(t, 0, token)
				<-ctx.Done()
				ended = time.Now()
				return nil
			}))
		})
		time.Sleep(time.Second)
		assert.Equal(t, "one", spec(t, server)["holderIdentity"])
		assert.EqualValues(t, 15, spec(t, server)["leaseDurationSeconds"])
		second, stopSecond := context.WithCancel(t.Context())
		all.Go(func() {
			opts := as("two")
			opts.NewLeader = func(identity string) { told = append(told, identity) }
			assert.NoError(t, controller.Lead(second, handle, "op", opts, func(_ context.Context, token int64) error {
				assert.EqualValues(t, 1, token)
				assert.Less(t, time.Since(ended), 3*time.Second+time.Millisecond)
				return nil
			}))
			stopSecond()
		})
		time.Sleep(time.Hour)
		assert.NoError(t, second.Err(), "the first renews")
		stop()
		all.Wait()
		assert.Equal(t, []string{"one", "two"}, told)
		released := spec(t, server)
		assert.Empty(t, released["holderIdentity"])
		assert.EqualValues(t, 1, released["leaseTransitions"])
	})
}

func TestALeaderThatDiesIsSucceededAfterTheLeaseDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := inMemory(t)
		var dead atomic.Bool
		dying := server.connect(t, func(*http.Request) error {
			if dead.Load() {
				return errors.New("no route to host")
			}
			return nil
		})
		healthy := server.connect(t, func(*http.Request) error { return nil })
		var all sync.WaitGroup
		var diedAt, endedAt, tookOverAt time.Time
		var lost error
		all.Go(func() {
			lost = controller.Lead(t.Context(), leases(t, dying), "op", as("one"), func(ctx context.Context, _ int64) error {
				time.Sleep(time.Minute)
				dead.Store(true)
				diedAt = time.Now()
				<-ctx.Done()
				endedAt = time.Now()
				assert.ErrorIs(t, context.Cause(ctx), controller.ErrLeaseLost)
				return ctx.Err()
			})
		})
		time.Sleep(time.Second)
		all.Go(func() {
			assert.NoError(t, controller.Lead(t.Context(), leases(t, healthy), "op", as("two"), func(_ context.Context, token int64) error {
				tookOverAt = time.Now()
				assert.EqualValues(t, 1, token)
				return nil
			}))
		})
		all.Wait()
		require.ErrorIs(t, lost, controller.ErrLeaseLost)
		assert.ErrorContains(t, lost, `lead by leases.coordination.k8s.io "op": the lease is lost: it was not renewed within 10s: `)
		assert.ErrorContains(t, lost, "no route to host")
		assert.LessOrEqual(t, endedAt.Sub(diedAt), 10*time.Second)
		assert.GreaterOrEqual(t, endedAt.Sub(diedAt), 7*time.Second)
		assert.GreaterOrEqual(t, tookOverAt.Sub(endedAt), 5*time.Second, "what the leader has to stop")
		assert.LessOrEqual(t, tookOverAt.Sub(diedAt), 21*time.Second)
	})
}

func TestALeaderStopsInTimeWhateverItsRequestsHangIn(t *testing.T) {
	for _, after := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			client, server := inMemory(t)
			var hangs atomic.Bool
			server.fault = func(*http.Request) error {
				if hangs.Load() {
					time.Sleep(time.Hour) // and does not heed its context
				}
				return nil
			}
			err := controller.Lead(t.Context(), leases(t, client), "op", as("one"), func(ctx context.Context, _ int64) error {
				time.Sleep(after)
				hangs.Store(true)
				hungAt := time.Now()
				<-ctx.Done()
				assert.LessOrEqual(t, time.Since(hungAt), 10*time.Second)
				return nil
			})
			assert.ErrorIs(t, err, controller.ErrLeaseLost)
		})
	}
}

func TestALeaseThatIsTakenAwayIsLostAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		take func(object map[string]any, server *memory)
		want string
	}{
		"by another":             {func(o map[string]any, _ *memory) { o["spec"].(map[string]any)["holderIdentity"] = "two" }, `the lease is lost: "two" has it`},
		"and is ours, but later": {func(o map[string]any, _ *memory) { o["spec"].(map[string]any)["leaseTransitions"] = 7 }, `the lease is lost: "one" has it`},
		"and is ours, made anew": {func(o map[string]any, _ *memory) {
			o["spec"].(map[string]any)["acquireTime"] = "1999-01-01T00:00:00.000000Z"
		}, `the lease is lost: "one" has it`},
		"by deleting it":         {func(_ map[string]any, server *memory) { clear(server.objects) }, `the lease is lost: somebody deleted it`},
		"by making it something": {func(o map[string]any, _ *memory) { o["spec"] = map[string]any{} }, `the lease is lost: "" has it`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := inMemory(t)
				err := controller.Lead(t.Context(), leases(t, client), "op", as("one"), func(ctx context.Context, _ int64) error {
					time.Sleep(time.Minute)
					server.change("/leases/op", func(object map[string]any) { tc.take(object, server) })
					taken := time.Now()
					<-ctx.Done()
					assert.LessOrEqual(t, time.Since(taken), 3*time.Second+time.Millisecond)
					return context.Cause(ctx)
				})
				require.ErrorIs(t, err, controller.ErrLeaseLost)
				assert.EqualError(t, err, `lead by leases.coordination.k8s.io "op": `+tc.want)
			})
		})
	}
}

func TestWhatOthersWriteIntoTheLeaseIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := inMemory(t)
		assert.NoError(t, controller.Lead(t.Context(), leases(t, client), "op", as("one"), func(ctx context.Context, _ int64) error {
			for range 20 {
				server.change("/leases/op", func(object map[string]any) {
					object["metadata"].(map[string]any)["labels"] = map[string]any{"by": "somebody"}
				})
				time.Sleep(10 * time.Second)
				assert.NoError(t, ctx.Err())
			}
			return nil
		}))
		all := server.all("/leases/op")
		assert.Equal(t, map[string]any{"by": "somebody"}, all[0]["metadata"].(map[string]any)["labels"], "and it stays")
	})
}

func TestTheLeaseIsKeptWhileTheLeaderFinishesItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := inMemory(t)
		handle := leases(t, client)
		var all sync.WaitGroup
		var finished atomic.Bool
		ctx, stop := context.WithCancel(t.Context())
		failure := errors.New("half of it")
		all.Go(func() {
			assert.ErrorIs(t, controller.Lead(ctx, handle, "op", as("one"), func(ctx context.Context, _ int64) error {
				<-ctx.Done()
				assert.NotErrorIs(t, context.Cause(ctx), controller.ErrLeaseLost)
				time.Sleep(10 * time.Minute)
				finished.Store(true)
				return failure
			}), failure)
		})
		time.Sleep(time.Second)
		stop()
		assert.NoError(t, controller.Lead(t.Context(), leases(t, client), "op", as("two"), func(context.Context, int64) error {
			assert.True(t, finished.Load())
			return nil
		}))
		all.Wait()
	})
}

func TestALossWhileTheLeaderFinishesItsWorkIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := inMemory(t)
		ctx, stop := context.WithCancel(t.Context())
		failure := errors.New("half of it")
		err := controller.Lead(ctx, leases(t, client), "op", as("one"), func(context.Context, int64) error {
			stop()
			server.change("/leases/op", func(object map[string]any) { object["spec"].(map[string]any)["holderIdentity"] = "two" })
			time.Sleep(time.Minute)
			return failure
		})
		assert.ErrorIs(t, err, controller.ErrLeaseLost)
		assert.ErrorIs(t, err, failure)
	})
}

func TestACandidateGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := inMemory(t)
		handle := leases(t, client)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { assert.NoError(t, controller.Lead(ctx, handle, "op", as("one"), until)) })
		time.Sleep(time.Second)
		waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := controller.Lead(waiting, leases(t, client), "op", as("two"), func(context.Context, int64) error {
			t.Error("two lead at once")
			return nil
		})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		stop()
		all.Wait()
	})
}

func TestAnAnswerThatIsLostIsNoLostTerm(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := inMemory(t)
				began := time.Now()
				if method == http.MethodPut {
					require.NoError(t, controller.Lead(t.Context(), leases(t, client), "op", as("zero"), func(context.Context, int64) error { return nil }))
				}
				lost := false
				server.fault = func(r *http.Request) error {
					if r.Method != method || lost {
						return nil
					}
					lost = true
					server.answer(new(discarded), r)
					return errors.New("connection reset")
				}
				assert.NoError(t, controller.Lead(t.Context(), leases(t, client), "op", as("one"), func(ctx context.Context, _ int64) error {
					assert.Less(t, time.Since(began), 10*time.Second, "it knows its own term")
					time.Sleep(time.Minute)
					return ctx.Err()
				}))
			})
		})
	}
}

func TestLead_AnswerAfterRenewDeadlineIsNoTerm(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := inMemory(t)
				handle := leases(t, client)
				if method == http.MethodPut {
					server.hold("op", "")
				}
				slow := true
				server.override = func(_ http.ResponseWriter, r *http.Request) bool {
					if slow && r.Method == method {
						slow = false
						time.Sleep(11 * time.Second)
					}
					return false
				}
				assert.NoError(t, controller.Lead(t.Context(), handle, "op", as("one"), func(ctx context.Context, _ int64) error {
					assert.NoError(t, ctx.Err(), "it begins with a Lease that it holds")
					renewed, err := time.Parse(time.RFC3339Nano, spec(t, server)["renewTime"].(string))
					assert.NoError(t, err)
					assert.Less(t, time.Since(renewed), time.Second)
					time.Sleep(time.Minute)
					return ctx.Err()
				}))
			})
		})
	}
}

func TestAnEarlierProcessOfTheSameNameIsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := inMemory(t)
		require.Panics(t, func() {
			_ = controller.Lead(t.Context(), leases(t, client), "op", as("one"), func(context.Context, int64) error { panic("crash") })
		})
		assert.Equal(t, "one", spec(t, server)["holderIdentity"], "who knows what it has left")
		crashed := time.Now()
		assert.NoError(t, controller.Lead(t.Context(), leases(t, client), "op", as("one"), func(_ context.Context, token int64) error {
			assert.EqualValues(t, 1, token)
			assert.GreaterOrEqual(t, time.Since(crashed), 15*time.Second)
			return nil
		}))
	})
}

// TestLead_ReturnsWhatTheServerRefuses has the server give the same answer to all requests of a method.
func TestLead_ReturnsWhatTheServerRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		method string
		answer func(http.ResponseWriter)
		check  func(error) bool
		after  time.Duration // at most
	}{
		"reading is forbidden":  {http.MethodGet, answer(http.StatusForbidden, "Forbidden"), apierrors.IsForbidden, 10 * time.Second},
		"creating is forbidden": {http.MethodPost, answer(http.StatusForbidden, "Forbidden"), apierrors.IsForbidden, 10 * time.Second},
		"unauthorized":          {http.MethodGet, answer(http.StatusUnauthorized, "Unauthorized"), apierrors.IsUnauthorized, 10 * time.Second},
		"in no namespace":       {http.MethodPost, func(w http.ResponseWriter) { refuseObject(w, http.StatusNotFound, "NotFound", "shop") }, apierrors.IsNotFound, 0},
		"not served":            {http.MethodGet, notServed, apierrors.IsNotFound, 0},
		"invalid":               {http.MethodPost, answer(http.StatusUnprocessableEntity, "Invalid"), apierrors.IsInvalid, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := inMemory(t)
				server.override = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method != tc.method || !strings.Contains(r.URL.Path, "/leases") {
						return false
					}
					tc.answer(w)
					return true
				}
				handle, began := leases(t, client), time.Now()
				err := controller.Lead(t.Context(), handle, "op", as("one"), until)
				assert.True(t, tc.check(err), "%v", err)
				assert.ErrorContains(t, err, `lead by leases.coordination.k8s.io "op": `)
				assert.LessOrEqual(t, time.Since(began), tc.after)
			})
		})
	}
}

// TestLead_RetriesWhatMayPass refuses one request, of a candidate that has not been answered before or of a leader.
func TestLead_RetriesWhatMayPass(t *testing.T) {
	for name, tc := range map[string]struct {
		method string
		answer func(http.ResponseWriter)
	}{
		"read: a server that starts":  {http.MethodGet, answer(http.StatusForbidden, "Forbidden")},
		"write: a server that starts": {http.MethodPost, answer(http.StatusForbidden, "Forbidden")},
		"read: too many requests":     {http.MethodGet, answer(http.StatusTooManyRequests, "TooManyRequests")},
		"read: request timeout":       {http.MethodGet, answer(http.StatusRequestTimeout, "Timeout")},
		"another creates it":          {http.MethodPost, answer(http.StatusConflict, "AlreadyExists")},
		"renew: conflict":             {http.MethodPut, answer(http.StatusConflict, "Conflict")},
		"renew: not served":           {http.MethodPut, notServed},
		"renew: a server that starts": {http.MethodPut, answer(http.StatusForbidden, "Forbidden")},
		"take over: not served":       {http.MethodPut, notServed},
		"take over: conflict":         {http.MethodPut, answer(http.StatusConflict, "Conflict")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := inMemory(t)
				handle := leases(t, client)
				if strings.HasPrefix(name, "take over") {
					server.hold("op", "")
				}
				refused := false
				server.override = func(w http.ResponseWriter, r *http.Request) bool {
					if refused || r.Method != tc.method {
						return false
					}
					refused = true
					tc.answer(w)
					return true
				}
				require.NoError(t, controller.Lead(t.Context(), handle, "op", as("one"), func(ctx context.Context, _ int64) error {
					time.Sleep(time.Minute)
					return ctx.Err()
				}))
				assert.True(t, refused)
			})
		})
	}
}

// TestLead_StandsThroughRefusedReads refuses a candidate that was answered before for a minute.
func TestLead_StandsThroughRefusedReads(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"forbidden": answer(http.StatusForbidden, "Forbidden"), "not served": notServed,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := inMemory(t)
				handle := leases(t, client)
				server.hold("op", "zero")
				var refuses atomic.Bool
				server.override = func(w http.ResponseWriter, _ *http.Request) bool {
					if refuses.Load() {
						answer(w)
					}
					return refuses.Load()
				}
				time.AfterFunc(10*time.Second, func() { refuses.Store(true) })
				time.AfterFunc(70*time.Second, func() { refuses.Store(false) })
				time.AfterFunc(80*time.Second, func() {
					server.change("/leases/op", func(o map[string]any) { o["spec"].(map[string]any)["holderIdentity"] = "" })
				})
				began := time.Now()
				require.NoError(t, controller.Lead(t.Context(), handle, "op", as("one"), func(context.Context, int64) error { return nil }))
				assert.GreaterOrEqual(t, time.Since(began), 80*time.Second)
			})
		})
	}
}

func TestAServerThatStartsMayForbidForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := inMemory(t)
		var forbids atomic.Bool
		server.override = func(w http.ResponseWriter, _ *http.Request) bool {
			if forbids.Load() {
				refuse(w, http.StatusForbidden, "Forbidden")
			}
			return forbids.Load()
		}
		handle := leases(t, client)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { assert.NoError(t, controller.Lead(ctx, handle, "op", as("one"), until)) })
		time.Sleep(time.Second)
		all.Go(func() {
			assert.NoError(t, controller.Lead(t.Context(), leases(t, client), "op", as("two"), func(context.Context, int64) error { return nil }))
		})
		time.Sleep(time.Minute)
		forbids.Store(true)
		time.Sleep(3 * time.Second) // a renewal's pauses before and behind it leave less than 10s
		forbids.Store(false)
		time.Sleep(6 * time.Second)
		stop()
		all.Wait()
	})
}

func TestDurationsThatCannotBeSafeAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := inMemory(t)
		handle := leases(t, client)
		server.seen()
		for _, opts := range []controller.LeadOptions{
			{LeaseDuration: 10 * time.Second},
			{RenewDeadline: 20 * time.Second},
			{RetryPeriod: 7 * time.Second},
		} {
			err := controller.Lead(t.Context(), handle, "op", &opts, until)
			assert.ErrorContains(t, err, "must be more than the renew deadline")
		}
		assert.Empty(t, server.seen())
		assert.NoError(t, controller.Lead(t.Context(), handle, "op", &controller.LeadOptions{
			LeaseDuration: 10500 * time.Millisecond, RenewDeadline: 10200 * time.Millisecond,
		}, func(context.Context, int64) error {
			assert.EqualValues(t, 11, spec(t, server)["leaseDurationSeconds"], "others may wait longer, never shorter")
			assert.NotEmpty(t, spec(t, server)["holderIdentity"])
			return nil
		}))
	})
}

// TestNoTwoLeadAtOnceWhateverFails lets candidates stand against each other while requests and answers get lost and
// late, processes die and the Lease is written by others; the seed of a failure replays it.
func TestNoTwoLeadAtOnceWhateverFails(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { storm(t, seed) })
		})
	}
}

func storm(t *testing.T, seed uint64) {
	_, server := inMemory(t)
	ctx, stop := context.WithTimeout(t.Context(), 40*time.Minute)
	defer stop()
	var all sync.WaitGroup
	var mu sync.Mutex
	leading, terms, token := "", 0, int64(-1)
	for n := range 5 {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		var turn sync.Mutex
		chance := func(in int) int { turn.Lock(); defer turn.Unlock(); return random.IntN(in) }
		name := fmt.Sprint("candidate-", n)
		away := time.Now()
		client := server.connect(t, func(r *http.Request) error {
			if strings.Contains(r.URL.Path, "/leases/op") || r.Method == http.MethodPost {
				switch chance(60) {
				case 0:
					turn.Lock()
					away = time.Now().Add(time.Duration(random.IntN(40)) * time.Second)
					turn.Unlock()
				case 1, 2:
					return errors.New("connection reset")
				case 3, 4:
					server.answer(new(discarded), r)
					return errors.New("connection reset")
				case 5, 6, 7:
					select {
					case <-time.After(time.Duration(chance(15)) * time.Second):
					case <-r.Context().Done():
						if chance(2) == 0 {
							server.answer(new(discarded), r) // it is on its way all the same
						}
						return r.Context().Err()
					}
				}
			}
			turn.Lock()
			defer turn.Unlock()
			if time.Now().Before(away) {
				return errors.New("no route to host")
			}
			return nil
		})
		handle := leases(t, server.connect(t, func(*http.Request) error { return nil }))
		handle = through(t, client, handle)
		all.Go(func() {
			for ctx.Err() == nil {
				_ = controller.Lead(ctx, handle, "op", as(name), func(ctx context.Context, mine int64) error {
					mu.Lock()
					assert.Empty(t, leading, "%s leads beside it", name)
					assert.Greater(t, mine, token, "a later leader has a higher token")
					leading, token = name, mine
					terms++
					mu.Unlock()
					select {
					case <-ctx.Done():
						time.Sleep(time.Duration(chance(5000)) * time.Millisecond) // within what is left of the lease's duration
					case <-time.After(time.Duration(chance(300)) * time.Second):
					}
					mu.Lock()
					leading = ""
					mu.Unlock()
					return nil
				})
				_ = sleep(ctx, time.Duration(chance(20))*time.Second)
			}
		})
	}
	all.Wait()
	assert.Greater(t, terms, 5)
}

// through waits until a client that may fail knows the same resource.
func through(t *testing.T, client *dynamic.Client, like *dynamic.Resource) *dynamic.Resource {
	t.Helper()
	for {
		found, err := client.Kind(t.Context(), like.Mapping().GVK)
		if err == nil {
			return found.In("shop")
		}
		time.Sleep(time.Second)
	}
}

func sleep(ctx context.Context, wait time.Duration) error {
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
