package dynamic_test

import (
	"context"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/unstructured"
)

const (
	watchListQuery = "resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true"
	noWatchList    = 422 // from a server without WatchList
)

// interruptions collects the interruptions of a Follow.
type interruptions []dynamic.Interruption

func (i *interruptions) options() *dynamic.FollowOptions {
	return &dynamic.FollowOptions{OnInterruption: func(one dynamic.Interruption) { *i = append(*i, one) }}
}

func (i *interruptions) delays() (all []time.Duration) {
	for _, one := range *i {
		all = append(all, one.Delay)
	}
	return all
}

// followFor is follow with a time-out for a synctest bubble. It calls onChange, if not nil, with each change.
func followFor(t *testing.T, r *dynamic.Resource, opts *dynamic.FollowOptions, want int, onChange func(dynamic.Change[unstructured.Object])) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
	defer cancel()
	var got []string
	for change, err := range r.Follow(ctx, opts) {
		require.NoError(t, err, "after %v", got)
		if onChange != nil {
			onChange(change)
		}
		if got = append(got, changeText(change)); len(got) == want {
			break
		}
	}
	return got
}

func TestFollow_NotServedAndServedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := refuses(404, "NotFound")
		gone.lasts = time.Minute
		pods, _ := exchanging(t, respond(scripted.Event("ADDED", podJSON("a", "u1", "1"))+initialEventsEnd("4")), gone,
			response{body: scripted.Event("ADDED", podJSON("a", "u2", "8")) + initialEventsEnd("9"), stays: true})
		began := time.Now()
		got := followFor(t, pods, nil, 8, func(change dynamic.Change[unstructured.Object]) {
			if change.Type == dynamic.NotServed {
				assert.GreaterOrEqual(t, time.Since(began), 5*time.Second)
			}
		})
		assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "NOTSERVED", "STARTED", "DELETED a u1 1 inferred", "ADDED a u2 8", "SYNCED"}, got)
	})
}

func TestFollow_NotServedIsEmittedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := response{status: 404, body: "404 page not found", lasts: time.Minute}
		pods, _ := exchanging(t, respond(scripted.Event("ADDED", podJSON("a", "u1", "1"))+initialEventsEnd("4")), gone, refuses(503, "ServiceUnavailable"), gone,
			refuses(403, "Forbidden"), gone, response{body: scripted.Event("ADDED", podJSON("a", "u1", "1")) + initialEventsEnd("9"), then: scripted.Event("MODIFIED", podJSON("a", "u1", "10")), after: time.Second})
		assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "NOTSERVED", "STARTED", "SYNCED", "MODIFIED a u1 10"}, followFor(t, pods, nil, 7, nil))
	})
}

func TestFollow_BriefNotFoundLosesNothing(t *testing.T) {
	for name, responses := range map[string][]response{
		"starting server":       {{status: 404, body: scripted.StatusJSON(404, "NotFound"), lasts: 4 * time.Second}},
		"restarting server":     {{status: 404, body: scripted.StatusJSON(404, "NotFound"), lasts: 4 * time.Second}, refuses(503, "ServiceUnavailable"), {status: 404, body: scripted.StatusJSON(404, "NotFound"), lasts: time.Second}},
		"at every reconnection": {refuses(404, "NotFound"), {then: bookmark("5"), after: 4 * time.Minute}, refuses(404, "NotFound")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				script := append([]response{respond(scripted.Event("ADDED", podJSON("a", "u1", "1")) + initialEventsEnd("4"))}, responses...)
				pods, _ := exchanging(t, append(script, response{body: scripted.Event("MODIFIED", podJSON("a", "u1", "7")), stays: true})...)
				assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "MODIFIED a u1 7"}, followFor(t, pods, nil, 4, nil))
			})
		})
	}
}

func TestFollow_RetriesAfterIdleTimeout(t *testing.T) {
	a := podJSON("a", "u1", "1")
	b := podJSON("b", "u2", "2")
	page := strings.Replace(podList("3", a), `"3"`, `"3","continue":"more"`, 1)
	cutList, _, _ := strings.Cut(podList("3", a, b), `,{"kind":"Pod"`)
	changes := []string{"STARTED", "ADDED a u1 1", "ADDED b u2 2", "SYNCED"}
	for name, tc := range map[string]struct {
		responses []response
		queries   []string
	}{
		"list without response": {
			[]response{{status: noWatchList}, {mute: true}, respond(podList("3", a, b))},
			[]string{watchListQuery, "", ""},
		},
		"list stalls": {
			[]response{{status: noWatchList}, {body: cutList, stays: true}, respond(podList("3", a, b))},
			[]string{watchListQuery, "", ""},
		},
		"second page without response": {
			[]response{{status: noWatchList}, respond(page), {mute: true}, respond(page), respond(podList("3", b))},
			[]string{watchListQuery, "", "continue=more", "", "continue=more"},
		},
		"WatchList without response": {
			[]response{{mute: true}, respond(scripted.Event("ADDED", a) + scripted.Event("ADDED", b) + initialEventsEnd("3"))},
			[]string{watchListQuery, watchListQuery},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, server := exchanging(t, tc.responses...)
				var broken interruptions
				assert.Equal(t, changes, followFor(t, pods, broken.options(), len(changes), nil))
				assert.Equal(t, tc.queries, listWatchQueries(t, server))
				require.NotEmpty(t, broken)
				for _, one := range broken {
					require.ErrorIs(t, one.Err, os.ErrDeadlineExceeded)
					require.NotErrorIs(t, one.Err, context.Canceled)
					assert.True(t, one.Relist)
					assert.EqualError(t, one.Err, "follow pods: GET http://server.test: the server has sent nothing for 2m0s: i/o timeout")
				}
			})
		})
	}
}

// TestFollow_ServerIgnoresSendInitialEvents relists every six minutes, for more than an hour.
func TestFollow_ServerIgnoresSendInitialEvents(t *testing.T) {
	a := podJSON("a", "u1", "1")
	b := podJSON("b", "u2", "2")
	expires := response{then: scripted.ExpiredEvent(), after: 6*time.Minute - time.Millisecond} // the client ends a watch of 300 seconds after 6 minutes
	for name, ignored := range map[string]response{
		"no object":                   {stays: true},
		"silence after the objects":   {body: scripted.Event("ADDED", a) + scripted.Event("ADDED", b), stays: true},
		"bookmarks without the end":   {body: scripted.Event("ADDED", a), then: bookmark("2"), after: 3 * time.Second},
		"changes of objects for ever": {body: scripted.Event("ADDED", a) + scripted.Event("ADDED", b), then: scripted.Event("MODIFIED", b), after: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				list := respond(podList("3", a, b))
				resume := "resourceVersion=3&watch=true"
				responses := []response{ignored, list, expires, ignored}
				want := []string{watchListQuery, "", resume, watchListQuery}
				for range 10 {
					responses = append(responses, list, expires)
					want = append(want, "", resume)
				}
				pods, server := exchanging(t, append(responses, ignored, list, response{stays: true})...)
				ctx, cancel := context.WithTimeout(t.Context(), 70*time.Minute)
				defer cancel()
				var broken interruptions
				began := time.Now()
				var synced time.Duration
				for change, err := range pods.Follow(ctx, broken.options()) {
					if err != nil {
						break // ctx has ended
					}
					if change.Type == dynamic.Synced {
						synced = time.Since(began)
					}
				}
				assert.GreaterOrEqual(t, synced, 10*time.Second)
				assert.Less(t, synced, 14*time.Second)
				assert.Equal(t, append(want, watchListQuery, "", resume), listWatchQueries(t, server))
				require.ErrorIs(t, broken[0].Err, os.ErrDeadlineExceeded)
				assert.EqualError(t, broken[0].Err,
					"follow pods: GET http://server.test: the server has not ended the initial events for 10s (it may ignore sendInitialEvents): i/o timeout")
			})
		})
	}
}

func TestFollow_DelaysAfterErrors(t *testing.T) {
	overloaded := strings.Replace(scripted.StatusJSON(503, "ServiceUnavailable"), "}", `,"details":{"retryAfterSeconds":40}}`, 1)
	for name, tc := range map[string]struct {
		end  response // of the stream after the initial events
		want time.Duration
	}{
		"a stream that lasted breaks":  {response{then: scripted.Event("ERROR", scripted.StatusJSON(500, "InternalError")), after: 5 * time.Second}, 100 * time.Millisecond},
		"the server asks for patience": {response{status: 503, body: overloaded}, 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, _ := exchanging(t, respond(initialEventsEnd("4")), tc.end, response{body: scripted.Event("ADDED", podJSON("a", "u1", "5")), stays: true})
				var broken interruptions
				assert.Equal(t, []string{"STARTED", "SYNCED", "ADDED a u1 5"}, followFor(t, pods, broken.options(), 3, nil))
				require.Len(t, broken, 2)
				assert.GreaterOrEqual(t, broken[1].Delay, tc.want)
			})
		})
	}
}

func TestFollow_DelaysGrowUntilStreamLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unavailable := refuses(503, "ServiceUnavailable")
		pods, _ := exchanging(t, respond(initialEventsEnd("4")), unavailable, unavailable, unavailable,
			response{then: scripted.Event("ERROR", scripted.StatusJSON(500, "InternalError")), after: 10 * time.Second}, unavailable,
			response{body: scripted.Event("ADDED", podJSON("a", "u1", "5")), stays: true})
		var broken interruptions
		assert.Equal(t, []string{"STARTED", "SYNCED", "ADDED a u1 5"}, followFor(t, pods, broken.options(), 3, nil))
		const ms = time.Millisecond
		assert.Equal(t, []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 100 * ms, 200 * ms}, broken.delays())
	})
}

func TestFollow_DelaysAfterDenials(t *testing.T) {
	denied := refuses(403, "Forbidden")
	whole := response{body: initialEventsEnd("4") + scripted.Event("ADDED", podJSON("a", "u1", "5")), stays: true}
	for name, tc := range map[string]struct {
		before []response
		lasts  time.Duration
		want   time.Duration
	}{
		"before Synced": {nil, 1900 * time.Millisecond, 500 * time.Millisecond},
		"after Synced":  {[]response{respond(initialEventsEnd("4"))}, time.Minute, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				denied.lasts = tc.lasts
				pods, _ := exchanging(t, append(tc.before, denied, whole)...)
				var broken interruptions
				assert.Equal(t, []string{"STARTED", "SYNCED", "ADDED a u1 5"}, followFor(t, pods, broken.options(), 3, nil))
				assert.Equal(t, tc.want, slices.Max(broken.delays()))
			})
		})
	}
}

func TestFollow_ContextErrorAfterSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, _ := exchanging(t, respond(initialEventsEnd("4")), refuses(503, "ServiceUnavailable"), response{stays: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.EqualError(t, drain(pods.Follow(ctx, nil)), "follow pods: context deadline exceeded")
	})
}

func TestFollow_SlowConsumerIsNotIdleServer(t *testing.T) {
	a := podJSON("a", "u1", "1")
	b := podJSON("b", "u2", "2")
	for name, responses := range map[string][]response{
		"list":  {{status: noWatchList}, respond(podList("3", a, b)), {stays: true}},
		"watch": {{body: scripted.Event("ADDED", a) + scripted.Event("ADDED", b) + initialEventsEnd("3"), stays: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, _ := exchanging(t, responses...)
				var broken interruptions
				followFor(t, pods, broken.options(), 4, func(dynamic.Change[unstructured.Object]) { time.Sleep(time.Minute) })
				assert.Empty(t, broken)
			})
		})
	}
}

func TestFollow_QuietWatchIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, _ := exchanging(t, respond(initialEventsEnd("3")), response{then: scripted.Event("ADDED", podJSON("a", "u1", "5")), after: 5 * time.Minute})
		var broken interruptions
		assert.Equal(t, []string{"STARTED", "SYNCED", "ADDED a u1 5"}, followFor(t, pods, broken.options(), 3, nil))
		assert.Len(t, broken, 1, "the first stream was closed by the server")
	})
}

func TestFollow_ReopensDeadStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, server := exchanging(t, response{body: initialEventsEnd("4"), stays: true}, response{body: scripted.Event("ADDED", podJSON("a", "u1", "5")), stays: true})
		began := time.Now()
		assert.Equal(t, []string{"STARTED", "SYNCED", "ADDED a u1 5"}, followFor(t, pods, nil, 3, nil))
		lasted := time.Since(began)
		request, err := url.Parse(strings.TrimPrefix(server.seen()[0], "GET "))
		require.NoError(t, err)
		assert.Equal(t, "true", request.Query().Get("allowWatchBookmarks"))
		seconds, err := strconv.Atoi(request.Query().Get("timeoutSeconds"))
		require.NoError(t, err)
		assert.GreaterOrEqual(t, seconds, 300)
		assert.Less(t, seconds, 600)
		dead := time.Duration(seconds)*time.Second + time.Minute
		assert.GreaterOrEqual(t, lasted, dead)
		assert.LessOrEqual(t, lasted, dead+time.Second)
	})
}

func TestFollow_ResumedStreamIsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, _ := exchanging(t, respond(initialEventsEnd("4")), response{body: scripted.Event("ADDED", podJSON("a", "u1", "5")), stays: true})
		var versions []string
		opts := &dynamic.FollowOptions{OnProgress: func(version string) { versions = append(versions, version) }}
		followFor(t, pods, opts, 3, nil)
		assert.Equal(t, []string{"4", "4"}, versions)
	})
}

func TestFollow_RelistsAfterDecodeFailures(t *testing.T) {
	a1 := podJSON("a", "u1", "1")
	a2 := podJSON("a", "u1", "6")
	for name, poison := range map[string]string{
		"not JSON":              "<html>\n",
		"not an event":          `{"kind":"Pod"}` + "\n",
		"unknown type":          scripted.Event("EATEN", a2),
		"object is a string":    scripted.Event("MODIFIED", `"a"`),
		"error is not a Status": scripted.Event("ERROR", `{"kind":"Pod"}`),
		"object over its limit": scripted.Event("MODIFIED", `{"kind":"Pod","a":[{}`+strings.Repeat(",{}", 10000)+`]}`),
		"server error":          scripted.Event("ERROR", scripted.StatusJSON(500, "InternalError")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, server := exchanging(t, respond(scripted.Event("ADDED", a1)+initialEventsEnd("4")),
					respond(poison), refuses(503, "ServiceUnavailable"), response{body: poison, stays: true}, respond(poison),
					response{body: scripted.Event("ADDED", a2) + initialEventsEnd("7"), stays: true})
				var broken interruptions
				assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "MODIFIED a u1 6"}, followFor(t, pods, broken.options(), 4, nil))
				resume := "resourceVersion=4&watch=true"
				assert.Equal(t, []string{watchListQuery, resume, resume, resume, resume, watchListQuery}, listWatchQueries(t, server))
				require.Len(t, broken, 5)
				for i, one := range broken[1:] {
					require.Error(t, one.Err)
					assert.Equal(t, i == 3, one.Relist)
				}
			})
		})
	}
}

func TestFollow_ResumesAfterCutOrProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var script []response
		script = append(script, respond(scripted.Event("ADDED", podJSON("a", "u1", "1"))+initialEventsEnd("4")))
		for range 5 {
			script = append(script, respond(`{"type":"MODI`)) // an error of the connection
		}
		for _, version := range []string{"5", "6", "7", "8"} {
			script = append(script, respond(bookmark(version)+"<html>")) // with progress
		}
		pods, server := exchanging(t, append(script, response{body: scripted.Event("MODIFIED", podJSON("a", "u1", "9")), stays: true})...)
		assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "MODIFIED a u1 9"}, followFor(t, pods, nil, 4, nil))
		assert.NotContains(t, listWatchQueries(t, server)[1:], watchListQuery)
	})
}

func TestFollow_EventWithoutResourceVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, server := exchanging(t, respond(initialEventsEnd("4")+scripted.Event("ADDED", podJSON("a", "u1", ""))), response{body: scripted.Event("ADDED", podJSON("b", "u2", "5")), stays: true})
		assert.Equal(t, []string{"STARTED", "SYNCED", "ADDED a u1 ", "ADDED b u2 5"}, followFor(t, pods, nil, 4, nil))
		assert.Equal(t, []string{watchListQuery, "resourceVersion=4&watch=true"}, listWatchQueries(t, server))
	})
}

func TestFollow_ListWithoutResourceVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, server := exchanging(t, response{status: noWatchList}, respond(podList("", podJSON("a", "u1", "1"))),
			response{body: scripted.Event("ADDED", podJSON("a", "u1", "1")), then: scripted.Event("ADDED", podJSON("b", "u2", "5")), after: 4 * time.Minute})
		assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "ADDED b u2 5"}, followFor(t, pods, nil, 4, nil))
		assert.Equal(t, []string{watchListQuery, "", "watch=true"}, listWatchQueries(t, server))
	})
}

func TestFollow_CallbackPanicLeavesNothingOpen(t *testing.T) {
	a := podJSON("a", "u1", "1")
	b := podJSON("b", "u2", "2")
	for name, opts := range map[string]dynamic.FollowOptions{
		"OnInterruption": {OnInterruption: func(dynamic.Interruption) { panic("in a callback") }},
		"OnProgress":     {OnProgress: func(string) { panic("in a callback") }},
	} {
		t.Run(name, func(t *testing.T) {
			pods, _ := exchanging(t, response{status: noWatchList}, response{body: podList("3", a, b)}, response{body: "<html>", stays: true})
			assert.PanicsWithValue(t, "in a callback", func() { follow(t, pods, &opts, 100) })
		})
	}
}

// TestFollow_RequestedRelist loses events, which a requested relist finds.
func TestFollow_RequestedRelist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		initial := scripted.Event("ADDED", podJSON("a", "u1", "1")) + scripted.Event("ADDED", podJSON("b", "u2", "2")) + initialEventsEnd("4")
		r, server := exchanging(t, response{body: initial, stays: true}, refuses(403, "Forbidden"),
			response{body: podList("9", podJSON("b", "u2", "7"), podJSON("c", "u3", "8"))}, response{stays: true})
		var seen interruptions
		opts := seen.options()
		relist := make(chan struct{}, 1)
		opts.Relist = relist
		got := followFor(t, r, opts, 7, func(change dynamic.Change[unstructured.Object]) {
			if change.Type == dynamic.Synced {
				relist <- struct{}{}
			}
		})
		assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "ADDED b u2 2", "SYNCED", "MODIFIED b u2 7", "ADDED c u3 8", "DELETED a u1 1 inferred"}, got)
		assert.Equal(t, []string{watchListQuery, "", ""}, listWatchQueries(t, server)[:3], "a denial does not end it")
		require.Len(t, seen, 2)
		assert.EqualError(t, seen[0].Err, "a relist was requested")
		assert.True(t, seen[0].Relist)
		assert.Zero(t, seen[0].Delay)
	})
}
