package dynamic_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	wholeStart = "resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true"
	noStart    = 422 // of a server that cannot begin a watch with what there is
)

// interruptions are collected while a test follows.
type interruptions []dynamic.Interruption

func (i *interruptions) options() *dynamic.FollowOptions {
	return &dynamic.FollowOptions{Interrupted: func(one dynamic.Interruption) { *i = append(*i, one) }}
}

// followFor is follow for as long as the bubble's clock needs.
func followFor(t *testing.T, r *dynamic.Resource, opts *dynamic.FollowOptions, want int, hear func(dynamic.Change[unstructured.Object])) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
	defer cancel()
	var got []string
	for change, err := range r.Follow(ctx, opts) {
		require.NoError(t, err, "after %v", got)
		if hear != nil {
			hear(change)
		}
		if got = append(got, told(change)); len(got) == want {
			break
		}
	}
	return got
}

func TestFollow_NotServedAndServedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := refuses(404, "NotFound")
		gone.lasts = time.Minute
		pods, _ := inBubble(t, says(frame("ADDED", podOf("a", "u1", "1"))+allTold("4")), gone,
			answer{body: frame("ADDED", podOf("a", "u2", "8")) + allTold("9"), stays: true})
		began := time.Now()
		got := followFor(t, pods, nil, 8, func(change dynamic.Change[unstructured.Object]) {
			if change.Type == dynamic.NotServed {
				assert.GreaterOrEqual(t, time.Since(began), 5*time.Second)
			}
		})
		assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "NOTSERVED", "STARTED", "DELETED a u1 1 unseen", "ADDED a u2 8", "SYNCED"}, got)
	})
}

func TestFollow_NotServedIsEmittedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := answer{status: 404, body: "404 page not found", lasts: time.Minute}
		pods, _ := inBubble(t, says(frame("ADDED", podOf("a", "u1", "1"))+allTold("4")), gone, refuses(503, "ServiceUnavailable"), gone,
			refuses(403, "Forbidden"), gone, answer{body: frame("ADDED", podOf("a", "u1", "1")) + allTold("9"), then: frame("MODIFIED", podOf("a", "u1", "10")), after: time.Second})
		assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "NOTSERVED", "STARTED", "SYNCED", "MODIFIED a u1 10"}, followFor(t, pods, nil, 7, nil))
	})
}

func TestAServerThatDoesNotKnowTheResourceForAMomentLosesNothing(t *testing.T) {
	for name, answers := range map[string][]answer{
		"while it starts":              {{status: 404, body: statusOf("404", "NotFound", ""), lasts: 4 * time.Second}},
		"before and after it was away": {{status: 404, body: statusOf("404", "NotFound", ""), lasts: 4 * time.Second}, refuses(503, "ServiceUnavailable"), {status: 404, body: statusOf("404", "NotFound", ""), lasts: time.Second}},
		"each time that streams go on": {refuses(404, "NotFound"), {then: bookmark("5"), after: 4 * time.Minute}, refuses(404, "NotFound")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				script := append([]answer{says(frame("ADDED", podOf("a", "u1", "1")) + allTold("4"))}, answers...)
				pods, _ := inBubble(t, append(script, answer{body: frame("MODIFIED", podOf("a", "u1", "7")), stays: true})...)
				assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "MODIFIED a u1 7"}, followFor(t, pods, nil, 4, nil))
			})
		})
	}
}

func TestASilentServerIsAskedAgain(t *testing.T) {
	a, b := podOf("a", "u1", "1"), podOf("b", "u2", "2")
	page := strings.Replace(podList("3", a), `"3"`, `"3","continue":"more"`, 1)
	cutList, _, _ := strings.Cut(podList("3", a, b), `,{"kind":"Pod"`)
	all := []string{"STARTED", "ADDED a u1 1", "ADDED b u2 2", "SYNCED"}
	for name, tc := range map[string]struct {
		answers []answer
		asked   []string
	}{
		"it never answers the list": {
			[]answer{{status: noStart}, {mute: true}, says(podList("3", a, b))},
			[]string{wholeStart, "", ""},
		},
		"it stops in the middle of a list": {
			[]answer{{status: noStart}, {body: cutList, stays: true}, says(podList("3", a, b))},
			[]string{wholeStart, "", ""},
		},
		"it never answers a list's second page": {
			[]answer{{status: noStart}, says(page), {mute: true}, says(page), says(podList("3", b))},
			[]string{wholeStart, "", "continue=more", "", "continue=more"},
		},
		"it never answers a watch that begins with what there is": {
			[]answer{{mute: true}, says(frame("ADDED", a) + frame("ADDED", b) + allTold("3"))},
			[]string{wholeStart, wholeStart},
		},
		"it stops in the middle of what there is, twice: then a list does it": {
			[]answer{{body: frame("ADDED", a), stays: true}, {body: frame("ADDED", a), stays: true}, says(podList("3", a, b))},
			[]string{wholeStart, wholeStart, ""},
		},
		"it tells for ever how far it is, but not that all was told": {
			[]answer{{body: frame("ADDED", a), then: bookmark("2"), after: time.Minute}, {then: bookmark("2"), after: time.Minute}, says(podList("3", a, b))},
			[]string{wholeStart, wholeStart, ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, server := inBubble(t, tc.answers...)
				var broken interruptions
				assert.Equal(t, all, followFor(t, pods, broken.options(), len(all), nil))
				assert.Equal(t, tc.asked, beginnings(t, server))
				require.NotEmpty(t, broken)
				for _, one := range broken {
					require.ErrorIs(t, one.Err, os.ErrDeadlineExceeded)
					require.NotErrorIs(t, one.Err, context.Canceled)
					assert.True(t, one.Relist)
					assert.EqualError(t, one.Err, "follow pods: GET http://bubble: the server has sent nothing for 2m0s: i/o timeout")
				}
			})
		})
	}
}

func TestALoopThatTakesItsTimeIsNoSilence(t *testing.T) {
	a, b := podOf("a", "u1", "1"), podOf("b", "u2", "2")
	for name, answers := range map[string][]answer{
		"list":  {{status: noStart}, says(podList("3", a, b)), {stays: true}},
		"watch": {{body: frame("ADDED", a) + frame("ADDED", b) + allTold("3"), stays: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, _ := inBubble(t, answers...)
				var broken interruptions
				followFor(t, pods, broken.options(), 4, func(dynamic.Change[unstructured.Object]) { time.Sleep(time.Minute) })
				assert.Empty(t, broken)
			})
		})
	}
}

func TestNothingHasToChangeForMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, _ := inBubble(t, says(allTold("3")), answer{then: frame("ADDED", podOf("a", "u1", "5")), after: 5 * time.Minute})
		var broken interruptions
		assert.Equal(t, []string{"STARTED", "SYNCED", "ADDED a u1 5"}, followFor(t, pods, broken.options(), 3, nil))
		assert.Len(t, broken, 1, "the first stream was closed by the server")
	})
}

func TestWhatIsNoEventIsSteppedOverByReadingAll(t *testing.T) {
	a1, a2 := podOf("a", "u1", "1"), podOf("a", "u1", "6")
	for name, poison := range map[string]string{
		"no JSON":                  "<html>\n",
		"no event":                 `{"kind":"Pod"}` + "\n",
		"an event of another type": frame("EATEN", a2),
		"an object that is none":   frame("MODIFIED", `"a"`),
		"an error that is none":    frame("ERROR", `{"kind":"Pod"}`),
		"an error of the server's": frame("ERROR", statusOf("500", "InternalError", "")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, server := inBubble(t, says(frame("ADDED", a1)+allTold("4")),
					says(poison), refuses(503, "ServiceUnavailable"), answer{body: poison, stays: true}, says(poison),
					answer{body: frame("ADDED", a2) + allTold("7"), stays: true})
				var broken interruptions
				assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "MODIFIED a u1 6"}, followFor(t, pods, broken.options(), 4, nil))
				goOn := "resourceVersion=4&watch=true"
				assert.Equal(t, []string{wholeStart, goOn, goOn, goOn, goOn, wholeStart}, beginnings(t, server))
				require.Len(t, broken, 5)
				for i, one := range broken[1:] {
					require.Error(t, one.Err)
					assert.Equal(t, i == 3, one.Relist)
				}
			})
		})
	}
}

func TestAStreamThatIsCutOrComesOnIsNotReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var script []answer
		script = append(script, says(frame("ADDED", podOf("a", "u1", "1"))+allTold("4")))
		for range 5 {
			script = append(script, says(`{"type":"MODI`)) // the connection's fault
		}
		for _, version := range []string{"5", "6", "7", "8"} {
			script = append(script, says(bookmark(version)+"<html>")) // but it comes on
		}
		pods, server := inBubble(t, append(script, answer{body: frame("MODIFIED", podOf("a", "u1", "9")), stays: true})...)
		assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "MODIFIED a u1 9"}, followFor(t, pods, nil, 4, nil))
		assert.NotContains(t, beginnings(t, server)[1:], wholeStart)
	})
}

func TestAnEventWithoutAVersionIsNoPlaceToGoOnFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, server := inBubble(t, says(allTold("4")+frame("ADDED", podOf("a", "u1", ""))), answer{body: frame("ADDED", podOf("b", "u2", "5")), stays: true})
		assert.Equal(t, []string{"STARTED", "SYNCED", "ADDED a u1 ", "ADDED b u2 5"}, followFor(t, pods, nil, 4, nil))
		assert.Equal(t, []string{wholeStart, "resourceVersion=4&watch=true"}, beginnings(t, server))
	})
}

func TestAServerWhoseListsHaveNoVersionIsWatchedWithoutOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, server := inBubble(t, answer{status: noStart}, says(podList("", podOf("a", "u1", "1"))),
			answer{body: frame("ADDED", podOf("a", "u1", "1")), then: frame("ADDED", podOf("b", "u2", "5")), after: 4 * time.Minute})
		assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "ADDED b u2 5"}, followFor(t, pods, nil, 4, nil))
		assert.Equal(t, []string{wholeStart, "", "watch=true"}, beginnings(t, server))
	})
}

func TestAPanicInAHookIsTheCallersAndLeavesNothingOpen(t *testing.T) {
	a, b := podOf("a", "u1", "1"), podOf("b", "u2", "2")
	for name, opts := range map[string]dynamic.FollowOptions{
		"Interrupted": {Interrupted: func(dynamic.Interruption) { panic("out of order") }},
		"Progress":    {Progress: func(string) { panic("out of order") }},
	} {
		t.Run(name, func(t *testing.T) {
			pods, _ := exchanging(t, answer{status: noStart}, answer{body: podList("3", a, b)}, answer{body: "<html>", stays: true})
			assert.PanicsWithValue(t, "out of order", func() { follow(t, pods, &opts, 100) })
		})
	}
}
