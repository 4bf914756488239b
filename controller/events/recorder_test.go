package events_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/controller/events"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/unstructured"
)

// TestRecorder_WritesValidEvents writes them to a real server, which is strict.
func TestRecorder_WritesValidEvents(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	regarding, err := controllertest.Resource(t, client, "configmaps").Namespace(namespace).Create(t.Context(), controllertest.Named("v1", "ConfigMap", "", "web", ""), nil)
	require.NoError(t, err)
	failures := make(chan error, 10)
	recorder, err := events.NewRecorder(t.Context(), client, "example.com/tests", &events.Options{
		Instance: "one", OnError: func(err error) { failures <- err },
	})
	require.NoError(t, err)
	node := controllertest.Named("v1", "Node", "", "n1", "")
	recorder.Record(regarding, events.Event{Type: "Warning", Reason: "DiskFull", Action: "Resizing", Note: "no space left", Related: node})
	recorder.Record(regarding, events.Event{Reason: "Started"})
	for range 5 {
		recorder.Record(regarding, events.Event{Reason: "Started"})
	}
	long := strings.Repeat("ä", 600)
	recorder.Record(controllertest.Named("v1", "Node", "", "n:1", ""), events.Event{Reason: long, Note: long})
	require.NoError(t, recorder.Close(t.Context()))
	assert.Zero(t, recorder.Dropped())
	assert.Empty(t, failures)

	resource := controllertest.Resource(t, client, "events.events.k8s.io")
	written := map[string]map[string]any{}
	for _, in := range []string{namespace, "default"} {
		for event, err := range resource.Namespace(in).List(t.Context(), nil) {
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

func TestRecorder_ReportsRejectedEvents(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	regarding, err := controllertest.Resource(t, client, "configmaps").Namespace(namespace).Create(t.Context(), controllertest.Named("v1", "ConfigMap", "", "web", ""), nil)
	require.NoError(t, err)
	var failure error
	recorder, err := events.NewRecorder(t.Context(), client, "no controller's name!", &events.Options{
		OnError: func(err error) { failure = err },
	})
	require.NoError(t, err)
	recorder.Record(regarding, events.Event{Reason: "Started"})
	require.NoError(t, recorder.Close(t.Context()))
	assert.Equal(t, 1, recorder.Dropped())
	assert.True(t, apierrors.IsInvalid(failure), "%v", failure)
	assert.ErrorContains(t, failure, `write event Started about ConfigMap "web": `)
}

// newRecorder returns a recorder and its server on synctest's clock.
func newRecorder(t *testing.T, opts *events.Options) (*events.Recorder, *controllertest.Server) {
	t.Helper()
	client, server := controllertest.New(t)
	recorder, err := events.NewRecorder(t.Context(), client, "example.com/tests", opts)
	require.NoError(t, err)
	return recorder, server
}

// counts returns the number of occurrences on the server by note.
func counts(server *controllertest.Server) map[string]int {
	all := map[string]int{}
	for _, event := range server.Objects("/events/") {
		count := 1
		if series, ok := event["series"].(map[string]any); ok {
			count = int(series["count"].(float64))
		}
		all[event["note"].(string)] += count
	}
	return all
}

func TestRecorder_RepetitionsAreWrittenMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := newRecorder(t, nil)
		server.Requests()
		began := time.Now()
		var patches []time.Duration
		for range 3000 { // one a second, for 50 minutes
			recorder.Record(controllertest.Pod("web"), events.Event{Reason: "BackOff", Note: "again"})
			synctest.Wait()
			for _, request := range server.Requests() {
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
		assert.Len(t, server.Objects("/events/"), 1)
	})
}

func TestRecorder_SeriesEndsWithoutRepetition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := newRecorder(t, nil)
		for range 2 {
			recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
			time.Sleep(20 * time.Minute)
		}
		require.NoError(t, recorder.Close(t.Context()))
		assert.Len(t, server.Objects("/events/"), 2)
	})
}

// TestRecorder_SeriesEndsAfterLateRepetition repeats an event when its series is about to end and the recorder is busy.
func TestRecorder_SeriesEndsAfterLateRepetition(t *testing.T) {
	for _, repeated := range []bool{false, true} {
		t.Run(fmt.Sprint("repeated again ", repeated), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				recorder, server := newRecorder(t, nil)
				pulled := func() { recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"}) }
				pulled()
				time.Sleep(6*time.Minute - 5*time.Second)
				synctest.Wait()
				server.Fault = func(*http.Request) error { time.Sleep(15 * time.Second); return nil }
				recorder.Record(controllertest.Pod("db"), events.Event{Reason: "Pulled"})
				time.Sleep(10 * time.Second)
				synctest.Wait()
				server.Fault = nil
				pulled()
				if repeated {
					time.Sleep(5*time.Minute + 50*time.Second)
					pulled()
				}
				time.Sleep(20 * time.Minute)
				assert.Len(t, server.Objects("/events/"), 2, "repetitions within six minutes are counted")
				pulled()
				require.NoError(t, recorder.Close(t.Context()))
				assert.Len(t, server.Objects("/events/"), 3)
			})
		})
	}
}

func TestRecorder_LimitsDoNotSumUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, _ := newRecorder(t, nil)
		for i := range 1500 { // more than may wait at a time
			recorder.Record(controllertest.Pod(fmt.Sprint("web-", i)), events.Event{Reason: "Pulled"})
			synctest.Wait()
		}
		require.NoError(t, recorder.Close(t.Context()))
		assert.Zero(t, recorder.Dropped())
	})
}

func TestRecorder_EndedSeriesMakeRoomForNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := newRecorder(t, nil)
		record := func(first, count int) {
			for i := range count {
				recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Failed", Note: fmt.Sprint("attempt ", first+i)})
			}
			time.Sleep(5 * time.Minute)
		}
		record(0, 10)
		record(0, 8)   // the other two have ended after the next minutes
		record(0, 8)   // as these have not
		record(10, 12) // two notes of their own, and ten that are combined
		require.NoError(t, recorder.Close(t.Context()))
		want := map[string]int{"attempt 8": 1, "attempt 9": 1, "attempt 10": 1, "attempt 11": 1, "(combined from similar events): attempt 12": 10}
		for i := range 8 {
			want[fmt.Sprint("attempt ", i)] = 3
		}
		assert.Equal(t, want, counts(server))
	})
}

func TestRecorder_TimesOfSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := newRecorder(t, nil)
		began := time.Now()
		for range 3 {
			recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
			time.Sleep(time.Second)
		}
		require.NoError(t, recorder.Close(t.Context()))
		all := server.Objects("/events/")
		require.Len(t, all, 1)
		series, _ := all[0]["series"].(map[string]any)
		for field, want := range map[any]time.Time{all[0]["eventTime"]: began, series["lastObservedTime"]: began.Add(2 * time.Second)} {
			text, _ := field.(string)
			written, err := time.Parse(time.RFC3339Nano, text)
			require.NoError(t, err)
			assert.WithinDuration(t, want, written, time.Millisecond)
		}
	})
}

func TestRecorder_FieldsOfEvents(t *testing.T) {
	long := strings.Repeat("ä", 600)
	web := controllertest.Named("v1", "Pod", "shop", "web", "u1")
	about := func(kind, namespace, name, uid string) map[string]any {
		fields := map[string]any{"apiVersion": "v1", "kind": kind, "name": name}
		if namespace != "" {
			fields["namespace"] = namespace
		}
		if uid != "" {
			fields["uid"] = uid
		}
		return fields
	}
	for name, tc := range map[string]struct {
		regarding  *unstructured.Object
		event      events.Event
		prefix     string // of the name
		namespace  string
		wantFields map[string]any
	}{
		"all": {
			web, events.Event{Type: "Warning", Reason: "DiskFull", Action: "Resizing", Note: "no space", Related: controllertest.Named("v1", "Node", "", "n1", "")}, "web.", "shop",
			map[string]any{"type": "Warning", "reason": "DiskFull", "action": "Resizing", "note": "no space", "regarding": about("Pod", "shop", "web", "u1"), "related": about("Node", "", "n1", "")},
		},
		"defaults": {
			web, events.Event{Reason: "Pulled"}, "web.", "shop",
			map[string]any{"type": "Normal", "reason": "Pulled", "action": "Pulled", "note": "Pulled", "regarding": about("Pod", "shop", "web", "u1")},
		},
		"cluster-scoped, with an unusual name": {
			controllertest.Named("v1", "Node", "", "n:1", ""), events.Event{Reason: "Pulled"}, "event.", "default",
			map[string]any{"type": "Normal", "reason": "Pulled", "action": "Pulled", "note": "Pulled", "regarding": about("Node", "", "n:1", "")},
		},
		"texts of the maximum length": {
			web, events.Event{Reason: strings.Repeat("r", 128), Note: strings.Repeat("x", 1024)}, "web.", "shop",
			map[string]any{"type": "Normal", "reason": strings.Repeat("r", 128), "action": strings.Repeat("r", 128), "note": strings.Repeat("x", 1024), "regarding": about("Pod", "shop", "web", "u1")},
		},
		"long texts": {
			web, events.Event{Reason: "r" + long, Note: "x" + long}, "web.", "shop",
			map[string]any{"type": "Normal", "reason": "r" + long[:126], "action": "r" + long[:126], "note": "x" + long[:1022], "regarding": about("Pod", "shop", "web", "u1")},
		},
		"not UTF-8": {
			web, events.Event{Reason: "Pulled", Note: "a" + strings.Repeat("\xff", 2000) + "b"}, "web.", "shop",
			map[string]any{"type": "Normal", "reason": "Pulled", "action": "Pulled", "note": "a\ufffdb", "regarding": about("Pod", "shop", "web", "u1")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				recorder, server := newRecorder(t, &events.Options{Instance: "one", OnError: func(err error) { t.Error(err) }})
				recorder.Record(tc.regarding, tc.event)
				require.NoError(t, recorder.Close(t.Context()))
				written := server.Objects("/events/")
				require.Len(t, written, 1)
				metadata, _ := written[0]["metadata"].(map[string]any)
				assert.Equal(t, tc.namespace, metadata["namespace"])
				assert.True(t, strings.HasPrefix(metadata["name"].(string), tc.prefix), metadata["name"])
				assert.NotEmpty(t, written[0]["eventTime"])
				for _, field := range []string{"metadata", "eventTime"} {
					delete(written[0], field)
				}
				maps.Copy(tc.wantFields, map[string]any{
					"apiVersion": "events.k8s.io/v1", "kind": "Event", "reportingController": "example.com/tests", "reportingInstance": "one",
				})
				assert.Equal(t, tc.wantFields, written[0])
			})
		})
	}
}

func TestRecorder_RecreatesDeletedSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := newRecorder(t, nil)
		recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
		synctest.Wait()
		server.Clear()
		recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
		require.NoError(t, recorder.Close(t.Context()))
		assert.Equal(t, map[string]int{"Pulled": 2}, counts(server))
	})
}

func TestRecorder_CombinesManyNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := newRecorder(t, nil)
		for i := range 500 {
			recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Failed", Note: fmt.Sprint("attempt ", i)})
		}
		recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Failed", Note: "attempt 3"})
		recorder.Record(controllertest.Pod("db"), events.Event{Reason: "Failed", Note: "attempt 500"})
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

func TestRecord_NeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := newRecorder(t, nil)
		hang := make(chan struct{})
		server.Fault = func(r *http.Request) error {
			select {
			case <-hang:
				return nil
			case <-r.Context().Done():
				return r.Context().Err()
			}
		}
		for i := range 1500 {
			recorder.Record(controllertest.Pod(fmt.Sprint("pod-", i)), events.Event{Reason: "Pulled"})
		}
		assert.Equal(t, 500, recorder.Dropped())
		close(hang)
		require.NoError(t, recorder.Close(t.Context()))
		assert.Len(t, server.Objects("/events/"), 1000)
		recorder.Record(controllertest.Pod("late"), events.Event{Reason: "Pulled"})
		assert.Equal(t, 501, recorder.Dropped())
		require.NoError(t, recorder.Close(t.Context()), "a second time")
	})
}

func TestRecorder_RetriesUnreachableServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := newRecorder(t, nil)
		back := time.Now().Add(2 * time.Minute)
		server.Fault = func(r *http.Request) error {
			if time.Now().Before(back) {
				return errors.New("connection rejected")
			}
			return nil
		}
		for i := range 10 {
			recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled", Note: fmt.Sprint(i % 5)})
		}
		time.Sleep(10 * time.Minute)
		assert.Equal(t, map[string]int{"0": 2, "1": 2, "2": 2, "3": 2, "4": 2}, counts(server))
		require.NoError(t, recorder.Close(t.Context()))
		assert.Zero(t, recorder.Dropped())
	})
}

func TestRecorder_LostResponseIsWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := newRecorder(t, nil)
		lost := 0
		server.Fault = func(r *http.Request) error {
			if lost++; lost == 1 {
				server.Discard(r)
				return errors.New("connection reset")
			}
			return nil
		}
		recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
		synctest.Wait()
		recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
		time.Sleep(time.Minute)
		require.NoError(t, recorder.Close(t.Context()))
		assert.Len(t, server.Objects("/events/"), 1)
		assert.Equal(t, map[string]int{"Pulled": 2}, counts(server))
	})
}

func TestRecorder_LostResponseOfSingleEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := newRecorder(t, nil)
		lost := 0
		server.Fault = func(r *http.Request) error {
			if lost++; lost == 1 {
				server.Discard(r)
				return errors.New("connection reset")
			}
			return nil
		}
		recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
		require.NoError(t, recorder.Close(t.Context()))
		written := server.Objects("/events/")
		require.Len(t, written, 1)
		assert.NotContains(t, written[0], "series", "the server rejects a series of one event")
	})
}

func TestRecorder_CountsFailuresInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := newRecorder(t, nil)
		requests := 0
		server.Fault = func(*http.Request) error {
			if requests++; requests%2 == 1 {
				return errors.New("connection reset")
			}
			return nil
		}
		for range 20 {
			recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
			time.Sleep(5*time.Minute + 30*time.Second)
		}
		require.NoError(t, recorder.Close(t.Context()))
		assert.Zero(t, recorder.Dropped())
		assert.Equal(t, map[string]int{"Pulled": 20}, counts(server))
	})
}

func TestRecorder_RepetitionDuringRequestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := newRecorder(t, nil)
		server.Fault = func(*http.Request) error { time.Sleep(time.Second); return nil }
		for range 2 {
			recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
			synctest.Wait()
		}
		time.Sleep(9 * time.Second)
		assert.Equal(t, map[string]int{"Pulled": 1}, counts(server))
		time.Sleep(9 * time.Second)
		assert.Equal(t, map[string]int{"Pulled": 2}, counts(server))
		require.NoError(t, recorder.Close(t.Context()))
	})
}

func TestRecorder_DropsInvalidNamespaceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, _ := newRecorder(t, nil)
		recorder.Record(controllertest.Named("v1", "Pod", "a/b", "web", "u"), events.Event{Reason: "Pulled"})
		synctest.Wait()
		assert.Equal(t, 1, recorder.Dropped())
		require.NoError(t, recorder.Close(t.Context()))
	})
}

func TestRecorder_DropsRepetitionsOfRejectedEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := newRecorder(t, nil)
		server.Override = func(w http.ResponseWriter, _ *http.Request) bool {
			time.Sleep(time.Second)
			scripted.Status(http.StatusUnprocessableEntity, "Invalid")(w, nil)
			return true
		}
		for range 3 {
			recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
			synctest.Wait() // the first is under way
		}
		require.NoError(t, recorder.Close(t.Context()))
		assert.Equal(t, 3, recorder.Dropped())
	})
}

func TestClose_WritesAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		fails int           // requests, before the others take a second
		after time.Duration // the first event
		want  time.Duration
	}{
		"a repetition that waits":             {0, 5 * time.Second, time.Second},
		"a repetition during a request":       {0, 0, 2 * time.Second},
		"a repetition during another attempt": {1, 1250 * time.Millisecond, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				recorder, server := newRecorder(t, nil)
				requests := 0
				server.Fault = func(*http.Request) error {
					if requests++; requests <= tc.fails {
						return errors.New("connection reset")
					}
					time.Sleep(time.Second)
					return nil
				}
				recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
				time.Sleep(tc.after)
				synctest.Wait()
				recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
				began := time.Now()
				require.NoError(t, recorder.Close(t.Context()))
				assert.LessOrEqual(t, time.Since(began), tc.want)
				assert.Equal(t, map[string]int{"Pulled": 2}, counts(server))
			})
		})
	}
}

func TestClose_AfterGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, server := newRecorder(t, nil)
		server.Fault = func(r *http.Request) error { <-r.Context().Done(); return r.Context().Err() }
		recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, recorder.Close(ctx), context.DeadlineExceeded)
		require.NoError(t, recorder.Close(t.Context()))
		assert.Equal(t, 1, recorder.Dropped())
	})
}

func TestClose_EndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed error
		recorder, server := newRecorder(t, &events.Options{OnError: func(err error) { failed = err }})
		server.Fault = func(r *http.Request) error { <-r.Context().Done(); return r.Context().Err() }
		recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
		recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
		recorder.Record(controllertest.Pod("db"), events.Event{Reason: "Pulled"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := recorder.Close(ctx)
		assert.Equal(t, time.Second, time.Since(began), "requests are canceled")
		assert.EqualError(t, err, "close the recorder: 3 events are not written: context deadline exceeded")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 3, recorder.Dropped())
		assert.NoError(t, failed, "Close returns it")
	})
}

func TestRecorder_GivesUpOnUnreachableServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures []error
		recorder, server := newRecorder(t, &events.Options{OnError: func(err error) { failures = append(failures, err) }})
		server.Fault = func(*http.Request) error { return errors.New("connection rejected") }
		recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
		time.Sleep(time.Hour)
		assert.Equal(t, 1, recorder.Dropped())
		require.NoError(t, recorder.Close(t.Context()))
		require.Len(t, failures, 1)
		assert.ErrorContains(t, failures[0], "connection rejected")
	})
}

func TestRecord_DropsIncompleteEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures []error
		recorder, _ := newRecorder(t, &events.Options{OnError: func(err error) { failures = append(failures, err) }})
		recorder.Record(nil, events.Event{Reason: "Pulled"})
		recorder.Record(controllertest.Named("v1", "", "shop", "web", ""), events.Event{Reason: "Pulled"})
		recorder.Record(controllertest.Named("v1", "Pod", "shop", "", ""), events.Event{Reason: "Pulled"})
		recorder.Record(controllertest.Pod("web"), events.Event{Note: "no reason"})
		assert.Equal(t, 4, recorder.Dropped())
		assert.Len(t, failures, 4)
		require.NoError(t, recorder.Close(t.Context()))
	})
}

func TestRecord_DropsMetadataOnlyKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures []error
		recorder, server := newRecorder(t, &events.Options{OnError: func(err error) { failures = append(failures, err) }})
		partial := controllertest.Named("meta.k8s.io/v1", "PartialObjectMetadata", "shop", "web", "1")
		recorder.Record(partial, events.Event{Reason: "Pulled"})
		recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled", Related: partial})
		require.NoError(t, recorder.Close(t.Context()))
		require.Len(t, failures, 2)
		assert.EqualError(t, failures[0], `record event "Pulled": kind PartialObjectMetadata of "web" is that of a metadata-only response (set the apiVersion and kind of the object itself)`)
		assert.Empty(t, server.Objects("/events/"))
		assert.Equal(t, 2, recorder.Dropped())
	})
}

// TestRecorder_RetriesTransientErrors rejects the first request of each kind, and then no more.
func TestRecorder_RetriesTransientErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		method  string
		respond http.HandlerFunc
		written map[string]int
	}{
		"request timeout":                       {http.MethodPost, scripted.Status(http.StatusRequestTimeout, "Timeout"), map[string]int{"Pulled": 2}},
		"too many requests":                     {http.MethodPost, scripted.Status(http.StatusTooManyRequests, "TooManyRequests"), map[string]int{"Pulled": 2}},
		"expired":                               {http.MethodPatch, scripted.Status(http.StatusGone, "Expired"), map[string]int{"Pulled": 2}},
		"conflict":                              {http.MethodPatch, scripted.Status(http.StatusConflict, "Conflict"), map[string]int{"Pulled": 2}},
		"a server that starts":                  {http.MethodPost, scripted.Status(http.StatusForbidden, "Forbidden"), map[string]int{"Pulled": 2}},
		"a path that is not served to a create": {http.MethodPost, scripted.NotServed, map[string]int{"Pulled": 2}},
		"a path that is not served to a patch":  {http.MethodPatch, scripted.NotServed, map[string]int{"Pulled": 2}},
		"invalid":                               {http.MethodPost, scripted.Status(http.StatusUnprocessableEntity, "Invalid"), map[string]int{"Pulled": 1}},
		"a namespace that ends": {http.MethodPost, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","details":{"name":"e","causes":[{"reason":"NamespaceTerminating"}]}}`)
		}, map[string]int{"Pulled": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				recorder, server := newRecorder(t, nil)
				rejected := false
				server.Override = func(w http.ResponseWriter, r *http.Request) bool {
					if rejected || r.Method != tc.method {
						return false
					}
					rejected = true
					tc.respond(w, nil)
					return true
				}
				recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
				time.Sleep(time.Minute)
				recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
				time.Sleep(time.Minute)
				require.NoError(t, recorder.Close(t.Context()))
				assert.True(t, rejected)
				assert.Equal(t, tc.written, counts(server))
				assert.Len(t, server.Objects("/events/"), 1, "not written twice")
			})
		})
	}
}

func TestRecorder_LogsDroppedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines := controllertest.Logger()
		recorder, server := newRecorder(t, &events.Options{Logger: log})
		server.Override = func(w http.ResponseWriter, _ *http.Request) bool {
			scripted.Status(http.StatusUnprocessableEntity, "Invalid")(w, nil)
			return true
		}
		recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
		recorder.Record(nil, events.Event{Reason: "Pulled"})
		require.NoError(t, recorder.Close(t.Context()))
		assert.ElementsMatch(t, []string{
			`level=ERROR msg="event dropped" controller=example.com/tests error="record event \"Pulled\": incomplete (it needs an object with kind and name, and a reason)"`,
			`level=ERROR msg="event dropped" controller=example.com/tests error="write event Pulled about Pod \"web\": as scripted"`,
		}, lines())
	})
}

func TestRecorder_ContextErrorsHaveCause(t *testing.T) {
	errCause := errors.New("the process ends")
	for name, prepare := range map[string]func(t *testing.T) func(ctx context.Context) error{
		"NewRecorder": func(t *testing.T) func(context.Context) error {
			client, hang := controllertest.NewHanging(t)
			hang()
			return func(ctx context.Context) error {
				_, err := events.NewRecorder(ctx, client, "example.com/tests", nil)
				return err
			}
		},
		"Close": func(t *testing.T) func(context.Context) error {
			client, hang := controllertest.NewHanging(t)
			recorder, err := events.NewRecorder(t.Context(), client, "example.com/tests", nil)
			require.NoError(t, err)
			hang()
			recorder.Record(controllertest.Pod("web"), events.Event{Reason: "Pulled"})
			return recorder.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call := prepare(t)
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errCause)
				defer cancel()
				err := call(ctx)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.ErrorIs(t, err, errCause)
			})
		})
	}
}

func TestRecorder_ConcurrentUse(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	recorder, err := events.NewRecorder(t.Context(), client, "example.com/tests", &events.Options{Instance: "many"})
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 200 {
				recorder.Record(controllertest.Named("v1", "Pod", namespace, fmt.Sprint("pod-", i%4), "u"), events.Event{Reason: "Pulled"})
			}
		})
	}
	all.Wait()
	require.NoError(t, recorder.Close(t.Context()))
	sum := int64(0)
	page, err := controllertest.Resource(t, client, "events.events.k8s.io").Namespace(namespace).ListPage(t.Context(), &metav1.ListOptions{})
	require.NoError(t, err)
	for _, event := range page.Items {
		count, _, err := unstructured.Get[int64](event, "series", "count")
		require.NoError(t, err)
		sum += count
	}
	assert.Len(t, page.Items, 4)
	assert.EqualValues(t, 1600, sum)
}
