package dynamic_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

// readyPod is the pod "web" with a phase and, if a reason is given, a waiting container.
func readyPod(resourceVersion, phase, ready, waiting string) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","uid":"u","resourceVersion":%q},"status":{"phase":%q,
		"conditions":[{"type":"Ready","status":%q}],"containerStatuses":[{"name":"app","state":{"waiting":{"reason":%q}}}]}}`, resourceVersion, phase, ready, waiting)
}

func TestReady_WaitsThroughCrashes(t *testing.T) {
	pods, _ := exchanging(t, listed(readyPod("7", "Running", "False", "CrashLoopBackOff")), openStream(
		scripted.Event("MODIFIED", readyPod("8", "Running", "False", "CrashLoopBackOff"))+scripted.Event("MODIFIED", readyPod("9", "Running", "True", ""))))
	pod, err := pods.Wait(t.Context(), "web", dynamic.Ready())
	require.NoError(t, err)
	assert.Equal(t, "9", pod.GetResourceVersion())
}

func TestReady_FailureEndsWait(t *testing.T) {
	completed := readiness.Rule{Group: "example.com", Kind: "Task", Failed: []readiness.Check{{Field: "status.exitCode", Values: []string{"1"}}}}
	task := `{"kind":"Task","apiVersion":"example.com/v1","metadata":{"name":"web","resourceVersion":"7"},"status":{"exitCode":1}}`
	for name, tc := range map[string]struct {
		obj   string
		rules []readiness.Rule
		want  readiness.Result
	}{
		"pod":  {readyPod("7", "Failed", "False", "CrashLoopBackOff"), nil, readiness.Result{Status: readiness.Failed, Field: "status.phase", Message: "the pod has failed"}},
		"rule": {task, []readiness.Rule{completed}, readiness.Result{Status: readiness.Failed, Field: "status.exitCode", Message: "status.exitCode is 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			pods, _ := exchanging(t, absent, openStream(scripted.Event("ADDED", tc.obj)))
			_, err := pods.Wait(t.Context(), "web", dynamic.Ready(tc.rules...))
			var failed *dynamic.ReadinessError
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, tc.want, failed.Result)
			require.EqualError(t, err, `wait for pods "home/web": it is Failed: `+tc.want.Message)
		})
	}
}

func TestReady_TimeoutHasReason(t *testing.T) {
	for want, obj := range map[string]string{
		"it is InProgress: container app is waiting: ImagePullBackOff": readyPod("7", "Pending", "False", "ImagePullBackOff"),
		"it is Failed: container app is waiting: CrashLoopBackOff":     readyPod("7", "Running", "False", "CrashLoopBackOff"),
		"it is Terminating: being deleted since ":                      `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","deletionTimestamp":"2026-01-02T03:04:05Z"}}`,
		`it is Unknown: phase is "Lost"`:                               readyPod("7", "Lost", "False", ""),
		"it does not exist":                                            "",
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := absent
				if obj != "" {
					first = listed(obj)
				}
				pods, _ := exchanging(t, first, openStream(""))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := pods.Wait(ctx, "web", dynamic.Ready())
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, `wait for pods "home/web": `+want)
			})
		})
	}
}

func TestReady_RejectsInvalidRule(t *testing.T) {
	pods, server := exchanging(t)
	_, err := pods.Wait(t.Context(), "web", dynamic.Ready(readiness.Rule{Group: "example.com"}))
	var invalid *dynamic.InvalidRequestError
	require.ErrorAs(t, err, &invalid)
	require.ErrorContains(t, err, "rule: it has no kind")
	assert.Empty(t, server.seen())
}

func TestReady_NeedsStatusOfCustomResource(t *testing.T) {
	task := &unstructured.Object{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Task"}}
	unwritten := readiness.Result{Status: readiness.InProgress, Field: "status", Message: "no controller has reported yet"}
	current := readiness.Result{Status: readiness.Current, Message: "no condition or rule says otherwise"}
	offline := readiness.Result{Status: readiness.Current, Message: "there is no status, and it is not known whether the kind has the subresource status"}
	pods, _ := exchanging(t)
	for name, tc := range map[string]struct {
		resource discovery.Resource
		rules    []readiness.Rule
		want     readiness.Result
	}{
		"subresource":    {discovery.Resource{Subresources: []discovery.Subresource{{Name: "status"}}}, nil, unwritten},
		"no subresource": {discovery.Resource{Verbs: []string{"get"}}, nil, current},
		"not discovered": {discovery.Resource{}, nil, offline},
		"no controller": {discovery.Resource{Subresources: []discovery.Subresource{{Name: "status"}}}, []readiness.Rule{{Group: "example.com", Kind: "Task"}},
			readiness.Result{Status: readiness.Current, Message: "every object of this kind is"}},
	} {
		t.Run(name, func(t *testing.T) {
			client := dynamic.New(pods.Conn(), nil)
			assert.Equal(t, tc.want, client.ForAPIResource(&tc.resource).Readiness(task, tc.rules...))
		})
	}
}

func TestHandle_ReadinessOfEachType(t *testing.T) {
	pods, _ := exchanging(t)
	obj, err := unstructured.Decode([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"},"status":{"phase":"Pending"}}`))
	require.NoError(t, err)
	data, err := unstructured.Encode(obj)
	require.NoError(t, err)
	lazy, err := unstructured.DecodeLazy(data)
	require.NoError(t, err)
	type pod struct { // without a kind
		Status struct {
			Phase string `json:"phase"`
		} `json:"status"`
	}
	typed := &pod{}
	typed.Status.Phase = "Pending"
	want := pods.Readiness(obj)
	assert.Equal(t, readiness.InProgress, want.Status)
	assert.Equal(t, want, dynamic.As[unstructured.Lazy](pods).Readiness(lazy))
	assert.Equal(t, want, dynamic.As[pod](pods).Readiness(typed))
	assert.Equal(t, readiness.Unknown, pods.Readiness(nil).Status)
	assert.Equal(t, readiness.Unknown, dynamic.As[chan int](pods).Readiness(new(chan int)).Status)
}

// rolling is a server with a Deployment whose rollout makes progress and then exceeds its deadline.
func rolling() (deployments *dynamic.Resource, closeAll func()) {
	const web = `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"resourceVersion":"%s","name":"web","namespace":"shop","generation":2},"spec":{"replicas":3},
		"status":{"observedGeneration":2,"replicas":4,"updatedReplicas":1,"readyReplicas":3,"availableReplicas":3,"conditions":[{"type":"Available","status":"True"}%s]}}`
	server := scripted.New(resources)
	server.Handle("", scripted.JSON(`{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"1"},"items":[`+fmt.Sprintf(web, "1", "")+`]}`))
	server.Handle("WATCH /apis/apps/v1/namespaces/shop/deployments",
		scripted.Watch(scripted.Event("MODIFIED", fmt.Sprintf(web, "2", `,{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"}`))))
	client, closeAll := connectTo(server)
	return found(client, "deploy").Namespace("shop"), closeAll
}

// The Deployment is available all the time, but its rollout fails.
func ExampleReady() {
	deployments, closeAll := rolling()
	defer closeAll()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // how long the rollout may take
	defer cancel()
	_, err := deployments.Wait(ctx, "web", dynamic.Ready())
	var failed *dynamic.ReadinessError
	if errors.As(err, &failed) {
		fmt.Println(failed.Result.Field)
	}
	fmt.Println(err)
	// Output:
	// status.conditions[type=Progressing].reason
	// wait for deployments.apps "shop/web": it is Failed: condition Progressing is False: ProgressDeadlineExceeded
}

// The status of an object that has been listed: no request is sent.
func ExampleHandle_Readiness() {
	deployments, closeAll := rolling()
	defer closeAll()

	for web, err := range deployments.List(context.Background(), nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(web.GetName(), deployments.Readiness(web))
	}
	// Output:
	// web InProgress: 1 of 3 replicas are updated
}
