package controller_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEventsAreWhatTheServerTakes writes them to a real server, which is strict.
func TestEventsAreWhatTheServerTakes(t *testing.T) {
	client, namespace := newNamespace(t)
	_, regarding := createConfigMap(t, client, namespace, map[string]any{"name": "web"})
	failures := make(chan error, 10)
	recorder, err := controller.NewRecorder(t.Context(), client, "example.com/tests", &controller.RecorderOptions{
		Instance: "one", Failed: func(err error) { failures <- err },
	})
	require.NoError(t, err)
	node := named("v1", "Node", "", "n1", "")
	recorder.Record(regarding, controller.Event{Type: "Warning", Reason: "DiskFull", Action: "Resizing", Note: "no space left", Related: node})
	recorder.Record(regarding, controller.Event{Reason: "Started"})
	for range 5 {
		recorder.Record(regarding, controller.Event{Reason: "Started"})
	}
	long := strings.Repeat("ä", 600)
	recorder.Record(named("v1", "Node", "", "n:1", ""), controller.Event{Reason: long, Note: long})
	require.NoError(t, recorder.Close(t.Context()))
	assert.Zero(t, recorder.Dropped())
	assert.Empty(t, failures)

	events := resource(t, client, "events.events.k8s.io")
	written := map[string]map[string]any{}
	for _, in := range []string{namespace, "default"} {
		for event, err := range events.In(in).List(t.Context(), nil) {
			require.NoError(t, err)
			if event.Object["reportingInstance"] == "one" {
				delete(event.Object, "metadata")
				written[event.Object["reason"].(string)] = event.Object
			}
		}
	}
	require.Len(t, written, 3)
	about := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": namespace, "name": "web", "uid": string(regarding.GetUID())}
	full := written["DiskFull"]
	assert.NotEmpty(t, full["eventTime"])
	for _, field := range []string{"eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedSource"} {
		delete(full, field)
	}
	assert.Equal(t, map[string]any{
		"apiVersion": "events.k8s.io/v1", "kind": "Event", "type": "Warning", "reason": "DiskFull", "action": "Resizing", "note": "no space left",
		"regarding": about, "related": map[string]any{"apiVersion": "v1", "kind": "Node", "name": "n1"},
		"reportingController": "example.com/tests", "reportingInstance": "one",
	}, full)
	started := written["Started"]
	assert.Equal(t, "Normal", started["type"])
	assert.Equal(t, "Started", started["action"])
	series, _ := started["series"].(map[string]any)
	assert.EqualValues(t, 6, series["count"])
	cut := written[strings.Repeat("ä", 64)]
	require.NotNil(t, cut)
	assert.Equal(t, strings.Repeat("ä", 512), cut["note"])
}

func TestWhatTheServerRefusesIsDroppedAndTold(t *testing.T) {
	client, namespace := newNamespace(t)
	_, regarding := createConfigMap(t, client, namespace, map[string]any{"name": "web"})
	var failure error
	recorder, err := controller.NewRecorder(t.Context(), client, "no controller's name!", &controller.RecorderOptions{
		Failed: func(err error) { failure = err },
	})
	require.NoError(t, err)
	recorder.Record(regarding, controller.Event{Reason: "Started"})
	require.NoError(t, recorder.Close(t.Context()))
	assert.Equal(t, 1, recorder.Dropped())
	assert.True(t, apierrors.IsInvalid(failure), "%v", failure)
	assert.ErrorContains(t, failure, `write the event Started about ConfigMap "web": `)
}

// recording gives a recorder and its server on synctest's clock.
func recording(t *testing.T, opts *controller.RecorderOptions) (*controller.Recorder, *memory) {
	t.Helper()
	client, server := inMemory(t)
	recorder, err := controller.NewRecorder(t.Context(), client, "example.com/tests", opts)
	require.NoError(t, err)
	return recorder, server
}

func pod(name string) *unstructured.Object { return named("v1", "Pod", "shop", name, name) }

// counts gives the notes of all events with how often the server knows that they happened.
func counts(server *memory) map[string]int {
	all := map[string]int{}
	for _, event := range server.all("/events/") {
		count := 1
		if series, ok := event["series"].(map[string]any); ok {
			count = int(series["count"].(float64))
		}
		all[event["note"].(string)] += count
	}
	return all
}

func TestRepetitionsAreCountedAndWrittenEverMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := recording(t, nil)
		server.seen()
		began := time.Now()
		var patches []time.Duration
		for range 3000 { // one a second, for 50 minutes
			recorder.Record(pod("web"), controller.Event{Reason: "BackOff", Note: "again"})
			synctest.Wait()
			for _, request := range server.seen() {
				if strings.HasPrefix(request, "PATCH") {
					patches = append(patches, time.Since(began).Round(time.Second))
				}
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		require.Greater(t, len(patches), 5)
		assert.Less(t, len(patches), 20)
		assert.LessOrEqual(t, patches[0], 12*time.Second)
		for i := range patches[1:] {
			assert.LessOrEqual(t, patches[i+1]-patches[i], 5*time.Minute+2*time.Second)
		}
		require.NoError(t, recorder.Close(t.Context()))
		assert.Equal(t, map[string]int{"again": 3000}, counts(server))
		assert.Len(t, server.all("/events/"), 1)
	})
}

func TestASeriesEndsWhenItIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := recording(t, nil)
		for range 2 {
			recorder.Record(pod("web"), controller.Event{Reason: "Pulled"})
			time.Sleep(20 * time.Minute)
		}
		require.NoError(t, recorder.Close(t.Context()))
		assert.Len(t, server.all("/events/"), 2)
	})
}

func TestASeriesThatTheServerForgotIsWrittenAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := recording(t, nil)
		recorder.Record(pod("web"), controller.Event{Reason: "Pulled"})
		synctest.Wait()
		server.mu.Lock()
		clear(server.objects)
		server.mu.Unlock()
		recorder.Record(pod("web"), controller.Event{Reason: "Pulled"})
		require.NoError(t, recorder.Close(t.Context()))
		assert.Equal(t, map[string]int{"Pulled": 2}, counts(server))
	})
}

func TestManyNotesOfOneReasonDoNotFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := recording(t, nil)
		for i := range 500 {
			recorder.Record(pod("web"), controller.Event{Reason: "Failed", Note: fmt.Sprint("attempt ", i)})
		}
		recorder.Record(pod("web"), controller.Event{Reason: "Failed", Note: "attempt 3"})
		recorder.Record(pod("db"), controller.Event{Reason: "Failed", Note: "attempt 500"})
		require.NoError(t, recorder.Close(t.Context()))
		want := map[string]int{"(combined from similar events): attempt 10": 490, "attempt 500": 1}
		for i := range 10 {
			want[fmt.Sprint("attempt ", i)] = 1
		}
		want["attempt 3"] = 2
		assert.Equal(t, want, counts(server))
		assert.Zero(t, recorder.Dropped())
	})
}

func TestRecordNeverBlocksAndCountsWhatItDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := recording(t, nil)
		hang := make(chan struct{})
		server.fault = func(r *http.Request) error {
			select {
			case <-hang:
				return nil
			case <-r.Context().Done():
				return r.Context().Err()
			}
		}
		for i := range 1500 {
			recorder.Record(pod(fmt.Sprint("pod-", i)), controller.Event{Reason: "Pulled"})
		}
		assert.Equal(t, 500, recorder.Dropped())
		close(hang)
		require.NoError(t, recorder.Close(t.Context()))
		assert.Len(t, server.all("/events/"), 1000)
		recorder.Record(pod("late"), controller.Event{Reason: "Pulled"})
		assert.Equal(t, 501, recorder.Dropped())
		require.NoError(t, recorder.Close(t.Context()), "a second time")
	})
}

func TestAServerThatIsAwayForAWhileMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := recording(t, nil)
		back := time.Now().Add(2 * time.Minute)
		server.fault = func(r *http.Request) error {
			if time.Now().Before(back) {
				return errors.New("connection refused")
			}
			return nil
		}
		for i := range 10 {
			recorder.Record(pod("web"), controller.Event{Reason: "Pulled", Note: fmt.Sprint(i % 5)})
		}
		time.Sleep(10 * time.Minute)
		assert.Equal(t, map[string]int{"0": 2, "1": 2, "2": 2, "3": 2, "4": 2}, counts(server))
		require.NoError(t, recorder.Close(t.Context()))
		assert.Zero(t, recorder.Dropped())
	})
}

func TestAnEventWhoseAnswerWasLostIsWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := recording(t, nil)
		lost := 0
		server.fault = func(r *http.Request) error {
			if lost++; lost == 1 {
				w := new(discarded)
				server.answer(w, r)
				return errors.New("connection reset")
			}
			return nil
		}
		recorder.Record(pod("web"), controller.Event{Reason: "Pulled"})
		synctest.Wait()
		recorder.Record(pod("web"), controller.Event{Reason: "Pulled"})
		time.Sleep(time.Minute)
		require.NoError(t, recorder.Close(t.Context()))
		assert.Len(t, server.all("/events/"), 1)
		assert.Equal(t, map[string]int{"Pulled": 2}, counts(server))
	})
}

// discarded is an answer that nobody reads.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header {
	if d.header == nil {
		d.header = http.Header{}
	}
	return d.header
}
func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d *discarded) WriteHeader(int)             {}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed error
		recorder, server := recording(t, &controller.RecorderOptions{Failed: func(err error) { failed = err }})
		server.fault = func(r *http.Request) error { <-r.Context().Done(); return r.Context().Err() }
		recorder.Record(pod("web"), controller.Event{Reason: "Pulled"})
		recorder.Record(pod("web"), controller.Event{Reason: "Pulled"})
		recorder.Record(pod("db"), controller.Event{Reason: "Pulled"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := recorder.Close(ctx)
		assert.EqualError(t, err, "close the recorder: 3 events are not written: context deadline exceeded")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 3, recorder.Dropped())
		assert.NoError(t, failed, "Close says it")
	})
}

func TestAServerThatStaysAwayIsGivenUpOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures []error
		recorder, server := recording(t, &controller.RecorderOptions{Failed: func(err error) { failures = append(failures, err) }})
		server.fault = func(*http.Request) error { return errors.New("connection refused") }
		recorder.Record(pod("web"), controller.Event{Reason: "Pulled"})
		time.Sleep(time.Hour)
		assert.Equal(t, 1, recorder.Dropped())
		require.NoError(t, recorder.Close(t.Context()))
		require.Len(t, failures, 1)
		assert.ErrorContains(t, failures[0], "connection refused")
	})
}

func TestAnEventWithoutWhatItNeedsIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures []error
		recorder, _ := recording(t, &controller.RecorderOptions{Failed: func(err error) { failures = append(failures, err) }})
		recorder.Record(nil, controller.Event{Reason: "Pulled"})
		recorder.Record(named("v1", "", "shop", "web", ""), controller.Event{Reason: "Pulled"})
		recorder.Record(pod("web"), controller.Event{Note: "no reason"})
		assert.Equal(t, 3, recorder.Dropped())
		assert.Len(t, failures, 3)
		require.NoError(t, recorder.Close(t.Context()))
	})
}

func TestRecorder_RefusesMetadataOnlyKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures []error
		recorder, server := recording(t, &controller.RecorderOptions{Failed: func(err error) { failures = append(failures, err) }})
		partial := named("meta.k8s.io/v1", "PartialObjectMetadata", "shop", "web", "1")
		recorder.Record(partial, controller.Event{Reason: "Pulled"})
		recorder.Record(pod("web"), controller.Event{Reason: "Pulled", Related: partial})
		require.NoError(t, recorder.Close(t.Context()))
		require.Len(t, failures, 2)
		assert.EqualError(t, failures[0], `record the event "Pulled" about PartialObjectMetadata "web": the kind is that of a metadata-only answer: set the apiVersion and kind of the object itself`)
		assert.Empty(t, server.all("/events/"))
		assert.Equal(t, 2, recorder.Dropped())
	})
}

// TestRecorder_RetriesWhatMayPass refuses the first request of each kind, and then no more.
func TestRecorder_RetriesWhatMayPass(t *testing.T) {
	for name, tc := range map[string]struct {
		method  string
		answer  func(http.ResponseWriter)
		written map[string]int
	}{
		"request timeout":                       {http.MethodPost, answer(http.StatusRequestTimeout, "Timeout"), map[string]int{"Pulled": 2}},
		"too many requests":                     {http.MethodPost, answer(http.StatusTooManyRequests, "TooManyRequests"), map[string]int{"Pulled": 2}},
		"expired":                               {http.MethodPatch, answer(http.StatusGone, "Expired"), map[string]int{"Pulled": 2}},
		"conflict":                              {http.MethodPatch, answer(http.StatusConflict, "Conflict"), map[string]int{"Pulled": 2}},
		"a server that starts":                  {http.MethodPost, answer(http.StatusForbidden, "Forbidden"), map[string]int{"Pulled": 2}},
		"a path that is not served to a create": {http.MethodPost, notServed, map[string]int{"Pulled": 2}},
		"a path that is not served to a patch":  {http.MethodPatch, notServed, map[string]int{"Pulled": 2}},
		"invalid":                               {http.MethodPost, answer(http.StatusUnprocessableEntity, "Invalid"), map[string]int{"Pulled": 1}},
		"a namespace that ends": {http.MethodPost, func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","details":{"name":"e","causes":[{"reason":"NamespaceTerminating"}]}}`)
		}, map[string]int{"Pulled": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				recorder, server := recording(t, nil)
				refused := false
				server.override = func(w http.ResponseWriter, r *http.Request) bool {
					if refused || r.Method != tc.method {
						return false
					}
					refused = true
					tc.answer(w)
					return true
				}
				recorder.Record(pod("web"), controller.Event{Reason: "Pulled"})
				time.Sleep(time.Minute)
				recorder.Record(pod("web"), controller.Event{Reason: "Pulled"})
				time.Sleep(time.Minute)
				require.NoError(t, recorder.Close(t.Context()))
				assert.True(t, refused)
				assert.Equal(t, tc.written, counts(server))
				assert.Len(t, server.all("/events/"), 1, "not written twice")
			})
		})
	}
}

func answer(code int, reason string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { refuse(w, code, reason) }
}

// notServed answers as a server does that has nothing at a path.
func notServed(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }

func TestOneRecorderIsForManyGoroutines(t *testing.T) {
	client, namespace := newNamespace(t)
	recorder, err := controller.NewRecorder(t.Context(), client, "example.com/tests", &controller.RecorderOptions{Instance: "many"})
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 200 {
				recorder.Record(named("v1", "Pod", namespace, fmt.Sprint("pod-", i%4), "u"), controller.Event{Reason: "Pulled"})
			}
		})
	}
	all.Wait()
	require.NoError(t, recorder.Close(t.Context()))
	sum := int64(0)
	page, err := resource(t, client, "events.events.k8s.io").In(namespace).ListPage(t.Context(), &metav1.ListOptions{})
	require.NoError(t, err)
	for _, event := range page.Items {
		count, _, err := unstructured.Get[int64](event, "series", "count")
		require.NoError(t, err)
		sum += count
	}
	assert.Len(t, page.Items, 4)
	assert.EqualValues(t, 1600, sum)
}
