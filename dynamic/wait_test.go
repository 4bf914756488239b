package dynamic_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
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

func openStream(body string) response { return response{body: body, stays: true} }

// foundPod is a list with the pod "web", and absent a list without it.
func foundPod(version, uid, phase string) response { return listed(webPod(version, uid, phase)) }

// listed is a list with a pod, at the pod's resourceVersion.
func listed(pod string) response {
	_, version, _ := strings.Cut(pod, `"resourceVersion":"`)
	version, _, _ = strings.Cut(version, `"`)
	return respond(podList(cmp.Or(version, "6"), pod))
}

const (
	expiredEvent = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`

	listWeb    = "GET …?fieldSelector=metadata.name%3Dweb&limit=500"
	watchFrom6 = "GET …?allowWatchBookmarks=true&fieldSelector=metadata.name%3Dweb&resourceVersion=6&watch=true"
	watchFrom7 = "GET …?allowWatchBookmarks=true&fieldSelector=metadata.name%3Dweb&resourceVersion=7&watch=true"
	watchFrom9 = "GET …?allowWatchBookmarks=true&fieldSelector=metadata.name%3Dweb&resourceVersion=9&watch=true"
)

var (
	absent   = respond(podList("6"))
	unserved = response{status: http.StatusNotFound, body: "404 page not found\n"}
)

// waitRequests returns the requests without the random timeoutSeconds.
func waitRequests(server *exchanges) []string {
	requests := server.seen()
	for i, request := range requests {
		requests[i] = regexp.MustCompile("&timeoutSeconds=[0-9]+").ReplaceAllString(request, "")
	}
	return requests
}

var running = dynamic.FieldEquals("status.phase", "Running")

// TestWait_ReportsProgress has a bookmark, a change without a new reason, and a deletion.
func TestWait_ReportsProgress(t *testing.T) {
	bookmark := `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"8"}}}`
	pods, _ := exchanging(t, absent, openStream(scripted.Event("ADDED", webPod("7", "u", "Pending"))+bookmark+
		scripted.Event("MODIFIED", webPod("9", "u", "Pending"))+scripted.Event("DELETED", webPod("10", "u", "Pending"))+
		scripted.Event("ADDED", webPod("11", "v", "Running"))))
	var progress []string
	pods = pods.WithWaitOptions(&dynamic.WaitOptions{OnProgress: func(p dynamic.WaitProgress) {
		version := "none"
		if p.Object != nil {
			version = p.Object.GetResourceVersion()
		}
		progress = append(progress, version+": "+p.String())
	}})
	_, err := pods.Wait(t.Context(), "web", running)
	require.NoError(t, err)
	pending := `status.phase is "Pending", not "Running"`
	assert.Equal(t, []string{"none: it does not exist", "7: " + pending, "9: " + pending, "none: it does not exist", "11: done"}, progress)
}

// TestWait_Requests compares the requests of each course of a wait.
func TestWait_Requests(t *testing.T) {
	unavailable := response{status: http.StatusServiceUnavailable}
	expired := refuses(http.StatusGone, "Expired")
	tooLarge := response{status: http.StatusGatewayTimeout, body: tooLargeVersion}
	event := func(eventType, version, uid, phase string) string {
		return scripted.Event(eventType, webPod(version, uid, phase))
	}
	for name, tc := range map[string]struct {
		condition dynamic.WaitCondition
		responses []response
		requests  []string
		version   string // of the object that is returned
	}{
		"holds at once": {running, []response{foundPod("7", "u", "Running")}, []string{listWeb}, "7"},
		"holds after an event": {running, []response{foundPod("7", "u", "Pending"), openStream(event("MODIFIED", "8", "u", "Pending") + event("MODIFIED", "9", "u", "Running"))},
			[]string{listWeb, watchFrom7}, "9"},
		"created": {dynamic.Exists(), []response{absent, openStream(event("ADDED", "7", "u", "Pending"))}, []string{listWeb, watchFrom6}, "7"},
		"deleted with its old resourceVersion": {dynamic.Deleted(), []response{foundPod("7", "u", "Pending"), openStream(event("DELETED", "7", "u", "Pending"))},
			[]string{listWeb, watchFrom7}, "7"},
		"deleted and recreated": {running, []response{foundPod("7", "u", "Pending"), openStream(event("DELETED", "8", "u", "Running") + event("ADDED", "9", "v", "Running"))},
			[]string{listWeb, watchFrom7}, "9"},
		"watch closed": {running, []response{foundPod("7", "u", "Pending"), respond(event("MODIFIED", "9", "u", "Pending")), openStream(event("MODIFIED", "10", "u", "Running"))},
			[]string{listWeb, watchFrom7, watchFrom9}, "10"},
		"watch breaks": {running, []response{foundPod("7", "u", "Pending"), respond(`{"type":"MODI`), openStream(event("MODIFIED", "9", "u", "Running"))},
			[]string{listWeb, watchFrom7, watchFrom7}, "9"},
		"expired resourceVersion": {running, []response{foundPod("7", "u", "Pending"), expired, foundPod("9", "u", "Running")}, []string{listWeb, watchFrom7, listWeb}, "9"},
		"expired resourceVersion, as an event": {running, []response{foundPod("7", "u", "Pending"), respond(expiredEvent), foundPod("9", "u", "Running")},
			[]string{listWeb, watchFrom7, listWeb}, "9"},
		"server lags behind the list": {running, []response{foundPod("7", "u", "Pending"), tooLarge, foundPod("9", "u", "Running")}, []string{listWeb, watchFrom7, listWeb}, "9"},
		"deleted and expired":         {dynamic.Deleted(), []response{foundPod("7", "u", "Pending"), expired, absent}, []string{listWeb, watchFrom7, listWeb}, "7"},
		"server unavailable": {running, []response{unavailable, refuses(http.StatusTooManyRequests, "TooManyRequests"), foundPod("7", "u", "Pending"), unavailable, respond("<html>"), openStream(event("MODIFIED", "9", "u", "Running"))},
			[]string{listWeb, listWeb, listWeb, watchFrom7, watchFrom7, watchFrom7}, "9"},
		"server starts and denies": {running, []response{foundPod("7", "u", "Pending"), respond(""), unavailable, forbidden, refuses(http.StatusUnauthorized, "Unauthorized"), openStream(event("MODIFIED", "9", "u", "Running"))},
			[]string{listWeb, watchFrom7, watchFrom7, watchFrom7, watchFrom7, watchFrom7}, "9"},
		"deleted before": {dynamic.Deleted(), []response{absent}, []string{listWeb}, ""},
		"deleted": {dynamic.Deleted(), []response{foundPod("7", "u", "Pending"), openStream(event("MODIFIED", "8", "u", "Pending") + event("DELETED", "9", "u", "Failed"))},
			[]string{listWeb, watchFrom7}, "9"},
		"recreated":        {dynamic.Deleted(), []response{foundPod("7", "u", "Pending"), expired, foundPod("9", "v", "Pending")}, []string{listWeb, watchFrom7, listWeb}, "9"},
		"recreated before": {dynamic.Deleted("u"), []response{foundPod("7", "v", "Pending")}, []string{listWeb}, "7"},
		"one of the uids":  {dynamic.Deleted("t", "u"), []response{foundPod("7", "u", "Pending"), openStream(event("DELETED", "9", "u", "Pending"))}, []string{listWeb, watchFrom7}, "9"},
		"resourceVersions are not numbers": {running, []response{foundPod("7", "u", "Pending"), openStream(event("MODIFIED", "x", "u", "Pending") + event("MODIFIED", "a", "u", "Running"))},
			[]string{listWeb, watchFrom7}, "a"},
		"no resourceVersions": {running, []response{respond(podList("7", webPod("", "u", "Pending"))), openStream(event("MODIFIED", "", "u", "Running"))}, []string{listWeb, watchFrom7}, ""},
		"bookmarks": {running, []response{foundPod("7", "u", "Pending"), respond(bookmark("9")), openStream(event("MODIFIED", "10", "u", "Running"))},
			[]string{listWeb, watchFrom7, watchFrom9}, "10"},
		"field selector ignored": {running, []response{respond(podList("7", otherPod, webPod("7", "u", "Pending"))), openStream(scripted.Event("DELETED", otherPod) + event("MODIFIED", "9", "u", "Running"))},
			[]string{listWeb, watchFrom7}, "9"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, server := exchanging(t, tc.responses...)
				obj, err := pods.Wait(t.Context(), "web", tc.condition)
				require.NoError(t, err)
				assert.Equal(t, tc.requests, waitRequests(server))
				if name == "deleted before" {
					assert.Nil(t, obj)
					return
				}
				assert.Equal(t, tc.version, obj.GetResourceVersion())
			})
		})
	}
}

// otherPod is another running pod.
const otherPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"other","uid":"o","resourceVersion":"5"},"status":{"phase":"Running"}}`

func TestWait_EndsWithTerminalError(t *testing.T) {
	other := errors.New("other")
	fails := dynamic.Matches("the other", func(*unstructured.Object) (bool, error) { return false, other })
	slow := dynamic.Matches("the other", func(*unstructured.Object) (bool, error) { return false, context.DeadlineExceeded })
	isOther := func(err error) bool { return errors.Is(err, other) && !strings.Contains(err.Error(), "not served") }
	isNotServed := func(err error) bool {
		return apierrors.IsNotFound(err) && strings.Contains(err.Error(), `wait for pods "home/web": the resource is not served: `)
	}
	lasting := func(one response) response { one.lasts = time.Minute; return one }
	unauthorized := refuses(http.StatusUnauthorized, "Unauthorized")
	for name, tc := range map[string]struct {
		condition  dynamic.WaitCondition
		responses  []response
		is         func(error) bool
		from, till time.Duration // when it ends
	}{
		"list forbidden":                     {running, []response{lasting(forbidden)}, apierrors.IsForbidden, 2 * time.Second, 3 * time.Second},
		"unauthorized":                       {running, []response{lasting(unauthorized)}, apierrors.IsUnauthorized, 2 * time.Second, 3 * time.Second},
		"permission revoked":                 {running, []response{foundPod("7", "u", "Pending"), respond(""), lasting(forbidden)}, apierrors.IsForbidden, 5 * time.Second, 10 * time.Second},
		"path not served":                    {running, []response{lasting(unserved)}, isNotServed, 5 * time.Second, 8 * time.Second},
		"no longer served":                   {dynamic.Deleted(), []response{foundPod("7", "u", "Pending"), respond(""), lasting(unserved)}, isNotServed, 5 * time.Second, 9 * time.Second},
		"bad request":                        {running, []response{foundPod("7", "u", "Pending"), refuses(http.StatusBadRequest, "BadRequest")}, apierrors.IsBadRequest, 0, 0},
		"condition's error":                  {fails, []response{foundPod("7", "u", "Pending")}, isOther, 0, 0},
		"condition's error after not served": {fails, []response{{status: 404, body: unserved.body, lasts: 2 * time.Second}, foundPod("7", "u", "Pending")}, isOther, 2 * time.Second, 8 * time.Second},
		"condition's time-out":               {slow, []response{foundPod("7", "u", "Pending")}, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }, 0, 0},
		"condition's error, later":           {fails, []response{absent, openStream(scripted.Event("ADDED", webPod("9", "u", "Pending")))}, isOther, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, _ := exchanging(t, tc.responses...)
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

// TestWait_WatchForbidden lets the user list the object, but not watch it.
func TestWait_WatchForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, _ := exchanging(t, foundPod("7", "u", "Pending"), response{status: http.StatusForbidden, body: forbidden.body, lasts: time.Minute})
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
		responses []response
	}{
		"denials at the first request": {running, []response{{status: 403, body: forbidden.body, lasts: 1500 * time.Millisecond}, foundPod("9", "u", "Running")}},
		"denials after a watch":        {running, []response{foundPod("7", "u", "Pending"), respond(""), {status: 401, body: scripted.StatusJSON(401, "Unauthorized"), lasts: 4 * time.Second}, openStream(scripted.Event("MODIFIED", webPod("9", "u", "Running")))}},
		"path not served yet":          {running, []response{{status: 404, body: unserved.body, lasts: 4 * time.Second}, foundPod("9", "u", "Running")}},
		"not served, object exists":    {dynamic.Deleted(), []response{foundPod("7", "u", "Running"), respond(""), {status: 404, body: unserved.body, lasts: 4 * time.Second}, openStream(scripted.Event("DELETED", webPod("9", "u", "Running")))}},
		"not served for moments":       {running, []response{{status: 404, body: unserved.body, lasts: 4 * time.Second}, foundPod("7", "u", "Pending"), {then: bookmark("8"), after: time.Minute}, {status: 404, body: unserved.body, lasts: 4 * time.Second}, openStream(scripted.Event("MODIFIED", webPod("9", "u", "Running")))}},
		"denials before and after":     {running, []response{{status: 403, body: forbidden.body, lasts: 1500 * time.Millisecond}, {status: 404, body: unserved.body, lasts: 2 * time.Second}, {status: 403, body: forbidden.body, lasts: 1500 * time.Millisecond}, foundPod("9", "u", "Running")}},
		"attempt times out":            {running, []response{{mute: true}, foundPod("9", "u", "Running")}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := scripted.RoundTripper(t, newExchanges(tc.responses...))
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
	unavailable := response{status: http.StatusServiceUnavailable, lasts: time.Minute}
	denied := response{status: http.StatusForbidden, body: forbidden.body, lasts: 4 * time.Second}
	pending := foundPod("7", "u", "Pending")
	for name, tc := range map[string]struct {
		responses []response
		want      time.Duration
	}{
		"server unavailable":              {[]response{unavailable}, 5 * time.Second},
		"server unavailable after events": {[]response{pending, respond(scripted.Event("MODIFIED", webPod("8", "u", "Pending"))), unavailable}, 5 * time.Second},
		"a watch that had events":         {[]response{unavailable, pending, respond(scripted.Event("MODIFIED", webPod("8", "u", "Pending")))}, 5 * time.Second},
		"a watch that lasted":             {[]response{unavailable, pending, {then: "<html>", after: 10 * time.Second}}, 100 * time.Millisecond},
		"a watch that was closed at once": {[]response{unavailable, pending, respond("")}, 5 * time.Second},
		"denials":                         {[]response{pending, respond(""), denied}, 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				last := foundPod("9", "u", "Running")
				if len(tc.responses) > 1 { // the list has succeeded
					last = openStream(scripted.Event("MODIFIED", webPod("9", "u", "Running")))
				}
				pods, server := exchanging(t, append(tc.responses, last)...)
				_, err := pods.Wait(t.Context(), "web", running)
				require.NoError(t, err)
				requests := server.Requests()
				end := len(requests) - 1
				delay := requests[end].Time.Sub(requests[end-1].Time)
				if name == "a watch that lasted" {
					delay -= 10 * time.Second
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
			responses := []response{absent, openStream("")}
			if tc.stored != "" {
				responses[0] = listed(tc.stored)
			}
			pods, server := exchanging(t, responses...)
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
		pods, _ := exchanging(t, refuses(http.StatusServiceUnavailable, "ServiceUnavailable"), foundPod("7", "u", "Pending"),
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

	responses := make([]response, 100)
	for i := range responses {
		responses[i] = refuses(http.StatusServiceUnavailable, "ServiceUnavailable")
	}
	pods, server := exchanging(t, responses...)
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
		pods, _ := exchanging(t, listed(stored))
		_, err := pods.Wait(t.Context(), "web", condition)
		require.NoError(t, err)
	}
}
