package leaderelection_test

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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller/leaderelection"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/internal/testing/scripted"
)

func as(identity string) *leaderelection.Options { return &leaderelection.Options{Identity: identity} }

// leadUntilDone leads until ctx ends.
func leadUntilDone(ctx context.Context, _ int64) error {
	<-ctx.Done()
	return nil
}

// spec returns the spec of the Lease "op".
func spec(t testing.TB, server *controllertest.Server) map[string]any {
	t.Helper()
	all := server.Objects("/leases/op")
	require.Len(t, all, 1)
	found, _ := all[0]["spec"].(map[string]any)
	return found
}

// assertNow checks a time of the spec, which other clients than this one may read.
func assertNow(t *testing.T, field any) {
	t.Helper()
	text, _ := field.(string)
	written, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	assert.LessOrEqual(t, time.Since(written), time.Second)
}

func TestRun_TakesOverReleasedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := controllertest.New(t)
		handle := controllertest.Leases(t, client)
		first, stop := context.WithCancel(t.Context())
		var ended time.Time
		var leaders []string
		var all sync.WaitGroup
		all.Go(func() {
			assert.NoError(t, leaderelection.Run(first, handle, "op", as("one"), func(ctx context.Context, token int64) error {
				assert.EqualValues(t, 0, token)
				<-ctx.Done()
				ended = time.Now()
				return nil
			}))
		})
		time.Sleep(time.Second)
		created := spec(t, server)
		assert.Equal(t, "one", created["holderIdentity"])
		assert.EqualValues(t, 15, created["leaseDurationSeconds"])
		for _, field := range []string{"acquireTime", "renewTime"} {
			assertNow(t, created[field])
		}
		second, stopSecond := context.WithCancel(t.Context())
		all.Go(func() {
			opts := as("two")
			opts.OnNewLeader = func(identity string) { leaders = append(leaders, identity) }
			assert.NoError(t, leaderelection.Run(second, handle, "op", opts, func(_ context.Context, token int64) error {
				assert.EqualValues(t, 1, token)
				assert.Equal(t, "two", spec(t, server)["holderIdentity"])
				assert.EqualValues(t, 15, spec(t, server)["leaseDurationSeconds"])
				assert.Less(t, time.Since(ended), 3*time.Second+time.Millisecond)
				return nil
			}))
			stopSecond()
		})
		time.Sleep(time.Hour)
		assert.NoError(t, second.Err(), "the first renews")
		stop()
		all.Wait()
		assert.Equal(t, []string{"one", "two"}, leaders)
		released := spec(t, server)
		assert.Empty(t, released["holderIdentity"])
		assert.EqualValues(t, 1, released["leaseTransitions"])
		for _, field := range []string{"acquireTime", "renewTime"} {
			assertNow(t, released[field])
		}
	})
}

func TestRun_TakesOverExpiredLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := controllertest.New(t)
		var dead atomic.Bool
		dying := server.Connect(t, func(*http.Request) error {
			if dead.Load() {
				return errors.New("no route to host")
			}
			return nil
		})
		healthy := server.Connect(t, func(*http.Request) error { return nil })
		var all sync.WaitGroup
		var diedAt, endedAt, tookOverAt time.Time
		var lost error
		all.Go(func() {
			lost = leaderelection.Run(t.Context(), controllertest.Leases(t, dying), "op", as("one"), func(ctx context.Context, _ int64) error {
				time.Sleep(time.Minute)
				dead.Store(true)
				diedAt = time.Now()
				<-ctx.Done()
				endedAt = time.Now()
				assert.ErrorIs(t, context.Cause(ctx), leaderelection.ErrLeaseLost)
				return ctx.Err()
			})
		})
		time.Sleep(time.Second)
		all.Go(func() {
			assert.NoError(t, leaderelection.Run(t.Context(), controllertest.Leases(t, healthy), "op", as("two"), func(_ context.Context, token int64) error {
				tookOverAt = time.Now()
				assert.EqualValues(t, 1, token)
				return nil
			}))
		})
		all.Wait()
		require.ErrorIs(t, lost, leaderelection.ErrLeaseLost)
		assert.ErrorContains(t, lost, `leader election leases.coordination.k8s.io "op": lease lost: not renewed within 10s: `)
		assert.ErrorContains(t, lost, "no route to host")
		assert.LessOrEqual(t, endedAt.Sub(diedAt), 10*time.Second)
		assert.GreaterOrEqual(t, endedAt.Sub(diedAt), 7*time.Second)
		assert.GreaterOrEqual(t, tookOverAt.Sub(endedAt), 5*time.Second, "what the leader has to stop")
		assert.LessOrEqual(t, tookOverAt.Sub(diedAt), 21*time.Second)
	})
}

func TestRun_HangingRequestsEndLeadInTime(t *testing.T) {
	for _, after := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			client, server := controllertest.New(t)
			var hangs atomic.Bool
			server.Fault = func(*http.Request) error {
				if hangs.Load() {
					time.Sleep(time.Hour) // and does not heed its context
				}
				return nil
			}
			err := leaderelection.Run(t.Context(), controllertest.Leases(t, client), "op", as("one"), func(ctx context.Context, _ int64) error {
				time.Sleep(after)
				hangs.Store(true)
				hungAt := time.Now()
				<-ctx.Done()
				assert.LessOrEqual(t, time.Since(hungAt), 10*time.Second)
				return nil
			})
			assert.ErrorIs(t, err, leaderelection.ErrLeaseLost)
		})
	}
}

// TestRun_SurvivesHangingRenewal loses a renewal on the way. The server responds to all other requests.
func TestRun_SurvivesHangingRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := controllertest.New(t)
		var leads, hung atomic.Bool
		client := server.Connect(t, func(r *http.Request) error {
			if r.Method != http.MethodPut || !leads.Load() || hung.Swap(true) {
				return nil
			}
			<-r.Context().Done()
			return r.Context().Err()
		})
		err := leaderelection.Run(t.Context(), controllertest.Leases(t, client), "op", as("one"), func(ctx context.Context, _ int64) error {
			leads.Store(true)
			time.Sleep(time.Minute)
			return context.Cause(ctx)
		})
		require.NoError(t, err)
		assert.True(t, hung.Load())
	})
}

func TestRun_LosesTakenLease(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(spec map[string]any)
		want   string
	}{
		"by another":           {func(spec map[string]any) { spec["holderIdentity"] = "two" }, `lease lost: held by "two"`},
		"ours, but later":      {func(spec map[string]any) { spec["leaseTransitions"] = 7 }, `lease lost: held by "one"`},
		"ours, acquired again": {func(spec map[string]any) { spec["acquireTime"] = "1999-01-01T00:00:00.000000Z" }, `lease lost: held by "one"`},
		"by clearing it":       {func(spec map[string]any) { clear(spec) }, `lease lost: held by ""`},
		"by deleting it":       {nil, `lease lost: deleted`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := controllertest.New(t)
				err := leaderelection.Run(t.Context(), controllertest.Leases(t, client), "op", as("one"), func(ctx context.Context, _ int64) error {
					time.Sleep(time.Minute)
					if tc.change == nil {
						server.Clear()
					} else {
						server.Change("/leases/op", func(object map[string]any) { tc.change(object["spec"].(map[string]any)) })
					}
					select {
					case <-ctx.Done():
					case <-time.After(3*time.Second + time.Millisecond):
						assert.Fail(t, "it leads on")
					}
					return context.Cause(ctx)
				})
				require.ErrorIs(t, err, leaderelection.ErrLeaseLost)
				assert.EqualError(t, err, `leader election leases.coordination.k8s.io "op": `+tc.want)
			})
		})
	}
}

func TestRun_KeepsChangesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := controllertest.New(t)
		assert.NoError(t, leaderelection.Run(t.Context(), controllertest.Leases(t, client), "op", as("one"), func(ctx context.Context, _ int64) error {
			for range 20 {
				server.Change("/leases/op", func(object map[string]any) {
					object["metadata"].(map[string]any)["labels"] = map[string]any{"by": "somebody"}
				})
				time.Sleep(10 * time.Second)
				assert.NoError(t, ctx.Err())
			}
			return nil
		}))
		all := server.Objects("/leases/op")
		assert.Equal(t, map[string]any{"by": "somebody"}, all[0]["metadata"].(map[string]any)["labels"], "and it stays")
	})
}

func TestRun_ReleasesLeaseThatOthersChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := controllertest.New(t)
		require.NoError(t, leaderelection.Run(t.Context(), controllertest.Leases(t, client), "op", as("one"), func(context.Context, int64) error {
			server.Change("/leases/op", func(map[string]any) {}) // since the last renewal
			return nil
		}))
		assert.Empty(t, spec(t, server)["holderIdentity"])
	})
}

func TestAfterFunc_CalledOnceUntilStopped(t *testing.T) {
	for name, tc := range map[string]struct {
		stopped, lost bool
		want          int
	}{
		"lost":              {false, true, 1},
		"released":          {false, false, 1},
		"stopped, lost":     {true, true, 0},
		"stopped, released": {true, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := controllertest.New(t)
				calls := 0
				err := leaderelection.Run(t.Context(), controllertest.Leases(t, client), "op", as("one"), func(ctx context.Context, _ int64) error {
					stop := leaderelection.AfterFunc(ctx, func(error) { calls++ })
					if tc.stopped {
						stop()
					}
					if tc.lost {
						server.Clear()
						<-ctx.Done()
					}
					return nil
				})
				assert.Equal(t, tc.lost, errors.Is(err, leaderelection.ErrLeaseLost))
				synctest.Wait()
				assert.Equal(t, tc.want, calls)
			})
		})
	}
}

func TestAfterFunc_WithoutElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			cause   error
			stopped bool
			want    int
		}{
			"lost":          {leaderelection.ErrLeaseLost, false, 1},
			"stopped, lost": {leaderelection.ErrLeaseLost, true, 0},
			"another end":   {errors.New("the process ends"), false, 0},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			calls := 0
			stop := leaderelection.AfterFunc(ctx, func(error) { calls++ })
			if tc.stopped {
				stop()
			}
			cancel(tc.cause)
			synctest.Wait()
			assert.Equal(t, tc.want, calls, name)
		}
	})
}

func TestRun_RenewsWhileLeadFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := controllertest.New(t)
		handle := controllertest.Leases(t, client)
		var all sync.WaitGroup
		var finished atomic.Bool
		ctx, stop := context.WithCancel(t.Context())
		failure := errors.New("half of it")
		all.Go(func() {
			assert.ErrorIs(t, leaderelection.Run(ctx, handle, "op", as("one"), func(ctx context.Context, _ int64) error {
				<-ctx.Done()
				assert.NotErrorIs(t, context.Cause(ctx), leaderelection.ErrLeaseLost)
				time.Sleep(10 * time.Minute)
				finished.Store(true)
				return failure
			}), failure)
		})
		time.Sleep(time.Second)
		stop()
		assert.NoError(t, leaderelection.Run(t.Context(), controllertest.Leases(t, client), "op", as("two"), func(context.Context, int64) error {
			assert.True(t, finished.Load())
			return nil
		}))
		all.Wait()
	})
}

func TestRun_LossWhileLeadFinishes(t *testing.T) {
	failure := errors.New("half of it")
	for name, tc := range map[string]struct {
		ended     error
		isFailure bool
	}{
		"failure":                   {failure, true},
		"failure and the end":       {errors.Join(context.Canceled, failure), true},
		"failure caused by the end": {fmt.Errorf("%w: %w", failure, context.Canceled), true},
		"end":                       {fmt.Errorf("work: %w", context.Canceled), false},
		"loss and the end":          {errors.Join(fmt.Errorf("%w: %w", leaderelection.ErrLeaseLost, failure), context.Canceled), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := controllertest.New(t)
				ctx, stop := context.WithCancel(t.Context())
				err := leaderelection.Run(ctx, controllertest.Leases(t, client), "op", as("one"), func(context.Context, int64) error {
					stop()
					server.Change("/leases/op", func(object map[string]any) { object["spec"].(map[string]any)["holderIdentity"] = "two" })
					time.Sleep(time.Minute)
					return tc.ended
				})
				assert.ErrorIs(t, err, leaderelection.ErrLeaseLost)
				assert.Equal(t, tc.isFailure, errors.Is(err, failure))
			})
		})
	}
}

func TestRun_CandidateEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := controllertest.New(t)
		handle := controllertest.Leases(t, client)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { assert.NoError(t, leaderelection.Run(ctx, handle, "op", as("one"), leadUntilDone)) })
		time.Sleep(time.Second)
		waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := leaderelection.Run(waiting, controllertest.Leases(t, client), "op", as("two"), func(context.Context, int64) error {
			t.Error("two lead at once")
			return nil
		})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		stop()
		all.Wait()
	})
}

func TestRun_LostResponseKeepsTerm(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := controllertest.New(t)
				began := time.Now()
				if method == http.MethodPut {
					require.NoError(t, leaderelection.Run(t.Context(), controllertest.Leases(t, client), "op", as("zero"), func(context.Context, int64) error { return nil }))
				}
				lost := false
				server.Fault = func(r *http.Request) error {
					if r.Method != method || lost {
						return nil
					}
					lost = true
					server.Discard(r)
					return errors.New("connection reset")
				}
				assert.NoError(t, leaderelection.Run(t.Context(), controllertest.Leases(t, client), "op", as("one"), func(ctx context.Context, _ int64) error {
					assert.Less(t, time.Since(began), 10*time.Second, "it knows its own term")
					time.Sleep(time.Minute)
					return ctx.Err()
				}))
			})
		})
	}
}

func TestRun_ResponseAfterRenewDeadlineIsNoTerm(t *testing.T) {
	for _, tc := range []struct {
		method string
		delay  time.Duration
	}{
		{http.MethodPost, 10 * time.Second}, {http.MethodPost, 11 * time.Second},
		{http.MethodPut, 10 * time.Second}, {http.MethodPut, 11 * time.Second},
	} {
		t.Run(fmt.Sprint(tc.method, " after ", tc.delay), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := controllertest.New(t)
				handle := controllertest.Leases(t, client)
				if tc.method == http.MethodPut {
					server.Hold("op", "")
				}
				slow := true
				server.Override = func(_ http.ResponseWriter, r *http.Request) bool {
					if slow && r.Method == tc.method {
						slow = false
						time.Sleep(tc.delay)
					}
					return false
				}
				assert.NoError(t, leaderelection.Run(t.Context(), handle, "op", as("one"), func(ctx context.Context, _ int64) error {
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

func TestRun_ReleasesLeaseAcquiredAfterContextEnd(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := controllertest.New(t)
				if method == http.MethodPut {
					server.Hold("op", "")
				}
				ctx, cancel := context.WithCancel(t.Context())
				server.Override = func(_ http.ResponseWriter, r *http.Request) bool {
					if r.Method == method {
						cancel() // while the request is under way
					}
					return false
				}
				err := leaderelection.Run(ctx, controllertest.Leases(t, client), "op", as("one"), func(context.Context, int64) error {
					t.Error("leads after the end of its context")
					return nil
				})
				require.ErrorIs(t, err, context.Canceled)
				assert.Empty(t, spec(t, server)["holderIdentity"], "other candidates need not wait")
				assert.EqualValues(t, 1, spec(t, server)["leaseDurationSeconds"])
			})
		})
	}
}

func TestRun_WaitsForEarlierProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := controllertest.New(t)
		require.Panics(t, func() {
			_ = leaderelection.Run(t.Context(), controllertest.Leases(t, client), "op", as("one"), func(context.Context, int64) error { panic("crash") })
		})
		assert.Equal(t, "one", spec(t, server)["holderIdentity"], "its work may be unfinished")
		crashed := time.Now()
		assert.NoError(t, leaderelection.Run(t.Context(), controllertest.Leases(t, client), "op", as("one"), func(_ context.Context, token int64) error {
			assert.EqualValues(t, 1, token)
			assert.GreaterOrEqual(t, time.Since(crashed), 15*time.Second)
			return nil
		}))
	})
}

// TestRun_ReturnsTerminalErrors has the server send the same response to all requests of a method.
func TestRun_ReturnsTerminalErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		method  string
		respond http.HandlerFunc
		check   func(error) bool
		after   time.Duration // at most
	}{
		"reading is forbidden":  {http.MethodGet, scripted.Status(http.StatusForbidden, "Forbidden"), apierrors.IsForbidden, 10 * time.Second},
		"creating is forbidden": {http.MethodPost, scripted.Status(http.StatusForbidden, "Forbidden"), apierrors.IsForbidden, 10 * time.Second},
		"unauthorized":          {http.MethodGet, scripted.Status(http.StatusUnauthorized, "Unauthorized"), apierrors.IsUnauthorized, 10 * time.Second},
		"in no namespace": {http.MethodPost, func(w http.ResponseWriter, _ *http.Request) {
			controllertest.RejectObject(w, http.StatusNotFound, "NotFound", "shop")
		}, apierrors.IsNotFound, 0},
		"not served":           {http.MethodGet, scripted.NotServed, apierrors.IsNotFound, 0},
		"invalid":              {http.MethodPost, scripted.Status(http.StatusUnprocessableEntity, "Invalid"), apierrors.IsInvalid, 0},
		"invalid to take over": {http.MethodPut, scripted.Status(http.StatusUnprocessableEntity, "Invalid"), apierrors.IsInvalid, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := controllertest.New(t)
				server.Override = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method != tc.method || !strings.Contains(r.URL.Path, "/leases") {
						return false
					}
					tc.respond(w, nil)
					return true
				}
				if tc.method == http.MethodPut {
					server.Hold("op", "")
				}
				handle := controllertest.Leases(t, client)
				began := time.Now()
				err := leaderelection.Run(t.Context(), handle, "op", as("one"), leadUntilDone)
				assert.True(t, tc.check(err), "%v", err)
				assert.ErrorContains(t, err, `leader election leases.coordination.k8s.io "op": `)
				assert.LessOrEqual(t, time.Since(began), tc.after)
			})
		})
	}
}

func TestRun_RejectsHandleWithoutNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := controllertest.New(t)
		err := leaderelection.Run(t.Context(), controllertest.Leases(t, client).AllNamespaces(), "op", as("one"), leadUntilDone)
		var invalid *dynamic.InvalidRequestError
		assert.ErrorAs(t, err, &invalid)
	})
}

func TestRun_RejectsMalformedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := controllertest.New(t)
		server.Hold("op", "two")
		server.Change("/leases/op", func(object map[string]any) { object["spec"].(map[string]any)["holderIdentity"] = 2 })
		err := leaderelection.Run(t.Context(), controllertest.Leases(t, client), "op", as("one"), leadUntilDone)
		assert.ErrorContains(t, err, `leader election leases.coordination.k8s.io "op": read the lease: .spec.holderIdentity: `)
	})
}

// TestRun_RetriesTransientErrors rejects one request, of a candidate without an earlier response or of a leader.
func TestRun_RetriesTransientErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		method  string
		respond http.HandlerFunc
	}{
		"read: a server that starts":  {http.MethodGet, scripted.Status(http.StatusForbidden, "Forbidden")},
		"write: a server that starts": {http.MethodPost, scripted.Status(http.StatusForbidden, "Forbidden")},
		"read: too many requests":     {http.MethodGet, scripted.Status(http.StatusTooManyRequests, "TooManyRequests")},
		"read: request timeout":       {http.MethodGet, scripted.Status(http.StatusRequestTimeout, "Timeout")},
		"another creates it":          {http.MethodPost, scripted.Status(http.StatusConflict, "AlreadyExists")},
		"renew: conflict":             {http.MethodPut, scripted.Status(http.StatusConflict, "Conflict")},
		"renew: not served":           {http.MethodPut, scripted.NotServed},
		"renew: a server that starts": {http.MethodPut, scripted.Status(http.StatusForbidden, "Forbidden")},
		"take over: not served":       {http.MethodPut, scripted.NotServed},
		"take over: conflict":         {http.MethodPut, scripted.Status(http.StatusConflict, "Conflict")},
		"take over: deleted": {http.MethodPut, func(w http.ResponseWriter, _ *http.Request) {
			controllertest.RejectObject(w, http.StatusNotFound, "NotFound", "op")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := controllertest.New(t)
				handle := controllertest.Leases(t, client)
				if strings.HasPrefix(name, "take over") {
					server.Hold("op", "")
				}
				rejected := false
				server.Override = func(w http.ResponseWriter, r *http.Request) bool {
					if rejected || r.Method != tc.method {
						return false
					}
					rejected = true
					tc.respond(w, nil)
					return true
				}
				require.NoError(t, leaderelection.Run(t.Context(), handle, "op", as("one"), func(ctx context.Context, _ int64) error {
					time.Sleep(time.Minute)
					return ctx.Err()
				}))
				assert.True(t, rejected)
			})
		})
	}
}

// TestRun_CandidateRetriesRejectedReads rejects a candidate with an earlier response for a minute.
func TestRun_CandidateRetriesRejectedReads(t *testing.T) {
	for name, respond := range map[string]http.HandlerFunc{
		"forbidden": scripted.Status(http.StatusForbidden, "Forbidden"), "not served": scripted.NotServed,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := controllertest.New(t)
				handle := controllertest.Leases(t, client)
				server.Hold("op", "zero")
				var rejects atomic.Bool
				server.Override = func(w http.ResponseWriter, _ *http.Request) bool {
					if rejects.Load() {
						respond(w, nil)
					}
					return rejects.Load()
				}
				time.AfterFunc(10*time.Second, func() { rejects.Store(true) })
				time.AfterFunc(70*time.Second, func() { rejects.Store(false) })
				time.AfterFunc(80*time.Second, func() {
					server.Change("/leases/op", func(o map[string]any) { o["spec"].(map[string]any)["holderIdentity"] = "" })
				})
				began := time.Now()
				require.NoError(t, leaderelection.Run(t.Context(), handle, "op", as("one"), func(context.Context, int64) error { return nil }))
				assert.GreaterOrEqual(t, time.Since(began), 80*time.Second)
			})
		})
	}
}

func TestRun_RetriesForbiddenOfStartingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := controllertest.New(t)
		var forbids atomic.Bool
		server.Override = func(w http.ResponseWriter, _ *http.Request) bool {
			if forbids.Load() {
				scripted.Status(http.StatusForbidden, "Forbidden")(w, nil)
			}
			return forbids.Load()
		}
		handle := controllertest.Leases(t, client)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { assert.NoError(t, leaderelection.Run(ctx, handle, "op", as("one"), leadUntilDone)) })
		time.Sleep(time.Second)
		all.Go(func() {
			assert.NoError(t, leaderelection.Run(t.Context(), controllertest.Leases(t, client), "op", as("two"), func(context.Context, int64) error { return nil }))
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

func TestRun_RejectsUnsafeDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := controllertest.New(t)
		handle := controllertest.Leases(t, client)
		server.Requests()
		for _, opts := range []leaderelection.Options{
			{LeaseDuration: 10 * time.Second},
			{RenewDeadline: 20 * time.Second},
			{RetryPeriod: 7 * time.Second},
		} {
			err := leaderelection.Run(t.Context(), handle, "op", &opts, leadUntilDone)
			assert.ErrorContains(t, err, "must be more than RenewDeadline")
		}
		assert.Empty(t, server.Requests())
		assert.NoError(t, leaderelection.Run(t.Context(), handle, "op", &leaderelection.Options{
			LeaseDuration: 10500 * time.Millisecond, RenewDeadline: 10200 * time.Millisecond,
		}, func(context.Context, int64) error {
			assert.EqualValues(t, 11, spec(t, server)["leaseDurationSeconds"], "others may wait longer, never shorter")
			assert.NotEmpty(t, spec(t, server)["holderIdentity"])
			return nil
		}))
	})
}

// TestRun_OneLeaderDespiteFaults has candidates compete while requests and responses are lost or late, processes die and
// others write the Lease. The seed of a failure repeats it.
func TestRun_OneLeaderDespiteFaults(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { injectFaults(t, seed) })
		})
	}
}

func injectFaults(t *testing.T, seed uint64) {
	_, server := controllertest.New(t)
	ctx, stop := context.WithTimeout(t.Context(), 40*time.Minute)
	defer stop()
	var all sync.WaitGroup
	var mu sync.Mutex
	leading := ""
	terms := 0
	token := int64(-1)
	for n := range 5 {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		var turn sync.Mutex
		chance := func(in int) int { turn.Lock(); defer turn.Unlock(); return random.IntN(in) }
		name := fmt.Sprint("candidate-", n)
		away := time.Now()
		client := server.Connect(t, func(r *http.Request) error {
			if strings.Contains(r.URL.Path, "/leases/op") || r.Method == http.MethodPost {
				switch chance(60) {
				case 0:
					turn.Lock()
					away = time.Now().Add(time.Duration(random.IntN(40)) * time.Second)
					turn.Unlock()
				case 1, 2:
					return errors.New("connection reset")
				case 3, 4:
					server.Discard(r)
					return errors.New("connection reset")
				case 5, 6, 7:
					select {
					case <-time.After(time.Duration(chance(15)) * time.Second):
					case <-r.Context().Done():
						if chance(2) == 0 {
							server.Discard(r) // it is on its way all the same
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
		handle := controllertest.Leases(t, server.Connect(t, func(*http.Request) error { return nil }))
		handle = resourceOf(t, client, handle)
		all.Go(func() {
			for ctx.Err() == nil {
				_ = leaderelection.Run(ctx, handle, "op", as(name), func(ctx context.Context, mine int64) error {
					mu.Lock()
					assert.Empty(t, leading, "%s leads at the same time", name)
					assert.Greater(t, mine, token, "a later leader has a higher token")
					leading = name
					token = mine
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

// resourceOf retries until a client with faults has a handle on the same resource.
func resourceOf(t *testing.T, client *dynamic.Client, like *dynamic.Resource) *dynamic.Resource {
	t.Helper()
	for {
		found, err := client.ForKind(t.Context(), like.APIResource().GVK)
		if err == nil {
			return found.Namespace("shop")
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

func TestRun_ReturnsPanicOfOnNewLeader(t *testing.T) {
	for name, panics := range map[string]string{"when it leads": "one", "while it renews": "two", "while it stands": "zero"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := controllertest.New(t)
				handle := controllertest.Leases(t, client)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				if panics == "zero" {
					go func() { _ = leaderelection.Run(ctx, handle, "op", as("zero"), leadUntilDone) }()
					time.Sleep(time.Second)
				}
				opts := as("one")
				opts.OnNewLeader = func(identity string) {
					if identity == panics {
						panic("out of order")
					}
				}
				err := leaderelection.Run(t.Context(), handle, "op", opts, func(ctx context.Context, _ int64) error {
					server.Change("/leases/op", func(o map[string]any) { o["spec"].(map[string]any)["holderIdentity"] = "two" })
					<-ctx.Done()
					return ctx.Err()
				})
				var panicked *cache.PanicError
				require.ErrorAs(t, err, &panicked)
				assert.Equal(t, "Options.OnNewLeader", panicked.Where)
				assert.Equal(t, panics == "two", errors.Is(err, leaderelection.ErrLeaseLost))
				if panics == "one" {
					assert.Empty(t, spec(t, server)["holderIdentity"], "it is released")
				}
				stop()
				synctest.Wait()
			})
		})
	}
}

func TestRun_LogsTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := controllertest.New(t)
		handle := controllertest.Leases(t, client)
		var away atomic.Bool
		server.Fault = func(*http.Request) error {
			if away.Load() {
				return errors.New("no route to host")
			}
			return nil
		}
		log, lines := controllertest.Logger()
		opts := as("one")
		opts.Logger = log
		away.Store(true)
		time.AfterFunc(time.Minute, func() { away.Store(false) })
		for range 2 {
			err := leaderelection.Run(t.Context(), handle, "op", opts, func(ctx context.Context, _ int64) error {
				time.Sleep(time.Minute)
				away.Store(true)
				<-ctx.Done()
				time.Sleep(time.Millisecond) // the loss is logged when it has ended ctx
				away.Store(false)
				server.Change("/leases/op", func(o map[string]any) { o["spec"].(map[string]any)["holderIdentity"] = "two" })
				return nil
			})
			require.ErrorIs(t, err, leaderelection.ErrLeaseLost)
		}
		require.NoError(t, leaderelection.Run(t.Context(), handle, "op", opts, func(context.Context, int64) error { return nil }))
		var messages []string
		for _, line := range lines() {
			line, err, _ := strings.Cut(strings.ReplaceAll(line, "lease=op identity=one ", ""), " error=")
			if err != "" {
				assert.Contains(t, err, "no route to host")
			}
			messages = append(messages, strings.TrimSuffix(line, " lease=op identity=one"))
		}
		term := func(token int) []string {
			return []string{
				fmt.Sprint("level=INFO msg=leading token=", token),
				`level=WARN msg="the leader lease cannot be renewed"`,
				`level=ERROR msg="the leader lease is lost"`,
				`level=INFO msg="another candidate leads" leader=two`,
			}
		}
		want := append([]string{`level=WARN msg="the leader lease cannot be acquired"`}, append(term(0), term(1)...)...)
		assert.Equal(t, append(want, "level=INFO msg=leading token=2", `level=INFO msg="the leader lease is released"`), messages)
	})
}

func TestRun_DoesNotLogExpectedFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		method string
		fail   func(w http.ResponseWriter, r *http.Request)
		times  int
		held   bool // the Lease exists
	}{
		"another creates it": {http.MethodPost, func(w http.ResponseWriter, _ *http.Request) {
			scripted.Status(http.StatusConflict, "AlreadyExists")(w, nil)
		}, 1, false},
		"another takes it over": {http.MethodPut, func(w http.ResponseWriter, _ *http.Request) {
			scripted.Status(http.StatusConflict, "Conflict")(w, nil)
		}, 1, true},
		"others change it": {http.MethodPut, func(w http.ResponseWriter, _ *http.Request) {
			scripted.Status(http.StatusConflict, "Conflict")(w, nil)
		}, 2, false},
		"lead returns while it is renewed": {http.MethodPut, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := controllertest.New(t)
				if tc.held {
					server.Hold("op", "")
				}
				failures := 0
				server.Override = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method != tc.method || failures == tc.times {
						return false
					}
					failures++
					tc.fail(w, r)
					return true
				}
				log, lines := controllertest.Logger()
				opts := as("one")
				opts.Logger = log
				require.NoError(t, leaderelection.Run(t.Context(), controllertest.Leases(t, client), "op", opts, func(context.Context, int64) error {
					time.Sleep(5 * time.Second)
					return nil
				}))
				assert.Equal(t, tc.times, failures)
				logged := lines()
				require.Len(t, logged, 2)
				assert.Contains(t, logged[0], "level=INFO msg=leading ")
				assert.Contains(t, logged[1], `level=INFO msg="the leader lease is released"`)
			})
		})
	}
}

func TestRun_ContextErrorsHaveCause(t *testing.T) {
	errCause := errors.New("the process ends")
	for name, prepare := range map[string]func(t *testing.T) *dynamic.Resource{
		"while another leads": func(t *testing.T) *dynamic.Resource {
			client, server := controllertest.New(t)
			server.Hold("op", "two")
			return controllertest.Leases(t, client)
		},
		"while a request hangs": func(t *testing.T) *dynamic.Resource {
			client, hang := controllertest.NewHanging(t)
			handle := controllertest.Leases(t, client)
			hang()
			return handle
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handle := prepare(t)
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errCause)
				defer cancel()
				log, lines := controllertest.Logger()
				opts := as("one")
				opts.Logger = log
				err := leaderelection.Run(ctx, handle, "op", opts, leadUntilDone)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.ErrorIs(t, err, errCause)
				assert.NotContains(t, fmt.Sprint(lines()), errCause.Error())
			})
		})
	}
}
