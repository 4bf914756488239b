package readiness

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

func TestCompute_Pod(t *testing.T) {
	ago := func(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
	const unschedulable = `"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available"}]`
	waiting := func(phase, list, reason string) string {
		return fmt.Sprintf(`"phase":%q,"conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady"}],%q:[{"name":"a","state":{"running":{}}},
			{"name":"app","state":{"waiting":{"reason":%q,"message":"back-off"}}}]`, phase, list, reason)
	}
	for name, tc := range map[string]struct {
		created, status string
		want            Result
	}{
		"new":             {"", ``, Result{InProgress, "status.phase", "the pod has no phase yet"}},
		"pending":         {"", `"phase":"Pending"`, Result{InProgress, "status.phase", "the pod is pending"}},
		"succeeded":       {"", `"phase":"Succeeded","conditions":[{"type":"Ready","status":"False"}]`, Result{Current, "status.phase", "the pod has succeeded"}},
		"failed":          {"", `"phase":"Failed"`, Result{Failed, "status.phase", "the pod has failed"}},
		"evicted":         {"", `"phase":"Failed","reason":"Evicted","message":"low on memory"`, Result{Failed, "status.phase", "the pod has failed: Evicted: low on memory"}},
		"of another time": {"", `"phase":"Unknown"`, Result{Unknown, "status.phase", `phase is "Unknown"`}},
		"ready": {"", `"phase":"Running","conditions":[{"type":"Ready","status":"True"}]`,
			Result{Current, "status.conditions[type=Ready].status", "condition Ready is True"}},
		"running": {"", `"phase":"Running"`, Result{InProgress, "status.conditions[type=Ready].status", "condition Ready does not exist"}},
		"running, not ready": {"", `"phase":"Running","conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady"}]`,
			Result{InProgress, "status.conditions[type=Ready].status", "condition Ready is False: ContainersNotReady"}},
		"crash loop": {"", waiting("Running", "containerStatuses", "CrashLoopBackOff"),
			Result{Failed, "status.containerStatuses[name=app].state.waiting.reason", "container app is waiting: CrashLoopBackOff: back-off"}},
		"one image missing": {"", waiting("Running", "containerStatuses", "ImagePullBackOff"),
			Result{InProgress, "status.containerStatuses[name=app].state.waiting.reason", "container app is waiting: ImagePullBackOff: back-off"}},
		"image missing": {"", waiting("Pending", "containerStatuses", "ErrImagePull"),
			Result{InProgress, "status.containerStatuses[name=app].state.waiting.reason", "container app is waiting: ErrImagePull: back-off"}},
		"initializing": {"", waiting("Pending", "initContainerStatuses", "CrashLoopBackOff"),
			Result{InProgress, "status.initContainerStatuses[name=app].state.waiting.reason", "container app is waiting: CrashLoopBackOff: back-off"}},
		"starting": {"", waiting("Pending", "containerStatuses", "ContainerCreating"), Result{InProgress, "status.phase", "the pod is pending"}},
		"gated": {"", `"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"SchedulingGated"}]`,
			Result{InProgress, "status.conditions[type=PodScheduled].status", "condition PodScheduled is False: SchedulingGated"}},
		"unschedulable for a second": {ago(time.Second), unschedulable,
			Result{InProgress, "status.conditions[type=PodScheduled].status", "condition PodScheduled is False: Unschedulable: 0/3 nodes are available"}},
		"unschedulable for a minute": {ago(time.Minute), unschedulable,
			Result{Failed, "status.conditions[type=PodScheduled].status", "condition PodScheduled is False: Unschedulable: 0/3 nodes are available"}},
		"phase of another type": {"", `"phase":1`, Result{Unknown, "status.phase", ".status.phase: is int64, not string"}},
	} {
		t.Run(name, func(t *testing.T) {
			checkStatus(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":%q},"status":{%s}}`, tc.created, tc.status), tc.want)
		})
	}
}

func TestCompute_Job(t *testing.T) {
	conditions := func(conditions string) string {
		return `"startTime":"2026-01-02T03:04:05Z","conditions":[` + conditions + `]`
	}
	for name, tc := range map[string]struct {
		status string
		want   Result
	}{
		"new":     {``, Result{InProgress, "status.startTime", "the job has not started"}},
		"started": {`"startTime":"2026-01-02T03:04:05Z","active":2,"failed":1`, Result{Current, "status.startTime", "the job has started: 2 pods active, 0 succeeded, 1 failed"}},
		"complete": {conditions(`{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}`),
			Result{Current, "status.conditions[type=Complete].status", "condition Complete is True"}},
		"failed": {conditions(`{"type":"Complete","status":"False"},{"type":"Failed","status":"True","reason":"BackoffLimitExceeded"}`),
			Result{Failed, "status.conditions[type=Failed].status", "condition Failed is True: BackoffLimitExceeded"}},
		"about to fail": {conditions(`{"type":"FailureTarget","status":"True","reason":"BackoffLimitExceeded"}`),
			Result{InProgress, "status.conditions[type=FailureTarget].status", "condition FailureTarget is True: BackoffLimitExceeded"}},
		"suspended when started": {conditions(`{"type":"Suspended","status":"True"}`), Result{InProgress, "status.conditions[type=Suspended].status", "condition Suspended is True"}},
		"resumed":                {conditions(`{"type":"Suspended","status":"False"}`), Result{Current, "status.startTime", "the job has started: 0 pods active, 0 succeeded, 0 failed"}},
		"suspended": {`"conditions":[{"type":"Suspended","status":"True","reason":"JobSuspended"}]`,
			Result{InProgress, "status.conditions[type=Suspended].status", "condition Suspended is True: JobSuspended"}},
	} {
		t.Run(name, func(t *testing.T) {
			checkStatus(t, `{"apiVersion":"batch/v1","kind":"Job","metadata":{},"status":{`+tc.status+`}}`, tc.want)
		})
	}
	checkStatus(t, `{"apiVersion":"batch/v1","kind":"Job","spec":{"suspend":true},"status":{"startTime":"2026-01-02T03:04:05Z"}}`,
		Result{InProgress, "spec.suspend", "the job is suspended"}) // the controller has yet to see it
}

func TestCompute_OtherBuiltinKinds(t *testing.T) {
	always := Result{Status: Current, Message: "every object of this kind is"}
	crd := func(conditions string) string {
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","status":{"conditions":[` + conditions + `]}}`
	}
	for name, tc := range map[string]struct {
		obj  string
		want Result
	}{
		"ConfigMap": {`{"apiVersion":"v1","kind":"ConfigMap"}`, always},
		"Secret":    {`{"apiVersion":"v1","kind":"Secret"}`, always},
		"CronJob":   {`{"apiVersion":"batch/v1","kind":"CronJob","status":{"conditions":[{"type":"Ready","status":"False"}]}}`, always},
		"Pod of another group": {`{"apiVersion":"example.com/v1","kind":"Pod","status":{"phase":"Failed"}}`,
			Result{Current, "", "no condition or rule says otherwise"}},
		"claim, new":  {`{"apiVersion":"v1","kind":"PersistentVolumeClaim"}`, Result{InProgress, "status.phase", "the claim has no phase yet"}},
		"claim":       {`{"apiVersion":"v1","kind":"PersistentVolumeClaim","status":{"phase":"Bound"}}`, Result{Current, "status.phase", "the claim is bound"}},
		"claim, lost": {`{"apiVersion":"v1","kind":"PersistentVolumeClaim","status":{"phase":"Lost"}}`, Result{Failed, "status.phase", "the claim has lost its volume"}},
		"claim, pending": {`{"apiVersion":"v1","kind":"PersistentVolumeClaim","status":{"phase":"Pending"}}`,
			Result{InProgress, "status.phase", "the claim is pending (with volumeBindingMode WaitForFirstConsumer until a pod uses it)"}},
		"claim, pending with volume": {`{"apiVersion":"v1","kind":"PersistentVolumeClaim","spec":{"volumeName":"a"},"status":{"phase":"Pending"}}`,
			Result{InProgress, "status.phase", "the claim is pending"}},
		"claim, other phase": {`{"apiVersion":"v1","kind":"PersistentVolumeClaim","status":{"phase":"Found"}}`, Result{Unknown, "status.phase", `phase is "Found"`}},
		"service":            {`{"apiVersion":"v1","kind":"Service"}`, Result{Current, "spec.clusterIP", "the service has what it needs of the API server"}},
		"load balancer, new": {`{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer"}}`,
			Result{InProgress, "spec.clusterIP", "the service has no cluster IP"}},
		"load balancer without address": {`{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer","clusterIP":"10.0.0.1"},"status":{"loadBalancer":{}}}`,
			Result{InProgress, "status.loadBalancer.ingress", "the load balancer has no address yet"}},
		"load balancer with external IPs": {`{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer","clusterIP":"10.0.0.1","externalIPs":["192.0.2.1"]}}`,
			Result{Current, "spec.externalIPs", "the service has external IPs"}},
		"load balancer": {`{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer","clusterIP":"10.0.0.1"},"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`,
			Result{Current, "status.loadBalancer.ingress", "the load balancer has an address"}},
		"ingress, new": {`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","status":{"loadBalancer":{}}}`,
			Result{Current, "status.loadBalancer.ingress", "no controller has published an address, which not all controllers do"}},
		"ingress": {`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`,
			Result{Current, "status.loadBalancer.ingress", "the ingress has an address"}},
		"budget, not synced": {`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"generation":1},"status":{"observedGeneration":1,"conditions":[{"type":"DisruptionAllowed","status":"False","reason":"SyncFailed"}]}}`,
			Result{InProgress, "status.conditions[type=DisruptionAllowed].status", "condition DisruptionAllowed is False: SyncFailed"}},
		"budget, too few pods": {`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"generation":1},"status":{"observedGeneration":1,"conditions":[{"type":"DisruptionAllowed","status":"False","reason":"InsufficientPods"}]}}`,
			Result{Current, "status.observedGeneration", "disruptions allowed: 0"}},
		"budget, new": {`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"generation":1}}`,
			Result{InProgress, "status.observedGeneration", "no generation is observed yet"}},
		"budget": {`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"generation":1},"status":{"observedGeneration":1,"disruptionsAllowed":2}}`,
			Result{Current, "status.observedGeneration", "disruptions allowed: 2"}},
		"API service": {`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","status":{"conditions":[{"type":"Available","status":"False","reason":"MissingEndpoints"}]}}`,
			Result{InProgress, "status.conditions[type=Available].status", "condition Available is False: MissingEndpoints"}},
		"definition, new": {crd(``), Result{InProgress, "status.conditions[type=Established].status", "condition Established does not exist"}},
		"definition, installing": {crd(`{"type":"Established","status":"False","reason":"Installing"}`),
			Result{InProgress, "status.conditions[type=Established].status", "condition Established is False: Installing"}},
		"definition, failed": {crd(`{"type":"Established","status":"False","reason":"NotAccepted"}`),
			Result{Failed, "status.conditions[type=Established].status", "condition Established is False: NotAccepted"}},
		"definition, names": {crd(`{"type":"NamesAccepted","status":"False","reason":"PluralConflict"}`),
			Result{Failed, "status.conditions[type=NamesAccepted].status", "condition NamesAccepted is False: PluralConflict"}},
		"definition, names of a change": {crd(`{"type":"Established","status":"True"},{"type":"NamesAccepted","status":"False","reason":"ListKindConflict"}`),
			Result{Failed, "status.conditions[type=NamesAccepted].status", "condition NamesAccepted is False: ListKindConflict"}},
		"definition": {crd(`{"type":"NamesAccepted","status":"True"},{"type":"Established","status":"True"}`),
			Result{Current, "status.conditions[type=Established].status", "condition Established is True"}},
	} {
		t.Run(name, func(t *testing.T) { checkStatus(t, tc.obj, tc.want) })
	}
}

func TestCompute_HorizontalPodAutoscaler(t *testing.T) {
	const (
		able   = `{"type":"AbleToScale","status":"True","reason":"ReadyForNewScale"}`
		active = `{"type":"ScalingActive","status":"True","reason":"ValidMetricFound"}`
	)
	for name, tc := range map[string]struct {
		conditions string
		want       Result
	}{
		"new":        {``, Result{InProgress, "AbleToScale", "condition AbleToScale does not exist"}},
		"no target":  {`{"type":"AbleToScale","status":"False","reason":"FailedGetScale"}`, Result{InProgress, "AbleToScale", "condition AbleToScale is False: FailedGetScale"}},
		"no metrics": {able + `,{"type":"ScalingActive","status":"False","reason":"FailedGetResourceMetric"}`, Result{InProgress, "ScalingActive", "condition ScalingActive is False: FailedGetResourceMetric"}},
		"disabled":   {able + `,{"type":"ScalingActive","status":"False","reason":"ScalingDisabled"}`, Result{Current, "ScalingActive", "condition ScalingActive is False: ScalingDisabled"}},
		"limited":    {able + `,` + active + `,{"type":"ScalingLimited","status":"True","reason":"TooFewReplicas"}`, Result{Current, "ScalingActive", "condition ScalingActive is True: ValidMetricFound"}},
	} {
		t.Run(name, func(t *testing.T) {
			conditionType := tc.want.Field
			tc.want.Field = "status.conditions[type=" + conditionType + "].status"
			checkStatus(t, `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","status":{"conditions":[`+tc.conditions+`]}}`, tc.want)
			tc.want.Field = `metadata.annotations["autoscaling.alpha.kubernetes.io/conditions"]`
			annotation := strconv.Quote(`[` + tc.conditions + `]`)
			checkStatus(t, `{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/conditions":`+annotation+`}}}`, tc.want)
		})
	}
	checkStatus(t, `{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/conditions":"{"}}}`,
		Result{Unknown, `metadata.annotations["autoscaling.alpha.kubernetes.io/conditions"]`, "autoscaling.alpha.kubernetes.io/conditions: unexpected end of JSON input"})
}
