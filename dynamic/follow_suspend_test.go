package dynamic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/suspend"
	"github.com/anykind/anykind/internal/testing/memconn"
	"github.com/anykind/anykind/internal/testing/scripted"
)

// followSuspended returns the first changes of a Follow that is suspended whenever it can be, and the number of suspensions.
func followSuspended(t *testing.T, r *dynamic.Resource, want int) (got []string, suspensions int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var state suspend.State
	ctx = suspend.With(ctx, &state)
	for ; ; suspensions++ {
		var last error
		for change, err := range r.Follow(ctx, nil) {
			if last = err; err != nil {
				break
			}
			if got = append(got, changeText(change)); len(got) == want {
				return got, suspensions
			}
		}
		require.ErrorIs(t, last, suspend.Err, "after %v", got)
		require.True(t, state.IsSuspended())
		state.Wait()
	}
}

// TestFollow_SuspendedEveryByte has events in two writes, cut at each byte, and then a second watch.
func TestFollow_SuspendedEveryByte(t *testing.T) {
	initial := scripted.Event("ADDED", podJSON("a", "u1", "1")) + initialEventsEnd("4")
	first := scripted.Event("MODIFIED", podJSON("a", "u1", "5")) + bookmark("7")
	events := first + scripted.Event("ADDED", podJSON("b", "u2", "8")) + bookmark("9")
	want := []string{"STARTED", "ADDED a u1 1", "SYNCED", "MODIFIED a u1 5", "ADDED b u2 8", "DELETED a u1 11"}
	cuts := []int{len(first) - 1, len(first), len(events)}
	for cut := 0; cut < len(events); cut += memconn.Step(17) {
		cuts = append(cuts, cut)
	}
	for _, cut := range cuts {
		synctest.Test(t, func(t *testing.T) {
			server := scripted.New(resources)
			server.Handle("WATCH /api/v1/namespaces/home/pods", func(w http.ResponseWriter, _ *http.Request) {
				for _, text := range []string{initial, events[:cut], events[cut:]} {
					_, _ = io.WriteString(w, text)
					_ = http.NewResponseController(w).Flush()
					time.Sleep(time.Second)
				}
			}, scripted.Watch(scripted.Event("DELETED", podJSON("a", "u1", "11"))))
			pods := resource(t, serveClient(t, server, nil), "pods")
			got, suspensions := followSuspended(t, pods, len(want))
			require.Equal(t, want, got, "cut at %d", cut)
			wantSuspensions := 3                          // after the initial events, at the last bookmark, and in the second watch
			if cut == len(first) || cut == len(first)-1 { // before or behind the line feed
				wantSuspensions++
			}
			require.Equal(t, wantSuspensions, suspensions, "cut at %d", cut)
		})
	}
}

func TestFollow_EndOfSuspendedStream(t *testing.T) {
	errGone := errors.New("no more pods")
	for name, tc := range map[string]struct {
		end  func(w http.ResponseWriter, stop context.CancelCauseFunc)
		want string
	}{
		"ctx":    {func(_ http.ResponseWriter, stop context.CancelCauseFunc) { stop(errGone) }, "follow pods: context canceled: no more pods"},
		"closed": {func(http.ResponseWriter, context.CancelCauseFunc) {}, "<nil>"},
		"broken": {func(http.ResponseWriter, context.CancelCauseFunc) { panic(http.ErrAbortHandler) }, "unexpected EOF"},
		"error": {func(w http.ResponseWriter, _ context.CancelCauseFunc) {
			_, _ = io.WriteString(w, scripted.ExpiredEvent())
		}, "as scripted"},
		"overdue": {func(http.ResponseWriter, context.CancelCauseFunc) { time.Sleep(time.Hour) }, "the server has not ended the watch in time: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				server := scripted.New(resources)
				server.Handle("WATCH /api/v1/namespaces/home/pods", func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, initialEventsEnd("4"))
					_ = http.NewResponseController(w).Flush()
					time.Sleep(time.Second)
					tc.end(w, stop)
				})
				var state suspend.State
				ctx = suspend.With(ctx, &state)
				opts := &dynamic.FollowOptions{}
				pods := resource(t, serveClient(t, server, nil), "pods")
				require.ErrorIs(t, drain(pods.Follow(ctx, opts)), suspend.Err)
				state.Wait()
				opts.OnInterruption = func(i dynamic.Interruption) {
					assert.Contains(t, fmt.Sprint(i.Err), tc.want)
					stop(nil)
				}
				err := drain(pods.Follow(ctx, opts))
				require.ErrorIs(t, err, context.Canceled)
				require.False(t, state.IsSuspended())
				if name == "ctx" {
					assert.EqualError(t, err, tc.want)
				}
			})
		})
	}
}
