package dynamic_test

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// beginnings are the requests' parameters that say where a stream begins.
func beginnings(t *testing.T, server *exchanges) []string {
	t.Helper()
	var all []string
	for _, request := range server.seen() {
		_, text, _ := strings.Cut(request, "?")
		query, err := url.ParseQuery(text)
		require.NoError(t, err)
		for _, name := range []string{"allowWatchBookmarks", "timeoutSeconds", "limit"} {
			query.Del(name)
		}
		all = append(all, query.Encode())
	}
	return all
}

func podOf(name, uid, version string) string {
	return `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"home","name":"` + name + `","uid":"` + uid + `","resourceVersion":"` + version + `"}}`
}

func frame(kind, object string) string { return `{"type":"` + kind + `","object":` + object + "}\n" }

func bookmark(version string) string {
	return frame("BOOKMARK", `{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"`+version+`"}}`)
}

// allTold ends the objects that a stream begins with.
func allTold(version string) string {
	return frame("BOOKMARK", `{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"`+version+`","annotations":{"k8s.io/initial-events-end":"true"}}}`)
}

func statusOf(code, reason, causes string) string {
	return `{"kind":"Status","apiVersion":"v1","status":"Failure","code":` + code + `,"reason":"` + reason + `","message":"it is so","details":{"causes":[` + causes + `]}}`
}

func podList(version string, pods ...string) string {
	return `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"` + version + `"},"items":[` + strings.Join(pods, ",") + `]}`
}

func told(change dynamic.Change[unstructured.Object]) string {
	text := string(change.Type)
	if change.Object != nil {
		text += " " + change.Object.GetName() + " " + string(change.Object.GetUID()) + " " + change.Object.GetResourceVersion()
	}
	if change.FinalStateUnknown {
		text += " unseen"
	}
	return text
}

// follow collects what is told until it is as much as wanted.
func follow(t *testing.T, r *dynamic.Resource, opts *dynamic.FollowOptions, want int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got []string
	for change, err := range r.Follow(ctx, opts) {
		require.NoError(t, err, "after %v", got)
		if got = append(got, told(change)); len(got) == want {
			break
		}
	}
	return got
}

func TestFollowTellsWhatThereIsAndThenEachChangeOnce(t *testing.T) {
	const beginning = "resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true"
	a1, a2, b1, b2 := podOf("a", "u1", "1"), podOf("a", "u1", "2"), podOf("b", "u2", "3"), podOf("b", "u2", "5")
	begun := frame("ADDED", a1) + frame("ADDED", b1) + allTold("4")
	start := []string{"STARTED", "ADDED a u1 1", "ADDED b u2 3", "SYNCED"}
	again := frame("ADDED", a1) + frame("ADDED", b2) + allTold("9")
	for name, tc := range map[string]struct {
		answers []answer
		told    []string
		asked   []string
	}{
		"a stream that goes on": {
			answers: []answer{{body: begun + frame("MODIFIED", b2) + frame("DELETED", a2), stays: true}},
			told:    []string{"MODIFIED b u2 5", "DELETED a u1 2"},
			asked:   []string{beginning},
		},
		"a stream that the server closed goes on at the last bookmark, and repeats nothing": {
			answers: []answer{{body: begun + bookmark("7")}, {body: frame("MODIFIED", b1) + frame("MODIFIED", b2), stays: true}},
			told:    []string{"MODIFIED b u2 5"},
			asked:   []string{beginning, "resourceVersion=7&watch=true"},
		},
		"a stream that was cut goes on at the last event": {
			answers: []answer{{body: begun + frame("MODIFIED", b2) + `{"type":"MODI`}, {body: frame("DELETED", a2), stays: true}},
			told:    []string{"MODIFIED b u2 5", "DELETED a u1 2"},
			asked:   []string{beginning, "resourceVersion=5&watch=true"},
		},
		"410 as an answer: read all, tell what is different": {
			answers: []answer{{body: begun}, {status: 410, body: statusOf("410", "Expired", "")}, {body: again, stays: true}},
			told:    []string{"MODIFIED b u2 5"},
			asked:   []string{beginning, "resourceVersion=4&watch=true", beginning},
		},
		"410 as an event": {
			answers: []answer{{body: begun + frame("ERROR", statusOf("410", "Expired", ""))}, {body: again, stays: true}},
			told:    []string{"MODIFIED b u2 5"},
			asked:   []string{beginning, beginning},
		},
		"a resourceVersion that the server does not have yet, or any more": {
			answers: []answer{{body: begun}, {status: 504, body: statusOf("504", "Timeout", `{"reason":"ResourceVersionTooLarge"}`)}, {body: again, stays: true}},
			told:    []string{"MODIFIED b u2 5"},
			asked:   []string{beginning, "resourceVersion=4&watch=true", beginning},
		},
		"what went away unseen": {
			answers: []answer{{body: begun + frame("ERROR", statusOf("410", "Gone", ""))}, {body: frame("ADDED", b1) + allTold("9"), stays: true}},
			told:    []string{"DELETED a u1 1 unseen"},
			asked:   []string{beginning, beginning},
		},
		"another object of the same name": {
			answers: []answer{{body: begun + frame("ERROR", statusOf("410", "Gone", ""))}, {body: frame("ADDED", podOf("a", "u9", "8")), stays: true}},
			told:    []string{"DELETED a u1 1 unseen", "ADDED a u9 8"},
			asked:   []string{beginning, beginning},
		},
		"a reading of all that breaks is begun again": {
			answers: []answer{{body: begun + frame("ERROR", statusOf("410", "Gone", ""))}, {body: frame("ADDED", a1)}, {body: frame("ADDED", b1) + allTold("9"), stays: true}},
			told:    []string{"DELETED a u1 1 unseen"},
			asked:   []string{beginning, beginning, beginning},
		},
		"rights that are lost and come back": {
			answers: []answer{{body: begun}, {status: 403, body: statusOf("403", "Forbidden", "")}, {body: frame("MODIFIED", b2), stays: true}},
			told:    []string{"MODIFIED b u2 5"},
			asked:   []string{beginning, "resourceVersion=4&watch=true", "resourceVersion=4&watch=true"},
		},
		"one answer that the resource is not there": {
			answers: []answer{{body: begun}, {status: 404, body: statusOf("404", "NotFound", "")}, {body: frame("MODIFIED", b2), stays: true}},
			told:    []string{"MODIFIED b u2 5"},
			asked:   []string{beginning, "resourceVersion=4&watch=true", "resourceVersion=4&watch=true"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pods, server := exchanging(t, tc.answers...)
			got := follow(t, pods, nil, len(start)+len(tc.told))
			assert.Equal(t, append(start[:len(start):len(start)], tc.told...), got)
			assert.Equal(t, tc.asked, beginnings(t, server))
		})
	}
}

func TestFollowListsWhereTheServerCannotBeginAWatchWithWhatThereIs(t *testing.T) {
	a, b := podOf("a", "u1", "1"), podOf("b", "u2", "5")
	for _, refusal := range []answer{{status: 422, body: statusOf("422", "Invalid", "")}, {status: 400, body: statusOf("400", "BadRequest", "")}} {
		pods, server := exchanging(t, refusal,
			answer{body: strings.Replace(podList("3", a), `"3"`, `"3","continue":"more"`, 1)}, answer{body: podList("3")},
			answer{body: frame("ADDED", b) + frame("ERROR", statusOf("410", "Expired", ""))},
			answer{body: podList("9", b)}, answer{stays: true})
		assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "ADDED b u2 5", "DELETED a u1 1 unseen"},
			follow(t, pods, &dynamic.FollowOptions{LabelSelector: "x"}, 5))
		assert.Equal(t, []string{
			"labelSelector=x&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true",
			"labelSelector=x", "continue=more&labelSelector=x",
			"labelSelector=x&resourceVersion=3&watch=true", "labelSelector=x",
		}, beginnings(t, server))
	}
}

func TestFollowListsWhereTheServerNeverSaysThatAllIsTold(t *testing.T) {
	a := podOf("a", "u1", "1")
	pods, _ := exchanging(t, says(frame("ADDED", a)), says(frame("ADDED", a)), says(podList("3", a)),
		answer{body: frame("MODIFIED", podOf("a", "u1", "5")), stays: true})
	assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "MODIFIED a u1 5"}, follow(t, pods, nil, 4))
}

func TestAnswersThatTheResourceIsNotThereCountOnlyInARow(t *testing.T) {
	gone := refuses(404, "NotFound")
	pods, _ := exchanging(t, says(frame("ADDED", podOf("a", "u1", "1"))+allTold("4")),
		gone, says(""), gone, refuses(503, "ServiceUnavailable"), gone, answer{body: frame("MODIFIED", podOf("a", "u1", "5")), stays: true})
	assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "MODIFIED a u1 5"}, follow(t, pods, nil, 4))
}

func TestFollow_EndsWithTerminalError(t *testing.T) {
	for code, reason := range map[int]string{401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed"} {
		synctest.Test(t, func(t *testing.T) {
			pods, _ := inBubble(t, answer{status: code, body: statusOf(strconv.Itoa(code), reason, ""), lasts: time.Minute})
			began := time.Now()
			var got []error
			for _, err := range pods.Follow(t.Context(), nil) {
				got = append(got, err)
			}
			require.Len(t, got, 1, reason)
			assert.EqualValues(t, reason, apierrors.ReasonForError(got[0]))
			if retry.IsDenied(got[0]) {
				assert.GreaterOrEqual(t, time.Since(began), 2*time.Second, "it may be a starting server")
			}
			assert.LessOrEqual(t, time.Since(began), 3*time.Second)
		})
	}
	pods, server := exchanging(t)
	for _, err := range pods.Sub("status").Follow(t.Context(), nil) {
		var refused *dynamic.RefusedError
		require.ErrorAs(t, err, &refused)
	}
	assert.Empty(t, beginnings(t, server))
}

func TestEveryInterruptionIsCounted(t *testing.T) {
	pods, _ := exchanging(t, answer{status: 500, body: statusOf("500", "InternalError", "")}, answer{body: allTold("4")},
		answer{status: 410, body: statusOf("410", "Expired", "")}, answer{body: frame("ADDED", podOf("a", "u1", "1")) + allTold("5"), stays: true})
	var seen []dynamic.Interruption
	follow(t, pods, &dynamic.FollowOptions{Interrupted: func(i dynamic.Interruption) { seen = append(seen, i) }}, 3)
	require.Len(t, seen, 3)
	assert.True(t, apierrors.IsInternalError(seen[0].Err))
	assert.True(t, seen[0].Relist)
	assert.NoError(t, seen[1].Err)
	assert.False(t, seen[1].Relist)
	assert.True(t, apierrors.IsResourceExpired(seen[2].Err))
	assert.True(t, seen[2].Relist)
	for i, interruption := range seen {
		assert.Equal(t, i+1, interruption.Count)
		assert.Positive(t, interruption.Wait)
	}
}

func TestFollowEndsWithItsContextAndSaysWhatKeptItFromBeginning(t *testing.T) {
	pods, _ := exchanging(t, answer{status: 500, body: statusOf("500", "InternalError", "")})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errs []error
	for _, err := range pods.Follow(ctx, &dynamic.FollowOptions{Interrupted: func(dynamic.Interruption) { cancel() }}) {
		errs = append(errs, err)
	}
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], context.Canceled)
	assert.True(t, apierrors.IsInternalError(errs[0]))
	assert.ErrorContains(t, errs[0], "follow pods: context canceled; it could not begin: it is so")
}

func TestATypedHandleFollowsInItsOwnType(t *testing.T) {
	type named struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
	}
	fits := `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"home","name":"a","uid":"u1","resourceVersion":"1"},"spec":{"nodeName":"n1"}}`
	pods, _ := exchanging(t, says(frame("ADDED", fits)+allTold("2")+frame("ERROR", statusOf("410", "Expired", ""))),
		says(frame("ADDED", podOf("b", "u2", "3"))+allTold("4")), says(frame("ADDED", strings.Replace(fits, `"n1"`, `[]`, 1))))
	var got []string
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for change, err := range dynamic.As[named](pods).Follow(ctx, nil) {
		if err != nil {
			require.ErrorContains(t, err, `read pods "home/a" as dynamic_test.named: .spec.nodeName: is []any, not string`)
			break
		}
		text := string(change.Type)
		if change.Object != nil {
			text += " " + change.Object.Name + " on " + change.Object.Spec.NodeName
		}
		got = append(got, text)
	}
	assert.Equal(t, []string{"STARTED", "ADDED a on n1", "SYNCED", "ADDED b on ", "DELETED a on "}, got)
}

func TestAFollowOfMetadataTellsNothingElseOfWhatWentUnseen(t *testing.T) {
	pods, _ := exchanging(t, says(frame("ADDED", podOf("a", "u1", "1"))+allTold("2")+frame("ERROR", statusOf("410", "Expired", ""))), says(allTold("4")))
	var kinds []string
	for change, err := range pods.Metadata().Follow(t.Context(), nil) {
		require.NoError(t, err)
		if change.Object != nil {
			kinds = append(kinds, change.Object.GetKind())
		}
		if change.FinalStateUnknown {
			break
		}
	}
	assert.Equal(t, []string{"Pod", "Pod"}, kinds)
}

func TestAFollowCanHoldItsObjectsAsJSON(t *testing.T) {
	pods, _ := exchanging(t, says(frame("ADDED", podOf("a", "u1", "1"))+allTold("2")))
	for change, err := range dynamic.As[unstructured.Lazy](pods).Follow(t.Context(), nil) {
		require.NoError(t, err)
		if change.Object != nil {
			assert.JSONEq(t, podOf("a", "u1", "1"), string(change.Object.JSON()))
			break
		}
	}
}

func TestAFollowMayShareWhatIsEqual(t *testing.T) {
	labeled := func(name, uid, version string) string {
		return strings.Replace(podOf(name, uid, version), `"name"`, `"labels":{"app":"web"},"name"`, 1)
	}
	script := []answer{
		{body: frame("ADDED", labeled("a", "u1", "1")) + frame("ADDED", labeled("b", "u2", "2")) + allTold("2")},
		{body: frame("ADDED", labeled("c", "u3", "3")) + frame("MODIFIED", labeled("a", "u1", "4")), stays: true},
	}
	for _, shared := range []bool{true, false} {
		pods, _ := exchanging(t, script...)
		var last []*unstructured.Object
		for change, err := range pods.Follow(t.Context(), &dynamic.FollowOptions{Shared: shared}) {
			require.NoError(t, err)
			if change.Object != nil {
				last = append(last, change.Object)
			}
			if len(last) == 4 {
				break
			}
		}
		assert.Equal(t, "web", last[2].GetLabels()["app"])
		require.NoError(t, unstructured.Set(last[2], "changed", "metadata", "labels", "app"))
		want := map[bool]string{true: "changed", false: "web"}[shared]
		assert.Equal(t, want, last[3].GetLabels()["app"], "shared: %t", shared)
	}
}
