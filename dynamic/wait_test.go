package dynamic_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// podAt is the pod "web" at a version, with a phase, as the server writes it.
func podAt(version, uid, phase string) string {
	return `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","uid":"` + uid + `","resourceVersion":"` + version + `"},"status":{"phase":"` + phase + `"}}`
}

func happens(event, obj string) string { return `{"type":"` + event + `","object":` + obj + `}` }

func stays(body string) answer { return answer{body: body, stays: true} }

const (
	gonePast = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`

	asked     = "GET …/web"
	fromStart = "GET …?fieldSelector=metadata.name%3Dweb&watch=true"
	from7     = "GET …?fieldSelector=metadata.name%3Dweb&resourceVersion=7&watch=true"
	from9     = "GET …?fieldSelector=metadata.name%3Dweb&resourceVersion=9&watch=true"
)

var (
	absent   = answer{status: http.StatusNotFound, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"web\" not found","reason":"NotFound","code":404,"details":{"name":"web","kind":"pods"}}`}
	unserved = answer{status: http.StatusNotFound, body: "404 page not found\n"}
)

var running = dynamic.Field("status.phase", "Running")

// TestAWaitIsOneReadAndOneWatch holds the requests of each course that a wait may take.
func TestAWaitIsOneReadAndOneWatch(t *testing.T) {
	unavailable := answer{status: http.StatusServiceUnavailable}
	expired := refuses(http.StatusGone, "Expired")
	for name, tc := range map[string]struct {
		until    dynamic.Until
		answers  []answer
		requests []string
		version  string // of the object that is returned
	}{
		"it holds": {running, []answer{says(podAt("7", "u", "Running"))}, []string{asked}, "7"},
		"it comes to hold": {running, []answer{says(podAt("7", "u", "Pending")), stays(happens("MODIFIED", podAt("8", "u", "Pending")) + happens("MODIFIED", podAt("9", "u", "Running")))},
			[]string{asked, from7}, "9"},
		"it is made": {dynamic.Exists(), []answer{absent, stays(happens("ADDED", podAt("7", "u", "Pending")))}, []string{asked, fromStart}, "7"},
		"it goes and comes back": {running, []answer{says(podAt("7", "u", "Pending")), stays(happens("DELETED", podAt("8", "u", "Running")) + happens("ADDED", podAt("9", "v", "Running")))},
			[]string{asked, from7}, "9"},
		"the watch ends": {running, []answer{says(podAt("7", "u", "Pending")), says(""), says(podAt("9", "u", "Pending")), stays(happens("MODIFIED", podAt("10", "u", "Running")))},
			[]string{asked, from7, asked, from9}, "10"},
		"the watch breaks": {running, []answer{says(podAt("7", "u", "Pending")), says(`{"type":"MODI`), says(podAt("9", "u", "Running"))},
			[]string{asked, from7, asked}, "9"},
		"the object is older than what the server knows": {running,
			[]answer{says(podAt("7", "u", "Pending")), expired, stays(happens("ADDED", podAt("7", "u", "Running")) + happens("MODIFIED", podAt("9", "u", "Running"))), says(podAt("7", "u", "Pending"))},
			[]string{asked, from7, fromStart, asked}, "9"},
		"the same, as an event": {running,
			[]answer{says(podAt("7", "u", "Pending")), says(gonePast), stays(happens("ADDED", podAt("6", "u", "Running")) + happens("BOOKMARK", podAt("8", "", "Running")) + happens("MODIFIED", podAt("9", "u", "Running"))), says(podAt("7", "u", "Pending"))},
			[]string{asked, from7, fromStart, asked}, "9"},
		"it went while the server forgot": {dynamic.Gone(),
			[]answer{says(podAt("7", "u", "Pending")), expired, stays(""), absent}, []string{asked, from7, fromStart, asked}, "7"},
		"the server is away": {running, []answer{unavailable, refuses(http.StatusTooManyRequests, "TooManyRequests"), says(podAt("7", "u", "Pending")), unavailable, says("<html>"), says(podAt("9", "u", "Running"))},
			[]string{asked, asked, asked, from7, asked, asked}, "9"},
		"the server starts and knows nobody": {running, []answer{says(podAt("7", "u", "Pending")), says(""), unavailable, forbidden, refuses(http.StatusUnauthorized, "Unauthorized"), says(podAt("9", "u", "Running"))},
			[]string{asked, from7, asked, asked, asked, asked}, "9"},
		"it is gone":           {dynamic.Gone(), []answer{absent}, []string{asked}, ""},
		"it goes":              {dynamic.Gone(), []answer{says(podAt("7", "u", "Pending")), stays(happens("MODIFIED", podAt("8", "u", "Pending")) + happens("DELETED", podAt("9", "u", "Failed")))}, []string{asked, from7}, "9"},
		"it is made anew":      {dynamic.Gone(), []answer{says(podAt("7", "u", "Pending")), says(""), says(podAt("9", "v", "Pending"))}, []string{asked, from7, asked}, "9"},
		"it was made anew":     {dynamic.Gone("u"), []answer{says(podAt("7", "v", "Pending"))}, []string{asked}, "7"},
		"one of the old is it": {dynamic.Gone("t", "u"), []answer{says(podAt("7", "u", "Pending")), stays(happens("DELETED", podAt("9", "u", "Pending")))}, []string{asked, from7}, "9"},
		"versions are no numbers": {running, []answer{says(podAt("7", "u", "Pending")), stays(happens("MODIFIED", podAt("x", "u", "Pending")) + happens("MODIFIED", podAt("a", "u", "Running")))},
			[]string{asked, from7}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods, server := exchanging(t, tc.answers...)
			obj, err := pods.Wait(t.Context(), "web", tc.until)
			require.NoError(t, err)
			assert.Equal(t, tc.requests, server.seen())
			if tc.version == "" {
				assert.Nil(t, obj)
				return
			}
			assert.Equal(t, tc.version, obj.GetResourceVersion())
		})
	}
}

func TestWait_EndsWithTerminalError(t *testing.T) {
	other := errors.New("other")
	fails := dynamic.Matches("the other", func(*unstructured.Object) (bool, error) { return false, other })
	slow := dynamic.Matches("the other", func(*unstructured.Object) (bool, error) { return false, context.DeadlineExceeded })
	isOther := func(err error) bool { return errors.Is(err, other) }
	isNotServed := func(err error) bool {
		return apierrors.IsNotFound(err) && strings.Contains(err.Error(), `wait for pods "home/web": the resource is not served: `)
	}
	lasting := func(one answer) answer { one.lasts = time.Minute; return one }
	unauthorized := refuses(http.StatusUnauthorized, "Unauthorized")
	for name, tc := range map[string]struct {
		until      dynamic.Until
		answers    []answer
		is         func(error) bool
		from, till time.Duration // when it ends
	}{
		"reading is forbidden":      {running, []answer{lasting(forbidden)}, apierrors.IsForbidden, 2 * time.Second, 3 * time.Second},
		"unauthorized":              {running, []answer{lasting(unauthorized)}, apierrors.IsUnauthorized, 2 * time.Second, 3 * time.Second},
		"a right taken away":        {running, []answer{labelledPod("a"), says(""), lasting(forbidden)}, apierrors.IsForbidden, 5 * time.Second, 10 * time.Second},
		"the path is not served":    {running, []answer{lasting(unserved)}, isNotServed, 5 * time.Second, 8 * time.Second},
		"not served any more":       {dynamic.Gone(), []answer{labelledPod("a"), says(""), lasting(unserved)}, isNotServed, 5 * time.Second, 9 * time.Second},
		"a bad request":             {running, []answer{labelledPod("a"), refuses(http.StatusBadRequest, "BadRequest")}, apierrors.IsBadRequest, 0, 0},
		"the caller's error":        {fails, []answer{labelledPod("a")}, isOther, 0, 0},
		"the caller's own time-out": {slow, []answer{labelledPod("a")}, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }, 0, 0},
		"the caller's error, later": {fails, []answer{absent, stays(happens("ADDED", podAt("9", "u", "Pending")))}, isOther, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, _ := inBubble(t, tc.answers...)
				began := time.Now()
				_, err := pods.Wait(t.Context(), "web", tc.until)
				assert.True(t, tc.is(err), "%v", err)
				require.ErrorContains(t, err, `wait for pods "home/web": `)
				assert.GreaterOrEqual(t, time.Since(began), tc.from)
				assert.LessOrEqual(t, time.Since(began), tc.till)
			})
		})
	}
}

// TestWait_WatchForbidden lets the user get the object, but not watch it.
func TestWait_WatchForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers []answer
		for range 100 {
			answers = append(answers, labelledPod("a"), forbidden)
		}
		pods, _ := inBubble(t, answers...)
		began := time.Now()
		_, err := pods.Wait(t.Context(), "web", running)
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
		assert.LessOrEqual(t, time.Since(began), 3*time.Second)
	})
}

// TestWait_StartingServer answers for a moment with what a server does that has not read its rules and definitions.
func TestWait_StartingServer(t *testing.T) {
	for name, tc := range map[string]struct {
		until   dynamic.Until
		answers []answer
	}{
		"denials at the first request":   {running, []answer{{status: 403, body: forbidden.body, lasts: 1500 * time.Millisecond}, says(podAt("9", "u", "Running"))}},
		"denials after a watch":          {running, []answer{says(podAt("7", "u", "Pending")), says(""), {status: 401, body: statusOf("401", "Unauthorized", ""), lasts: 4 * time.Second}, says(podAt("9", "u", "Running"))}},
		"the path is not served yet":     {running, []answer{{status: 404, body: unserved.body, lasts: 4 * time.Second}, says(podAt("9", "u", "Running"))}},
		"not served, and it still is":    {dynamic.Gone(), []answer{says(podAt("7", "u", "Running")), says(""), {status: 404, body: unserved.body, lasts: 4 * time.Second}, says(podAt("7", "u", "Running")), stays(happens("DELETED", podAt("9", "u", "Running")))}},
		"an attempt that takes too long": {running, []answer{{mute: true}, says(podAt("9", "u", "Running"))}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &exchanges{answers: tc.answers}
				conn, err := transport.New("http://bubble", &http.Client{Transport: bubble{server}, Timeout: time.Minute}, &transport.Options{Namespace: "home"})
				require.NoError(t, err)
				client := dynamic.New(conn, nil)
				defer client.Close()
				obj, err := resource(t, client, "pods").Wait(t.Context(), "web", tc.until)
				require.NoError(t, err)
				assert.Equal(t, "9", obj.GetResourceVersion())
			})
		})
	}
}

func TestAWaitThatCannotWorkIsRefused(t *testing.T) {
	pods, server := exchanging(t)
	exists := []dynamic.Until{dynamic.Exists()}
	for want, tc := range map[string]struct {
		of    *dynamic.Resource
		name  string
		until []dynamic.Until
	}{
		`get pods: the name is empty`:                                  {pods, "", exists},
		`one object needs a namespace`:                                 {pods.AllNamespaces(), "web", exists},
		`leave Sub out`:                                                {pods.Sub("status"), "web", exists},
		`watch pods "web": say what to wait for, such as Exists()`:     {pods, "web", nil},
		`an Until is empty: make it with a function such as Condition`: {pods, "web", []dynamic.Until{{}}},
		`a condition needs a type and a status`:                        {pods, "web", []dynamic.Until{dynamic.Condition("")}},
		`watch pods "web": path "spec.items[*]": byte 11`:              {pods, "web", []dynamic.Until{dynamic.Exists(), dynamic.Field("spec.items[*]", 1)}},
		`"a b"`:                              {pods, "web", []dynamic.Until{dynamic.HasField("a b")}},
		`the value to compare spec.a with: `: {pods, "web", []dynamic.Until{dynamic.Field("spec.a", func() {})}},
		`the function that looks for "it" is nil`: {pods, "web", []dynamic.Until{dynamic.Matches("it", nil)}},
	} {
		_, err := tc.of.Wait(t.Context(), tc.name, tc.until...)
		var refused *dynamic.RefusedError
		require.ErrorAs(t, err, &refused, want)
		require.ErrorContains(t, err, want)
	}
	assert.Empty(t, server.seen())
}

// TestATimeOutSaysWhatWasUnmet waits for each of these on an object that never changes, for as long as it takes to see it.
func TestATimeOutSaysWhatWasUnmet(t *testing.T) {
	const stored = `{"kind":"Thing","apiVersion":"v1","metadata":{"name":"web","uid":"u","resourceVersion":"7","generation":2,
		"deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["example.com/a","b"]},"spec":{"replicas":3,"load":1.5,"list":[1],"map":{"a":1},"none":null},"status":{"phase":"Pending",
		"conditions":[{"type":"Available","status":"False","reason":"MinimumReplicasUnavailable","message":"Not enough."},{"type":"Quiet","status":"Unknown"},
			{"type":"Old","status":"True","observedGeneration":1}]}}`
	never := dynamic.Matches("three ready endpoints", func(*unstructured.Object) (bool, error) { return false, nil })
	for want, tc := range map[string]struct {
		stored string
		until  []dynamic.Until
	}{
		`condition Available is "False": MinimumReplicasUnavailable: Not enough.`: {stored, []dynamic.Until{dynamic.Condition("available")}},
		`condition Quiet is "Unknown"`:                                            {stored, []dynamic.Until{dynamic.ConditionIs("Quiet", "False")}},
		`condition Old was observed at generation 1, the object is at 2`:          {stored, []dynamic.Until{dynamic.Condition("Old")}},
		`condition Ready is not there`:                                            {stored, []dynamic.Until{dynamic.Condition("Ready")}},
		`{.status.phase} is "Pending", not "Running"`:                             {stored, []dynamic.Until{dynamic.Field("{.status.phase}", "Running")}},
		`spec.replicas is 3, not "3"`:                                             {stored, []dynamic.Until{dynamic.Field("spec.replicas", "3")}},
		`spec.list is a list, not an object`:                                      {stored, []dynamic.Until{dynamic.Field("spec.list", map[string]any{})}},
		`spec.absent is not there`:                                                {stored, []dynamic.Until{dynamic.Field("spec.absent", 1)}},
		`spec.none is not there`:                                                  {stored, []dynamic.Until{dynamic.HasField("spec.none")}},
		`.spec.replicas: is int64, not map[string]any or []any; .spec.load: is float64, not map[string]any or []any`: {stored, []dynamic.Until{dynamic.HasField("spec.replicas.x"), dynamic.Field("spec.load.x", 1)}},
		`not yet: three ready endpoints`: {stored, []dynamic.Until{dynamic.Exists(), never}},
		`it still exists, being deleted since 2026-01-02T03:04:05Z, with the finalizers example.com/a, b`: {stored, []dynamic.Until{dynamic.Gone()}},
		`it still exists: `:       {podReply, []dynamic.Until{dynamic.Gone()}},
		`it does not exist`:       {"", []dynamic.Until{dynamic.Exists()}},
		`it does not exist; it d`: {"", []dynamic.Until{running, never}},
		`spec.a is another value`: {`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"web"},"spec":{"a":"hidden"}}`, []dynamic.Until{dynamic.Field("spec.a", "b")}},
	} {
		t.Run(want, func(t *testing.T) {
			answers := []answer{says(tc.stored), stays("")}
			if tc.stored == "" {
				answers[0] = absent
			}
			pods, server := exchanging(t, answers...)
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { // the watch is open: the object has been looked at
				for len(server.seen()) < 2 {
					time.Sleep(time.Millisecond)
				}
				cancel(context.DeadlineExceeded)
			}()
			_, err := pods.Wait(ctx, "web", tc.until...)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, `wait for pods "home/web": `+want)
			assert.NotContains(t, err.Error(), "hidden")
		})
	}
}

func TestATimeOutSaysWhyNothingWasLearned(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	<-ctx.Done()
	pods, _ := exchanging(t)
	_, err := pods.Wait(ctx, "web", running)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, `wait for pods "home/web": nothing was learned of it: context deadline exceeded`)

	answers := make([]answer, 100)
	for i := range answers {
		answers[i] = refuses(http.StatusServiceUnavailable, "ServiceUnavailable")
	}
	pods, server := exchanging(t, answers...)
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for len(server.seen()) < 2 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	_, err = pods.Wait(ctx, "web", running)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	require.ErrorContains(t, err, "nothing was learned of it: context canceled; the last error: ")
}

func TestWhatFieldsHold(t *testing.T) {
	const stored = `{"kind":"Thing","apiVersion":"v1","metadata":{"name":"web"},"spec":{"replicas":3,"load":1.0,"on":false,"list":[1,"a"],"map":{"a":1}},
		"status":{"conditions":[{"type":"Ready","reason":"Made"}],"observedGeneration":1}}`
	for _, until := range []dynamic.Until{
		dynamic.Field("spec.replicas", 3), dynamic.Field(".spec.replicas", int32(3)), dynamic.Field("{.spec.replicas}", 3.0), dynamic.Field("spec.load", 1),
		dynamic.Field("spec.on", false), dynamic.Field("spec.list", []any{1, "a"}), dynamic.Field("spec.map", map[string]int{"a": 1}),
		dynamic.Field("status.conditions[type=Ready].reason", "Made"), dynamic.HasField("spec.on"), dynamic.HasField("spec.list[1]"),
	} {
		pods, _ := exchanging(t, says(stored))
		_, err := pods.Wait(t.Context(), "web", until)
		require.NoError(t, err)
	}
}
