package dynamic_test

import (
	"context"
	"iter"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/unstructured"
)

// listWatchQueries returns the queries of the requests without parameters that all have.
func listWatchQueries(t *testing.T, server *exchanges) []string {
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

func podJSON(name, uid, version string) string {
	return `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"home","name":"` + name + `","uid":"` + uid + `","resourceVersion":"` + version + `"}}`
}

func bookmark(version string) string {
	return scripted.Event("BOOKMARK", `{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"`+version+`"}}`)
}

// initialEventsEnd is the bookmark after the initial events of a watch.
func initialEventsEnd(version string) string { return scripted.InitialEventsEnd("v1", "Pod", version) }

// tooLargeVersion is the Status of a server that does not have a resourceVersion yet.
const tooLargeVersion = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":504,"reason":"Timeout","message":"as scripted","details":{"causes":[` +
	`{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}}`

func podList(version string, pods ...string) string {
	return `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"` + version + `"},"items":[` + strings.Join(pods, ",") + `]}`
}

func changeText(change dynamic.Change[unstructured.Object]) string {
	text := string(change.Type)
	if change.Object != nil {
		text += " " + change.Object.GetName() + " " + string(change.Object.GetUID()) + " " + change.Object.GetResourceVersion()
	}
	if change.FinalStateUnknown {
		text += " inferred"
	}
	return text
}

// follow returns the first changes.
func follow(t *testing.T, r *dynamic.Resource, opts *dynamic.FollowOptions, want int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got []string
	for change, err := range r.Follow(ctx, opts) {
		require.NoError(t, err, "after %v", got)
		if got = append(got, changeText(change)); len(got) == want {
			break
		}
	}
	return got
}

func TestFollow_EmitsEachChangeOnce(t *testing.T) {
	a1 := podJSON("a", "u1", "1")
	a2 := podJSON("a", "u1", "2")
	b1 := podJSON("b", "u2", "3")
	b2 := podJSON("b", "u2", "5")
	initial := scripted.Event("ADDED", a1) + scripted.Event("ADDED", b1) + initialEventsEnd("4")
	start := []string{"STARTED", "ADDED a u1 1", "ADDED b u2 3", "SYNCED"}
	relist := scripted.Event("ADDED", a1) + scripted.Event("ADDED", b2) + initialEventsEnd("9")
	for name, tc := range map[string]struct {
		responses []response
		want      []string
		queries   []string
	}{
		"one watch": {
			responses: []response{{body: initial + scripted.Event("MODIFIED", b2) + scripted.Event("DELETED", a2), stays: true}},
			want:      []string{"MODIFIED b u2 5", "DELETED a u1 2"},
			queries:   []string{watchListQuery},
		},
		"closed watch resumes at the last bookmark": {
			responses: []response{{body: initial + bookmark("7")}, {body: scripted.Event("MODIFIED", b1) + scripted.Event("MODIFIED", b2), stays: true}},
			want:      []string{"MODIFIED b u2 5"},
			queries:   []string{watchListQuery, "resourceVersion=7&watch=true"},
		},
		"cut watch resumes at the last event": {
			responses: []response{{body: initial + scripted.Event("MODIFIED", b2) + `{"type":"MODI`}, {body: scripted.Event("DELETED", a2), stays: true}},
			want:      []string{"MODIFIED b u2 5", "DELETED a u1 2"},
			queries:   []string{watchListQuery, "resourceVersion=5&watch=true"},
		},
		"410 response": {
			responses: []response{{body: initial}, refuses(410, "Expired"), {body: relist, stays: true}},
			want:      []string{"MODIFIED b u2 5"},
			queries:   []string{watchListQuery, "resourceVersion=4&watch=true", watchListQuery},
		},
		"410 event": {
			responses: []response{{body: initial + scripted.ExpiredEvent()}, {body: relist, stays: true}},
			want:      []string{"MODIFIED b u2 5"},
			queries:   []string{watchListQuery, watchListQuery},
		},
		"resourceVersion too large": {
			responses: []response{{body: initial}, {status: 504, body: tooLargeVersion}, {body: relist, stays: true}},
			want:      []string{"MODIFIED b u2 5"},
			queries:   []string{watchListQuery, "resourceVersion=4&watch=true", watchListQuery},
		},
		"deleted between watches": {
			responses: []response{{body: initial + scripted.Event("ERROR", scripted.StatusJSON(410, "Gone"))}, {body: scripted.Event("ADDED", b1) + initialEventsEnd("9"), stays: true}},
			want:      []string{"DELETED a u1 1 inferred"},
			queries:   []string{watchListQuery, watchListQuery},
		},
		"deleted before a relist": {
			responses: []response{{body: initial + scripted.Event("DELETED", a2) + scripted.Event("ERROR", scripted.StatusJSON(410, "Gone"))}, {body: scripted.Event("ADDED", b1) + initialEventsEnd("9") + scripted.Event("MODIFIED", b2), stays: true}},
			want:      []string{"DELETED a u1 2", "MODIFIED b u2 5"},
			queries:   []string{watchListQuery, watchListQuery},
		},
		"object recreated": {
			responses: []response{{body: initial + scripted.Event("ERROR", scripted.StatusJSON(410, "Gone"))}, {body: scripted.Event("ADDED", podJSON("a", "u9", "8")), stays: true}},
			want:      []string{"DELETED a u1 1 inferred", "ADDED a u9 8"},
			queries:   []string{watchListQuery, watchListQuery},
		},
		"relist breaks": {
			responses: []response{{body: initial + scripted.Event("ERROR", scripted.StatusJSON(410, "Gone"))}, {body: scripted.Event("ADDED", a1)}, {body: scripted.Event("ADDED", b1) + initialEventsEnd("9"), stays: true}},
			want:      []string{"DELETED a u1 1 inferred"},
			queries:   []string{watchListQuery, watchListQuery, watchListQuery},
		},
		"objects without resourceVersion": {
			responses: []response{{body: initial + scripted.Event("MODIFIED", podJSON("b", "u2", "")) + scripted.Event("MODIFIED", podJSON("b", "u2", "")), stays: true}},
			want:      []string{"MODIFIED b u2 ", "MODIFIED b u2 "},
			queries:   []string{watchListQuery},
		},
		"temporarily forbidden": {
			responses: []response{{body: initial}, refuses(403, "Forbidden"), {body: scripted.Event("MODIFIED", b2), stays: true}},
			want:      []string{"MODIFIED b u2 5"},
			queries:   []string{watchListQuery, "resourceVersion=4&watch=true", "resourceVersion=4&watch=true"},
		},
		"one 404": {
			responses: []response{{body: initial}, refuses(404, "NotFound"), {body: scripted.Event("MODIFIED", b2), stays: true}},
			want:      []string{"MODIFIED b u2 5"},
			queries:   []string{watchListQuery, "resourceVersion=4&watch=true", "resourceVersion=4&watch=true"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				want := append(start[:len(start):len(start)], tc.want...)
				pods, server := exchanging(t, tc.responses...)
				assert.Equal(t, want, follow(t, pods, nil, len(want)))
				assert.Equal(t, tc.queries, listWatchQueries(t, server))

				pods, server = exchanging(t, tc.responses...)
				assert.Equal(t, want, followInto(t, pods, podVersions{}, len(want)))
				assert.Equal(t, tc.queries, listWatchQueries(t, server))
			})
		})
	}
}

// podVersions are the pods that a caller of Follow keeps: by name their UID and resourceVersion.
type podVersions map[string][2]string

func (v podVersions) Version(namespace, name string) (uid types.UID, resourceVersion string, found bool) {
	version, found := v[name]
	return types.UID(version[0]), version[1], found && namespace == "home"
}

func (v podVersions) Keys() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for name := range v {
			if !yield("home", name) {
				return
			}
		}
	}
}

// followInto returns the first changes, and keeps the pods.
func followInto(t *testing.T, r *dynamic.Resource, pods podVersions, want int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got []string
	for change, err := range r.Follow(ctx, &dynamic.FollowOptions{KnownObjects: pods}) {
		require.NoError(t, err, "after %v", got)
		switch change.Type {
		case watch.Added, watch.Modified:
			pods[change.Object.GetName()] = [2]string{string(change.Object.GetUID()), change.Object.GetResourceVersion()}
		case watch.Deleted:
			delete(pods, change.Object.GetName())
		default: // no object
		}
		if got = append(got, changeText(change)); len(got) == want {
			break
		}
	}
	return got
}

func TestFollow_KnownObjectsCountAsEmitted(t *testing.T) {
	responses := []response{
		{body: scripted.Event("ADDED", podJSON("same", "u1", "1")) + scripted.Event("ADDED", podJSON("changed", "u2", "6")) +
			scripted.Event("ADDED", podJSON("replaced", "u9", "7")) + scripted.Event("ADDED", podJSON("new", "u5", "8")) + scripted.Event("ADDED", podJSON("bare", "u6", "8")) + initialEventsEnd("8")},
		{body: scripted.Event("DELETED", podJSON("same", "u1", "9")), stays: true},
	}
	pods, _ := exchanging(t, responses...)
	kept := podVersions{"same": {"u1", "1"}, "changed": {"u2", "2"}, "replaced": {"u3", "3"}, "deleted": {"u4", "4"}, "bare": {"", ""}}
	assert.Equal(t, []string{
		"STARTED", "MODIFIED changed u2 6", "DELETED replaced u3 3 inferred", "ADDED replaced u9 7", "ADDED new u5 8", "MODIFIED bare u6 8",
		"DELETED deleted u4 4 inferred", "SYNCED", "DELETED same u1 9",
	}, followInto(t, pods, kept, 9))
	assert.Equal(t, podVersions{"changed": {"u2", "6"}, "replaced": {"u9", "7"}, "new": {"u5", "8"}, "bare": {"u6", "8"}}, kept)
}

func TestFollow_ListsWithoutWatchListSupport(t *testing.T) {
	const selectors = "fieldSelector=spec.nodeName%3Dn&labelSelector=x"
	a := podJSON("a", "u1", "1")
	b := podJSON("b", "u2", "5")
	for _, refusal := range []response{refuses(422, "Invalid"), refuses(400, "BadRequest")} {
		synctest.Test(t, func(t *testing.T) {
			pods, server := exchanging(t, refusal,
				response{body: strings.Replace(podList("3", a), `"3"`, `"3","continue":"more"`, 1)}, response{body: podList("3")},
				response{body: scripted.Event("ADDED", b) + scripted.ExpiredEvent()},
				response{body: podList("9", b)}, response{stays: true})
			assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "ADDED b u2 5", "DELETED a u1 1 inferred"},
				follow(t, pods, &dynamic.FollowOptions{LabelSelector: "x", FieldSelector: "spec.nodeName=n"}, 5))
			assert.Equal(t, []string{
				selectors + "&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true",
				selectors, "continue=more&" + selectors,
				selectors + "&resourceVersion=3&watch=true", selectors,
			}, listWatchQueries(t, server))
		})
	}
}

func TestFollow_ListsWithoutInitialEventsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := podJSON("a", "u1", "1")
		pods, _ := exchanging(t, respond(scripted.Event("ADDED", a)), respond(scripted.Event("ADDED", a)), respond(podList("3", a)),
			response{body: scripted.Event("MODIFIED", podJSON("a", "u1", "5")), stays: true})
		assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "MODIFIED a u1 5"}, follow(t, pods, nil, 4))
	})
}

func TestFollow_NotFoundCountsOnlyInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := refuses(404, "NotFound")
		pods, _ := exchanging(t, respond(scripted.Event("ADDED", podJSON("a", "u1", "1"))+initialEventsEnd("4")),
			gone, respond(""), gone, refuses(503, "ServiceUnavailable"), gone, response{body: scripted.Event("MODIFIED", podJSON("a", "u1", "5")), stays: true})
		assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED", "MODIFIED a u1 5"}, follow(t, pods, nil, 4))
	})
}

func TestFollow_EndsWithTerminalError(t *testing.T) {
	for reason, tc := range map[string]struct {
		code  int
		grace time.Duration // a starting server's
	}{
		"Unauthorized": {401, 2 * time.Second}, "Forbidden": {403, 2 * time.Second}, "NotFound": {404, 5 * time.Second}, "MethodNotAllowed": {405, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			pods, _ := exchanging(t, response{status: tc.code, body: scripted.StatusJSON(tc.code, reason), lasts: time.Minute})
			began := time.Now()
			var got []error
			for _, err := range pods.Follow(t.Context(), nil) {
				got = append(got, err)
			}
			require.Len(t, got, 1, reason)
			assert.EqualValues(t, reason, apierrors.ReasonForError(got[0]))
			assert.GreaterOrEqual(t, time.Since(began), tc.grace)
			assert.LessOrEqual(t, time.Since(began), tc.grace+time.Second)
		})
	}
	pods, server := exchanging(t)
	for _, err := range pods.Subresource("status").Follow(t.Context(), nil) {
		var refused *dynamic.InvalidRequestError
		require.ErrorAs(t, err, &refused)
	}
	assert.Empty(t, listWatchQueries(t, server))
}

func TestFollow_CountsInterruptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, _ := exchanging(t, refuses(500, "InternalError"), response{body: initialEventsEnd("4")},
			refuses(410, "Expired"), response{body: scripted.Event("ADDED", podJSON("a", "u1", "1")) + initialEventsEnd("5"), stays: true})
		var seen []dynamic.Interruption
		follow(t, pods, &dynamic.FollowOptions{OnInterruption: func(i dynamic.Interruption) { seen = append(seen, i) }}, 3)
		require.Len(t, seen, 3)
		assert.True(t, apierrors.IsInternalError(seen[0].Err))
		assert.True(t, seen[0].Relist)
		assert.NoError(t, seen[1].Err)
		assert.False(t, seen[1].Relist)
		assert.True(t, apierrors.IsResourceExpired(seen[2].Err))
		assert.True(t, seen[2].Relist)
		for i, interruption := range seen {
			assert.Equal(t, i+1, interruption.Count)
			assert.Positive(t, interruption.Delay)
		}
	})
}

func TestFollow_ContextErrorHasLastError(t *testing.T) {
	pods, _ := exchanging(t, refuses(500, "InternalError"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errs []error
	for _, err := range pods.Follow(ctx, &dynamic.FollowOptions{OnInterruption: func(dynamic.Interruption) { cancel() }}) {
		errs = append(errs, err)
	}
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], context.Canceled)
	assert.True(t, apierrors.IsInternalError(errs[0]))
	assert.ErrorContains(t, errs[0], "follow pods: not synced: context canceled; the last error: as scripted")
}

func TestHandle_Follow(t *testing.T) {
	type named struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
	}
	fits := `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"home","name":"a","uid":"u1","resourceVersion":"1"},"spec":{"nodeName":"n1"}}`
	pods, _ := exchanging(t, respond(scripted.Event("ADDED", fits)+initialEventsEnd("2")+scripted.ExpiredEvent()),
		respond(scripted.Event("ADDED", podJSON("b", "u2", "3"))+initialEventsEnd("4")), respond(scripted.Event("ADDED", strings.Replace(fits, `"n1"`, `[]`, 1))))
	var got []string
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for change, err := range dynamic.As[named](pods).Follow(ctx, nil) {
		if err != nil {
			require.ErrorContains(t, err, `decode pods "home/a" as dynamic_test.named: .spec.nodeName: is []any, not string`)
			break
		}
		text := string(change.Type)
		if change.Object != nil {
			text += " " + change.Object.Name + " on " + change.Object.Spec.NodeName
		}
		if change.FinalStateUnknown {
			text += " inferred"
		}
		got = append(got, text)
	}
	assert.Equal(t, []string{"STARTED", "ADDED a on n1", "SYNCED", "ADDED b on ", "DELETED a on  inferred"}, got)
}

func TestFollow_MetadataOfInferredDelete(t *testing.T) {
	pods, _ := exchanging(t, respond(scripted.Event("ADDED", podJSON("a", "u1", "1"))+initialEventsEnd("2")+scripted.ExpiredEvent()), respond(initialEventsEnd("4")))
	var objects []string
	for change, err := range pods.Metadata().Follow(t.Context(), nil) {
		require.NoError(t, err)
		if change.Object != nil {
			objects = append(objects, change.Object.GetKind()+" "+change.Object.GetNamespace()+"/"+change.Object.GetName())
		}
		if change.FinalStateUnknown {
			break
		}
	}
	assert.Equal(t, []string{"Pod home/a", "Pod home/a"}, objects)
}

func TestHandle_FollowLazy(t *testing.T) {
	pods, _ := exchanging(t, respond(scripted.Event("ADDED", podJSON("a", "u1", "1"))+initialEventsEnd("2")))
	for change, err := range dynamic.As[unstructured.Lazy](pods).Follow(t.Context(), nil) {
		require.NoError(t, err)
		if change.Object != nil {
			assert.JSONEq(t, podJSON("a", "u1", "1"), string(change.Object.JSON()))
			break
		}
	}
}

func TestFollow_Intern(t *testing.T) {
	labeled := func(name, uid, version string) string {
		return strings.Replace(podJSON(name, uid, version), `"name"`, `"labels":{"app":"web"},"name"`, 1)
	}
	script := []response{
		{body: scripted.Event("ADDED", labeled("a", "u1", "1")) + scripted.Event("ADDED", labeled("b", "u2", "2")) + initialEventsEnd("2")},
		{body: scripted.Event("ADDED", labeled("c", "u3", "3")) + scripted.Event("MODIFIED", labeled("a", "u1", "4")), stays: true},
	}
	for _, interned := range []bool{true, false} {
		pods, _ := exchanging(t, script...)
		var last []*unstructured.Object
		for change, err := range pods.Follow(t.Context(), &dynamic.FollowOptions{Intern: interned}) {
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
		want := map[bool]string{true: "changed", false: "web"}[interned]
		assert.Equal(t, want, last[3].GetLabels()["app"], "interned: %t", interned)
	}
}
