package readiness

import (
	"fmt"
	"testing"
)

// workload is an object of a kind in apps/v1 at generation 2.
func workload(kind, spec, status string) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":%q,"metadata":{"name":"web","generation":2},"spec":{%s},"status":{%s}}`, kind, spec, status)
}

func TestCompute_Deployment(t *testing.T) {
	const (
		spec       = `"replicas":3,"progressDeadlineSeconds":600`
		complete   = `"observedGeneration":2,"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3`
		available  = `{"type":"Available","status":"True"}`
		progressed = `{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}`
	)
	status := func(counts, conditions string) string { return counts + `,"conditions":[` + conditions + `]` }
	for name, tc := range map[string]struct {
		spec, status string
		want         Result
	}{
		"new":         {spec, ``, Result{InProgress, "status.observedGeneration", "no generation is observed yet"}},
		"few created": {spec, `"observedGeneration":2,"replicas":1`, Result{InProgress, "status.replicas", "1 of 3 replicas are created"}},
		"quota": {spec, status(`"observedGeneration":2,"replicas":1`, `{"type":"ReplicaFailure","status":"True","reason":"FailedCreate","message":"exceeded quota"}`),
			Result{InProgress, "status.replicas", "1 of 3 replicas are created; condition ReplicaFailure is True: FailedCreate: exceeded quota"}},
		"few updated": {spec, `"observedGeneration":2,"replicas":4,"updatedReplicas":2,"availableReplicas":3`,
			Result{InProgress, "status.updatedReplicas", "2 of 3 replicas are updated"}},
		"too many": {spec, `"observedGeneration":2,"replicas":4,"updatedReplicas":3,"availableReplicas":3`,
			Result{InProgress, "status.replicas", "replicas pending termination: 1"}},
		"few available": {spec, `"observedGeneration":2,"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":1`,
			Result{InProgress, "status.availableReplicas", "1 of 3 replicas are available"}},
		"few ready": {spec, `"observedGeneration":2,"replicas":3,"updatedReplicas":3,"readyReplicas":2,"availableReplicas":3`,
			Result{InProgress, "status.readyReplicas", "2 of 3 replicas are ready"}},
		"available and not complete": {spec, status(`"observedGeneration":2,"replicas":4,"updatedReplicas":1,"readyReplicas":3,"availableReplicas":3`, available),
			Result{InProgress, "status.updatedReplicas", "1 of 3 replicas are updated"}},
		"deadline": {spec, status(`"observedGeneration":2,"replicas":4,"updatedReplicas":1`, available+`,{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded","message":"ReplicaSet \"web-1\" has timed out."}`),
			Result{Failed, "status.conditions[type=Progressing].reason", `condition Progressing is False: ProgressDeadlineExceeded: ReplicaSet "web-1" has timed out.`}},
		"progressing": {spec, status(complete, available+`,{"type":"Progressing","status":"True","reason":"ReplicaSetUpdated"}`),
			Result{InProgress, "status.conditions[type=Progressing].status", "condition Progressing is True: ReplicaSetUpdated"}},
		"no progress": {spec, status(complete, available), Result{InProgress, "status.conditions[type=Progressing].status", "condition Progressing does not exist"}},
		"not available": {spec, status(complete, progressed+`,{"type":"Available","status":"False","reason":"MinimumReplicasUnavailable"}`),
			Result{InProgress, "status.conditions[type=Available].status", "condition Available is False: MinimumReplicasUnavailable"}},
		"complete": {spec, status(complete, available+`,`+progressed),
			Result{Current, "status.conditions[type=Available].status", "replicas updated and available: 3"}},
		"complete without deadline": {`"replicas":3`, status(complete, available),
			Result{Current, "status.conditions[type=Available].status", "replicas updated and available: 3"}},
		"complete with the largest deadline": {`"replicas":3,"progressDeadlineSeconds":2147483647`, status(complete, available),
			Result{Current, "status.conditions[type=Available].status", "replicas updated and available: 3"}},
		"paused when complete": {spec, status(complete, available+`,{"type":"Progressing","status":"Unknown","reason":"DeploymentPaused"}`),
			Result{Current, "status.conditions[type=Available].status", "replicas updated and available: 3"}},
		"none wanted": {`"replicas":0,"progressDeadlineSeconds":600`, status(`"observedGeneration":2`, available+`,`+progressed),
			Result{Current, "status.conditions[type=Available].status", "replicas updated and available: 0"}},
		"replicas of another type": {`"replicas":"3"`, complete, Result{Unknown, "spec.replicas", ".spec.replicas: is string, not int64"}},
	} {
		t.Run(name, func(t *testing.T) { checkStatus(t, workload("Deployment", tc.spec, tc.status), tc.want) })
	}
}

func TestCompute_StatefulSet(t *testing.T) {
	const complete = `"observedGeneration":2,"replicas":3,"readyReplicas":3,"currentReplicas":3`
	for name, tc := range map[string]struct {
		spec, status string
		want         Result
	}{
		"new, of no replicas": {`"replicas":0`, `"replicas":0`, Result{InProgress, "status.observedGeneration", "no generation is observed yet"}},
		"few created":         {`"replicas":3`, `"observedGeneration":2,"replicas":1`, Result{InProgress, "status.replicas", "1 of 3 replicas are created"}},
		"few ready":           {`"replicas":3`, `"observedGeneration":2,"replicas":3`, Result{InProgress, "status.readyReplicas", "0 of 3 replicas are ready"}},
		"too many":            {`"replicas":1`, complete, Result{InProgress, "status.replicas", "replicas pending termination: 2"}},
		"few updated": {`"replicas":3,"updateStrategy":{"rollingUpdate":{"partition":1}}`, complete + `,"updatedReplicas":1`,
			Result{InProgress, "status.updatedReplicas", "1 of 2 replicas are updated"}},
		"partition": {`"replicas":3,"updateStrategy":{"rollingUpdate":{"partition":1}}`, complete + `,"updatedReplicas":2,"currentRevision":"a","updateRevision":"b"`,
			Result{Current, "status.updatedReplicas", "replicas ready: 3, of them updated: 2"}},
		"few current": {`"replicas":3`, `"observedGeneration":2,"replicas":3,"readyReplicas":3,"currentReplicas":2`,
			Result{InProgress, "status.currentReplicas", "2 of 3 replicas are of the current revision"}},
		"revisions": {`"replicas":3`, complete + `,"currentRevision":"a","updateRevision":"b"`,
			Result{InProgress, "status.currentRevision", "revision is a, not yet b"}},
		"complete": {`"replicas":3`, complete + `,"currentRevision":"b","updateRevision":"b"`,
			Result{Current, "status.readyReplicas", "replicas updated and ready: 3"}},
		"OnDelete": {`"replicas":3,"updateStrategy":{"type":"OnDelete"}`, complete + `,"updatedReplicas":1,"currentRevision":"a","updateRevision":"b"`,
			Result{Current, "spec.updateStrategy.type", "replicas ready: 3, of them updated: 1; pods are updated when they are deleted: OnDelete"}},
		"OnDelete, new": {`"replicas":3,"updateStrategy":{"type":"OnDelete"}`, ``, Result{InProgress, "status.observedGeneration", "no generation is observed yet"}},
		"OnDelete, few ready": {`"replicas":3,"updateStrategy":{"type":"OnDelete"}`, `"observedGeneration":2,"replicas":3,"readyReplicas":1`,
			Result{InProgress, "status.readyReplicas", "1 of 3 replicas are ready"}},
		"few available": {`"replicas":3,"minReadySeconds":10`, complete + `,"availableReplicas":2`, Result{InProgress, "status.availableReplicas", "2 of 3 replicas are available"}},
		"partition of all": {`"replicas":3,"updateStrategy":{"rollingUpdate":{"partition":5}}`, complete + `,"currentRevision":"a","updateRevision":"b"`,
			Result{Current, "status.updatedReplicas", "replicas ready: 3, of them updated: 0"}},
	} {
		t.Run(name, func(t *testing.T) { checkStatus(t, workload("StatefulSet", tc.spec, tc.status), tc.want) })
	}
}

func TestCompute_DaemonSet(t *testing.T) {
	for name, tc := range map[string]struct {
		status string
		want   Result
	}{
		"new":           {``, Result{InProgress, "status.observedGeneration", "no generation is observed yet"}},
		"unknown":       {`"observedGeneration":2`, Result{InProgress, "status.desiredNumberScheduled", "the number of pods is not known yet"}},
		"few scheduled": {`"observedGeneration":2,"desiredNumberScheduled":3,"currentNumberScheduled":2`, Result{InProgress, "status.currentNumberScheduled", "2 of 3 pods are scheduled"}},
		"few updated": {`"observedGeneration":2,"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":1`,
			Result{InProgress, "status.updatedNumberScheduled", "1 of 3 pods are updated"}},
		"few available": {`"observedGeneration":2,"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":3,"numberReady":3`,
			Result{InProgress, "status.numberAvailable", "0 of 3 pods are available"}},
		"few ready": {`"observedGeneration":2,"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":3,"numberAvailable":3,"numberReady":2`,
			Result{InProgress, "status.numberReady", "2 of 3 pods are ready"}},
		"complete": {`"observedGeneration":2,"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":3,"numberAvailable":3,"numberReady":3`,
			Result{Current, "status.numberAvailable", "pods updated and available: 3"}},
		"misscheduled": {`"observedGeneration":2,"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":3,"numberAvailable":3,"numberReady":3,"numberMisscheduled":1`,
			Result{Current, "status.numberAvailable", "pods updated and available: 3; pods on nodes that should not have one: 1"}},
		"no nodes": {`"observedGeneration":2,"desiredNumberScheduled":0`, Result{Current, "status.numberAvailable", "pods updated and available: 0"}},
	} {
		t.Run(name, func(t *testing.T) { checkStatus(t, workload("DaemonSet", ``, tc.status), tc.want) })
	}
	checkStatus(t, workload("DaemonSet", `"updateStrategy":{"type":"OnDelete"}`, `"observedGeneration":2,"desiredNumberScheduled":3,"currentNumberScheduled":3,"numberAvailable":3,"numberReady":3`),
		Result{Current, "spec.updateStrategy.type", "pods available: 3; they are updated when they are deleted: OnDelete"})
	checkStatus(t, `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{}}`, Result{InProgress, "metadata.generation", "the object has no generation"})
}

func TestCompute_ReplicaSet(t *testing.T) {
	const complete = `"observedGeneration":2,"replicas":3,"fullyLabeledReplicas":3,"availableReplicas":3,"readyReplicas":3`
	for name, tc := range map[string]struct {
		spec, status string
		want         Result
	}{
		"new, of no replicas": {`"replicas":0`, ``, Result{InProgress, "status.observedGeneration", "no generation is observed yet"}},
		"failure": {`"replicas":3`, complete + `,"conditions":[{"type":"ReplicaFailure","status":"True","reason":"FailedCreate","message":"exceeded quota"}]`,
			Result{InProgress, "status.conditions[type=ReplicaFailure].status", "condition ReplicaFailure is True: FailedCreate: exceeded quota"}},
		"few labeled": {``, `"observedGeneration":2`, Result{InProgress, "status.fullyLabeledReplicas", "0 of 1 replicas are fully labeled"}},
		"few available": {`"replicas":3`, `"observedGeneration":2,"fullyLabeledReplicas":3,"readyReplicas":3`,
			Result{InProgress, "status.availableReplicas", "0 of 3 replicas are available"}},
		"few ready": {`"replicas":3`, `"observedGeneration":2,"fullyLabeledReplicas":3,"availableReplicas":3`,
			Result{InProgress, "status.readyReplicas", "0 of 3 replicas are ready"}},
		"too many": {`"replicas":2`, complete, Result{InProgress, "status.replicas", "replicas pending termination: 1"}},
		"complete": {`"replicas":3`, complete, Result{Current, "status.availableReplicas", "replicas available: 3"}},
	} {
		t.Run(name, func(t *testing.T) { checkStatus(t, workload("ReplicaSet", tc.spec, tc.status), tc.want) })
	}
	checkStatus(t, `{"apiVersion":"v1","kind":"ReplicationController","metadata":{"generation":2},"status":{`+complete+`}}`,
		Result{InProgress, "status.replicas", "replicas pending termination: 2"})
}
