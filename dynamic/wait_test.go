package dynamic_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// webPod is the pod "web" with a resourceVersion, a uid and a phase.
func webPod(version, uid, phase string) string {
	return `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","uid":"` + uid + `","resourceVersion":"` + version + `"},"status":{"phase":"` + phase + `"}}`
}

func openStream(body string) answer { return answer{body: body, stays: true} }

const (
	expiredEvent = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`

	getWeb     = "GET …/web"
	watchWeb   = "GET …?fieldSelector=metadata.name%3Dweb&watch=true"
	watchFrom7 = "GET …?fieldSelector=metadata.name%3Dweb&resourceVersion=7&watch=true"
	watchFrom9 = "GET …?fieldSelector=metadata.name%3Dweb&resourceVersion=9&watch=true"
)

var (
	absent   = answer{status: http.StatusNotFound, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"web\" not found","reason":"NotFound","code":404,"details":{"name":"web","kind":"pods"}}`}
	unserved = answer{status: http.StatusNotFound, body: "404 page not found\n"}
)

var running = dynamic.FieldEquals("status.phase", "Running")

// TestWait_Requests compares the requests of each course of a wait.
func TestWait_Requests(t *testing.T) {
	unavailable := answer{status: http.StatusServiceUnavailable}
	expired := refuses(http.StatusGone, "Expired")
	for name, tc := range map[string]struct {
		condition dynamic.WaitCondition
		answers   []answer
		requests  []string
		version   string // of the object that is returned
	}{
		"holds at once": {running, []answer{respond(webPod("7", "u", "Running"))}, []string{getWeb}, "7"},
		"holds after an event": {running, []answer{respond(webPod("7", "u", "Pending")), openStream(scripted.Event("MODIFIED", webPod("8", "u", "Pending")) + scripted.Event("MODIFIED", webPod("9", "u", "Running")))},
			[]string{getWeb, watchFrom7}, "9"},
		"created": {dynamic.Exists(), []answer{absent, openStream(scripted.Event("ADDED", webPod("7", "u", "Pending"))), respond(webPod("8", "u", "Pending"))},
			[]string{getWeb, watchWeb, getWeb}, "8"},
		"created, read fails": {dynamic.Exists(), []answer{absent, openStream(scripted.Event("ADDED", webPod("7", "u", "Pending"))), unavailable, respond(webPod("8", "u", "Pending"))},
			[]string{getWeb, watchWeb, getWeb, getWeb}, "8"},
		"deleted with its old resourceVersion": {dynamic.Deleted(), []answer{respond(webPod("7", "u", "Pending")), openStream(scripted.Event("DELETED", webPod("7", "u", "Pending")))},
			[]string{getWeb, watchFrom7}, "7"},
		"deleted and recreated": {running, []answer{respond(webPod("7", "u", "Pending")), openStream(scripted.Event("DELETED", webPod("8", "u", "Running")) + scripted.Event("ADDED", webPod("9", "v", "Running")))},
			[]string{getWeb, watchFrom7}, "9"},
		"watch closed": {running, []answer{respond(webPod("7", "u", "Pending")), respond(""), respond(webPod("9", "u", "Pending")), openStream(scripted.Event("MODIFIED", webPod("10", "u", "Running")))},
			[]string{getWeb, watchFrom7, getWeb, watchFrom9}, "10"},
		"watch breaks": {running, []answer{respond(webPod("7", "u", "Pending")), respond(`{"type":"MODI`), respond(webPod("9", "u", "Running"))},
			[]string{getWeb, watchFrom7, getWeb}, "9"},
		"expired resourceVersion": {running,
			[]answer{respond(webPod("7", "u", "Pending")), expired, openStream(scripted.Event("ADDED", webPod("7", "u", "Running")) + scripted.Event("MODIFIED", webPod("9", "u", "Running"))), respond(webPod("7", "u", "Pending"))},
			[]string{getWeb, watchFrom7, watchWeb, getWeb}, "9"},
		"expired resourceVersion, as an event": {running,
			[]answer{respond(webPod("7", "u", "Pending")), respond(expiredEvent), openStream(scripted.Event("ADDED", webPod("6", "u", "Running")) + scripted.Event("BOOKMARK", webPod("8", "", "Running")) + scripted.Event("MODIFIED", webPod("9", "u", "Running"))), respond(webPod("7", "u", "Pending"))},
			[]string{getWeb, watchFrom7, watchWeb, getWeb}, "9"},
		"expired resourceVersion, watch closed": {running,
			[]answer{respond(webPod("7", "u", "Pending")), expired, respond(""), respond(webPod("7", "u", "Pending")), respond(webPod("9", "u", "Running"))},
			[]string{getWeb, watchFrom7, watchWeb, getWeb, getWeb}, "9"},
		"deleted and expired": {dynamic.Deleted(),
			[]answer{respond(webPod("7", "u", "Pending")), expired, openStream(""), absent}, []string{getWeb, watchFrom7, watchWeb, getWeb}, "7"},
		"server unavailable": {running, []answer{unavailable, refuses(http.StatusTooManyRequests, "TooManyRequests"), respond(webPod("7", "u", "Pending")), unavailable, respond("<html>"), respond(webPod("9", "u", "Running"))},
			[]string{getWeb, getWeb, getWeb, watchFrom7, getWeb, getWeb}, "9"},
		"server starts and denies": {running, []answer{respond(webPod("7", "u", "Pending")), respond(""), unavailable, forbidden, refuses(http.StatusUnauthorized, "Unauthorized"), respond(webPod("9", "u", "Running"))},
			[]string{getWeb, watchFrom7, getWeb, getWeb, getWeb, getWeb}, "9"},
		"deleted before":   {dynamic.Deleted(), []answer{absent}, []string{getWeb}, ""},
		"deleted":          {dynamic.Deleted(), []answer{respond(webPod("7", "u", "Pending")), openStream(scripted.Event("MODIFIED", webPod("8", "u", "Pending")) + scripted.Event("DELETED", webPod("9", "u", "Failed")))}, []string{getWeb, watchFrom7}, "9"},
		"recreated":        {dynamic.Deleted(), []answer{respond(webPod("7", "u", "Pending")), respond(""), respond(webPod("9", "v", "Pending"))}, []string{getWeb, watchFrom7, getWeb}, "9"},
		"recreated before": {dynamic.Deleted("u"), []answer{respond(webPod("7", "v", "Pending"))}, []string{getWeb}, "7"},
		"one of the uids":  {dynamic.Deleted("t", "u"), []answer{respond(webPod("7", "u", "Pending")), openStream(scripted.Event("DELETED", webPod("9", "u", "Pending")))}, []string{getWeb, watchFrom7}, "9"},
		"resourceVersions are not numbers": {running, []answer{respond(webPod("7", "u", "Pending")), openStream(scripted.Event("MODIFIED", webPod("x", "u", "Pending")) + scripted.Event("MODIFIED", webPod("a", "u", "Running")))},
			[]string{getWeb, watchFrom7}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, server := exchanging(t, tc.answers...)
				obj, err := pods.Wait(t.Context(), "web", tc.condition)
				require.NoError(t, err)
				assert.Equal(t, tc.requests, server.seen())
				if tc.version == "" {
					assert.Nil(t, obj)
					return
				}
				assert.Equal(t, tc.version, obj.GetResourceVersion())
			})
		})
	}
}

// TestWait_StaleEvents has watches that begin with the state of a cache that lags behind the reads.
func TestWait_StaleEvents(t *testing.T) {
	tooLarge := answer{status: http.StatusGatewayTimeout, body: tooLargeVersion}
	added := func(version, uid string) string { return scripted.Event("ADDED", webPod(version, uid, "Running")) }
	modified := func(version, uid string) string { return scripted.Event("MODIFIED", webPod(version, uid, "Running")) }
	deleted := func(version, uid string) string { return scripted.Event("DELETED", webPod(version, uid, "Running")) }
	for name, tc := range map[string]struct {
		condition dynamic.WaitCondition
		answers   []answer
		requests  int
		reason    string // why the condition never holds
	}{
		"exists, of a deleted object": {
			dynamic.Exists(), []answer{absent, openStream(added("5", "u") + modified("6", "u") + deleted("15", "u")), absent, absent, {mute: true}}, 4, "it does not exist",
		},
		"exists, of a deleted object that was seen": {
			dynamic.FieldEquals("status.phase", "Failed"), []answer{respond(webPod("7", "u", "Running")), respond(""), absent, openStream(scripted.Event("ADDED", webPod("9", "u", "Failed"))), absent, {mute: true}},
			5, "it does not exist",
		},
		"condition, of a replaced object": {
			dynamic.FieldEquals("status.phase", "Running"), []answer{respond(webPod("20", "v", "Pending")), tooLarge, openStream(added("5", "u") + modified("6", "u")), respond(webPod("20", "v", "Pending"))},
			4, `status.phase is "Pending"`,
		},
		"deleted, while a newer object exists": {
			dynamic.Deleted(), []answer{respond(webPod("20", "v", "Running")), tooLarge, openStream(added("5", "u") + deleted("15", "u") + added("20", "v")), respond(webPod("20", "v", "Running"))},
			4, "it still exists",
		},
		"deleted, of one of two uids": {
			dynamic.Deleted("v"), []answer{respond(webPod("20", "v", "Running")), tooLarge, openStream(added("5", "u") + deleted("15", "u") + added("20", "v")), respond(webPod("20", "v", "Running"))},
			4, "it still exists",
		},
		"deleted, with opaque resourceVersions": {
			dynamic.Deleted(), []answer{respond(webPod("x", "v", "Running")), tooLarge, openStream(deleted("a", "u")), respond(webPod("x", "v", "Running")), respond(webPod("x", "v", "Running"))},
			5, "it still exists",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, server := exchanging(t, tc.answers...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := pods.Wait(ctx, "web", tc.condition)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, tc.reason)
				assert.Len(t, server.seen(), tc.requests)
			})
		})
	}
}

func TestWait_EndsWithTerminalError(t *testing.T) {
	other := errors.New("other")
	fails := dynamic.Matches("the other", func(*unstructured.Object) (bool, error) { return false, other })
	slow := dynamic.Matches("the other", func(*unstructured.Object) (bool, error) { return false, context.DeadlineExceeded })
	isOther := func(err error) bool { return errors.Is(err, other) && !strings.Contains(err.Error(), "not served") }
	isNotServed := func(err error) bool {
		return apierrors.IsNotFound(err) && strings.Contains(err.Error(), `wait for pods "home/web": the resource is not served: `)
	}
	lasting := func(one answer) answer { one.lasts = time.Minute; return one }
	unauthorized := refuses(http.StatusUnauthorized, "Unauthorized")
	for name, tc := range map[string]struct {
		condition  dynamic.WaitCondition
		answers    []answer
		is         func(error) bool
		from, till time.Duration // when it ends
	}{
		"get forbidden":                      {running, []answer{lasting(forbidden)}, apierrors.IsForbidden, 2 * time.Second, 3 * time.Second},
		"unauthorized":                       {running, []answer{lasting(unauthorized)}, apierrors.IsUnauthorized, 2 * time.Second, 3 * time.Second},
		"permission revoked":                 {running, []answer{labelledPod("a"), respond(""), lasting(forbidden)}, apierrors.IsForbidden, 5 * time.Second, 10 * time.Second},
		"path not served":                    {running, []answer{lasting(unserved)}, isNotServed, 5 * time.Second, 8 * time.Second},
		"no longer served":                   {dynamic.Deleted(), []answer{labelledPod("a"), respond(""), lasting(unserved)}, isNotServed, 5 * time.Second, 9 * time.Second},
		"bad request":                        {running, []answer{labelledPod("a"), refuses(http.StatusBadRequest, "BadRequest")}, apierrors.IsBadRequest, 0, 0},
		"condition's error":                  {fails, []answer{labelledPod("a")}, isOther, 0, 0},
		"condition's error after not served": {fails, []answer{{status: 404, body: unserved.body, lasts: 2 * time.Second}, labelledPod("a")}, isOther, 2 * time.Second, 8 * time.Second},
		"condition's time-out":               {slow, []answer{labelledPod("a")}, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }, 0, 0},
		"condition's error, later":           {fails, []answer{absent, openStream(scripted.Event("ADDED", webPod("9", "u", "Pending"))), respond(webPod("9", "u", "Pending"))}, isOther, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, _ := exchanging(t, tc.answers...)
				began := time.Now()
				_, err := pods.Wait(t.Context(), "web", tc.condition)
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
		pods, _ := exchanging(t, answers...)
		began := time.Now()
		_, err := pods.Wait(t.Context(), "web", running)
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
		assert.LessOrEqual(t, time.Since(began), 3*time.Second)
	})
}

// TestWait_StartingServer has errors that a starting server returns for a moment.
func TestWait_StartingServer(t *testing.T) {
	for name, tc := range map[string]struct {
		condition dynamic.WaitCondition
		answers   []answer
	}{
		"denials at the first request": {running, []answer{{status: 403, body: forbidden.body, lasts: 1500 * time.Millisecond}, respond(webPod("9", "u", "Running"))}},
		"denials after a watch":        {running, []answer{respond(webPod("7", "u", "Pending")), respond(""), {status: 401, body: scripted.StatusJSON(401, "Unauthorized"), lasts: 4 * time.Second}, respond(webPod("9", "u", "Running"))}},
		"path not served yet":          {running, []answer{{status: 404, body: unserved.body, lasts: 4 * time.Second}, respond(webPod("9", "u", "Running"))}},
		"not served, object exists":    {dynamic.Deleted(), []answer{respond(webPod("7", "u", "Running")), respond(""), {status: 404, body: unserved.body, lasts: 4 * time.Second}, respond(webPod("7", "u", "Running")), openStream(scripted.Event("DELETED", webPod("9", "u", "Running")))}},
		"not served for moments":       {running, []answer{{status: 404, body: unserved.body, lasts: 4 * time.Second}, respond(webPod("7", "u", "Pending")), {then: bookmark("8"), after: time.Minute}, {status: 404, body: unserved.body, lasts: 4 * time.Second}, respond(webPod("9", "u", "Running"))}},
		"denials before and after":     {running, []answer{{status: 403, body: forbidden.body, lasts: 1500 * time.Millisecond}, {status: 404, body: unserved.body, lasts: 2 * time.Second}, {status: 403, body: forbidden.body, lasts: 1500 * time.Millisecond}, respond(webPod("9", "u", "Running"))}},
		"attempt times out":            {running, []answer{{mute: true}, respond(webPod("9", "u", "Running"))}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := scripted.RoundTripper(t, newExchanges(tc.answers...))
				conn, err := transport.New("http://bubble", &http.Client{Transport: server, Timeout: time.Minute}, &transport.Options{Namespace: "home"})
				require.NoError(t, err)
				client := dynamic.New(conn, nil)
				defer client.Close()
				obj, err := resource(t, client, "pods").Wait(t.Context(), "web", tc.condition)
				require.NoError(t, err)
				assert.Equal(t, "9", obj.GetResourceVersion())
			})
		})
	}
}

// TestWait_Delays compares the delay before the last request, of which jitter adds up to a half.
func TestWait_Delays(t *testing.T) {
	unavailable := answer{status: http.StatusServiceUnavailable, lasts: time.Minute}
	denied := answer{status: http.StatusForbidden, body: forbidden.body, lasts: 4 * time.Second}
	pending := respond(webPod("7", "u", "Pending"))
	for name, tc := range map[string]struct {
		answers []answer
		want    time.Duration
	}{
		"server unavailable":              {[]answer{unavailable}, 5 * time.Second},
		"server unavailable after events": {[]answer{pending, respond(scripted.Event("MODIFIED", webPod("8", "u", "Pending"))), unavailable}, 5 * time.Second},
		"a watch that had events":         {[]answer{unavailable, pending, respond(scripted.Event("MODIFIED", webPod("8", "u", "Pending")))}, 100 * time.Millisecond},
		"a watch that lasted":             {[]answer{unavailable, pending, {then: "<html>", after: 6 * time.Second}}, 100 * time.Millisecond},
		"a watch that was closed at once": {[]answer{unavailable, pending, respond("")}, 5 * time.Second},
		"denials":                         {[]answer{pending, respond(""), denied}, 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, server := exchanging(t, append(tc.answers, respond(webPod("9", "u", "Running")))...)
				_, err := pods.Wait(t.Context(), "web", running)
				require.NoError(t, err)
				requests := server.Requests()
				last := len(requests) - 1
				delay := requests[last].Time.Sub(requests[last-1].Time)
				if name == "a watch that lasted" {
					delay -= 6 * time.Second
				}
				assert.GreaterOrEqual(t, delay, tc.want)
				assert.LessOrEqual(t, delay, tc.want*3/2)
			})
		})
	}
}

func TestWait_RejectsInvalidCalls(t *testing.T) {
	pods, server := exchanging(t)
	exists := []dynamic.WaitCondition{dynamic.Exists()}
	for want, tc := range map[string]struct {
		of         *dynamic.Resource
		name       string
		conditions []dynamic.WaitCondition
	}{
		`get pods: the name is empty`:  {pods, "", exists},
		`one object needs a namespace`: {pods.AllNamespaces(), "web", exists},
		`remove Subresource`:           {pods.Subresource("status"), "web", exists},
		`watch pods "web": there is no condition to wait for: pass one, such as Exists()`: {pods, "web", nil},
		`a WaitCondition is empty: make it with a function such as Condition`:             {pods, "web", []dynamic.WaitCondition{{}}},
		`a condition needs a type and a status`:                                           {pods, "web", []dynamic.WaitCondition{dynamic.Condition("")}},
		`watch pods "web": .spec.items: [*] selects more than`:                            {pods, "web", []dynamic.WaitCondition{dynamic.Exists(), dynamic.FieldEquals("spec.items[*]", 1)}},
		`"a b"`:                              {pods, "web", []dynamic.WaitCondition{dynamic.HasField("a b")}},
		`the value to compare spec.a with: `: {pods, "web", []dynamic.WaitCondition{dynamic.FieldEquals("spec.a", func() {})}},
		`the function for "it" is nil`:       {pods, "web", []dynamic.WaitCondition{dynamic.Matches("it", nil)}},
	} {
		_, err := tc.of.Wait(t.Context(), tc.name, tc.conditions...)
		var refused *dynamic.InvalidRequestError
		require.ErrorAs(t, err, &refused, want)
		require.ErrorContains(t, err, want)
	}
	assert.Empty(t, server.seen())
}

// TestWait_RejectsResourceWithoutWatch waits for a kind that the server only gets.
func TestWait_RejectsResourceWithoutWatch(t *testing.T) {
	client, server := script(t)
	_, err := resource(t, client, "serviceaccounts").Wait(t.Context(), "web", dynamic.Exists())
	require.True(t, apierrors.IsMethodNotSupported(err), "%v", err)
	assert.Empty(t, server.seen())
}

// TestWait_TimeoutHasReasons waits for conditions on an object that never changes.
func TestWait_TimeoutHasReasons(t *testing.T) {
	const stored = `{"kind":"Thing","apiVersion":"v1","metadata":{"name":"web","uid":"u","resourceVersion":"7","generation":2,
		"deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["example.com/a","b"]},"spec":{"replicas":3,"load":1.5,"list":[1],"map":{"a":1},"none":null},"status":{"phase":"Pending",
		"conditions":[{"type":"Available","status":"False","reason":"MinimumReplicasUnavailable","message":"Not enough."},{"type":"Quiet","status":"Unknown"},
			{"type":"Old","status":"True","observedGeneration":1}]}}`
	never := dynamic.Matches("three ready endpoints", func(*unstructured.Object) (bool, error) { return false, nil })
	for want, tc := range map[string]struct {
		stored     string
		conditions []dynamic.WaitCondition
	}{
		`condition Available is "False": MinimumReplicasUnavailable: Not enough.`: {stored, []dynamic.WaitCondition{dynamic.Condition("available")}},
		`condition Quiet is "Unknown"`:                                            {stored, []dynamic.WaitCondition{dynamic.ConditionIs("Quiet", "False")}},
		`condition Old was observed at generation 1, the object is at 2`:          {stored, []dynamic.WaitCondition{dynamic.Condition("Old")}},
		`condition Ready is missing`:                                              {stored, []dynamic.WaitCondition{dynamic.Condition("Ready")}},
		`{.status.phase} is "Pending", not "Running"`:                             {stored, []dynamic.WaitCondition{dynamic.FieldEquals("{.status.phase}", "Running")}},
		`spec.replicas is 3, not "3"`:                                             {stored, []dynamic.WaitCondition{dynamic.FieldEquals("spec.replicas", "3")}},
		`spec.list is a list, not an object`:                                      {stored, []dynamic.WaitCondition{dynamic.FieldEquals("spec.list", map[string]any{})}},
		`spec.absent is missing`:                                                  {stored, []dynamic.WaitCondition{dynamic.FieldEquals("spec.absent", 1)}},
		`spec.none is missing`:                                                    {stored, []dynamic.WaitCondition{dynamic.HasField("spec.none")}},
		`.spec.replicas: is int64, not map[string]any or []any; .spec.load: is float64, not map[string]any or []any`: {stored, []dynamic.WaitCondition{dynamic.HasField("spec.replicas.x"), dynamic.FieldEquals("spec.load.x", 1)}},
		`not yet: three ready endpoints`: {stored, []dynamic.WaitCondition{dynamic.Exists(), never}},
		`it still exists, being deleted since 2026-01-02T03:04:05Z, with the finalizers example.com/a, b`: {stored, []dynamic.WaitCondition{dynamic.Deleted()}},
		`it still exists: `:        {podReply, []dynamic.WaitCondition{dynamic.Deleted()}},
		`it does not exist`:        {"", []dynamic.WaitCondition{dynamic.Exists()}},
		`it does not exist; it d`:  {"", []dynamic.WaitCondition{running, never}},
		`spec.a has another value`: {`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"web"},"spec":{"a":"hidden"}}`, []dynamic.WaitCondition{dynamic.FieldEquals("spec.a", "b")}},
	} {
		t.Run(want, func(t *testing.T) {
			answers := []answer{respond(tc.stored), openStream("")}
			if tc.stored == "" {
				answers[0] = absent
			}
			pods, server := exchanging(t, answers...)
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { // the watch is open: the object has been read
				for len(server.seen()) < 2 {
					time.Sleep(time.Millisecond)
				}
				cancel(context.DeadlineExceeded)
			}()
			_, err := pods.Wait(ctx, "web", tc.conditions...)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, `wait for pods "home/web": `+want)
			assert.NotContains(t, err.Error(), "hidden")
		})
	}
}

func TestWait_TimeoutHasReasonsOfLastState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, _ := exchanging(t, refuses(http.StatusServiceUnavailable, "ServiceUnavailable"), respond(webPod("7", "u", "Pending")),
			openStream(scripted.Event("MODIFIED", webPod("8", "u", "Failed"))))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := pods.Wait(ctx, "web", running)
		assert.EqualError(t, err, `wait for pods "home/web": status.phase is "Failed", not "Running": context deadline exceeded`)
	})
}

func TestWait_TimeoutWithoutObservation(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	<-ctx.Done()
	pods, _ := exchanging(t)
	_, err := pods.Wait(ctx, "web", running)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, `wait for pods "home/web": its state is unknown: context deadline exceeded`)

	client, _ := script(t)
	_, err = resource(t, client, "namespaces").Wait(ctx, "shop", running)
	require.ErrorContains(t, err, `wait for namespaces "shop": its state is unknown: `)

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
	require.ErrorContains(t, err, "its state is unknown: context canceled; the last error: ")
}

func TestFieldEquals_ComparesJSONValues(t *testing.T) {
	const stored = `{"kind":"Thing","apiVersion":"v1","metadata":{"name":"web"},"spec":{"replicas":3,"load":1.0,"on":false,"list":[1,"a"],"map":{"a":1}},
		"status":{"conditions":[{"type":"Ready","reason":"Made"}],"observedGeneration":1}}`
	for _, condition := range []dynamic.WaitCondition{
		dynamic.FieldEquals("spec.replicas", 3), dynamic.FieldEquals(".spec.replicas", int32(3)), dynamic.FieldEquals("{.spec.replicas}", 3.0), dynamic.FieldEquals("spec.load", 1),
		dynamic.FieldEquals("spec.on", false), dynamic.FieldEquals("spec.list", []any{1, "a"}), dynamic.FieldEquals("spec.map", map[string]int{"a": 1}),
		dynamic.FieldEquals("status.conditions[type=Ready].reason", "Made"), dynamic.HasField("spec.on"), dynamic.HasField("spec.list[1]"),
	} {
		pods, _ := exchanging(t, respond(stored))
		_, err := pods.Wait(t.Context(), "web", condition)
		require.NoError(t, err)
	}
}
