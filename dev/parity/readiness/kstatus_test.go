package readiness_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

// A difference is a reason for which the status of an object is not a peer's.
type difference struct {
	reason string
	// explains reports whether the reason holds for an object, given the peer's status.
	explains func(obj *unstructured.Object, theirs string, ours readiness.Result) bool
}

// reasonFor returns the first reason of a different status, or "".
func reasonFor(differences []difference, obj *unstructured.Object, theirs string, ours readiness.Result) string {
	for _, each := range differences {
		if each.explains(obj, theirs, ours) {
			return each.reason
		}
	}
	return ""
}

// between returns a predicate on kinds ("" for all) and both statuses.
func between(kind string, theirs status.Status, ours readiness.Status) func(*unstructured.Object, string, readiness.Result) bool {
	return func(obj *unstructured.Object, t string, o readiness.Result) bool {
		return (kind == "" || obj.GetKind() == kind) && t == string(theirs) && o.Status == ours
	}
}

// mentionsType reports whether the message has a field of an unexpected type.
func mentionsType(ours readiness.Result) bool {
	return strings.Contains(ours.Message, ": is ") && (strings.Contains(ours.Message, ", not ") || strings.Contains(ours.Message, ", which has no field "))
}

// isCurrentThere reports whether kstatus's status is Current, and anykind's is InProgress by a field.
func isCurrentThere(theirs string, ours readiness.Result, field string) bool {
	return theirs == string(status.CurrentStatus) && ours.Status == readiness.InProgress && strings.HasPrefix(ours.Field, field)
}

// kstatusDifferences are tried in order. theirs is empty if kstatus returned an error or panicked.
var kstatusDifferences = []difference{
	{"a failed Pod is Failed; for kstatus it is Current, because nothing is left to do", between("Pod", status.CurrentStatus, readiness.Failed)},
	{"a paused Deployment is Current once its replicas are updated, as for kubectl rollout status; kstatus waits for the condition Progressing", func(obj *unstructured.Object, theirs string, ours readiness.Result) bool {
		return textAt(obj, "status", "conditions", "[type=Progressing]", "reason") == "DeploymentPaused" && between("Deployment", status.InProgressStatus, readiness.Current)(obj, theirs, ours)
	}},
	{"a workload or PodDisruptionBudget without status.observedGeneration is new; kstatus has this rule for DaemonSets only", func(_ *unstructured.Object, theirs string, ours readiness.Result) bool {
		return ours.Message == "no generation is observed yet" && theirs == string(status.CurrentStatus)
	}},
	{"kstatus has no rule for ReplicationController, APIService and HorizontalPodAutoscaler", func(obj *unstructured.Object, theirs string, ours readiness.Result) bool {
		return slices.Contains([]string{"ReplicationController", "APIService", "HorizontalPodAutoscaler"}, obj.GetKind()) && isCurrentThere(theirs, ours, "")
	}},
	{"a Service of type LoadBalancer needs an address, as for Helm 3 and Argo CD; for kstatus a cluster IP suffices", func(_ *unstructured.Object, theirs string, ours readiness.Result) bool {
		return isCurrentThere(theirs, ours, "status.loadBalancer.ingress")
	}},
	{"a PersistentVolumeClaim that has lost its volume is Failed; kstatus knows Bound only", between("PersistentVolumeClaim", status.InProgressStatus, readiness.Failed)},
	{"a PersistentVolumeClaim with a phase that does not exist is Unknown", between("PersistentVolumeClaim", status.InProgressStatus, readiness.Unknown)},
	{"with the update strategy OnDelete only the update is left to the user; kstatus makes a StatefulSet Current before its pods are ready", func(obj *unstructured.Object, theirs string, ours readiness.Result) bool {
		return textAt(obj, "spec", "updateStrategy", "type") == "OnDelete" && between("StatefulSet", status.CurrentStatus, readiness.InProgress)(obj, theirs, ours)
	}},
	{"with the update strategy OnDelete only the update is left to the user; kstatus waits until the pods of a DaemonSet have been deleted", func(obj *unstructured.Object, theirs string, ours readiness.Result) bool {
		return textAt(obj, "spec", "updateStrategy", "type") == "OnDelete" && between("DaemonSet", status.InProgressStatus, readiness.Current)(obj, theirs, ours)
	}},
	{"the pods of a StatefulSet with minReadySeconds must be available; kstatus reads readyReplicas", func(_ *unstructured.Object, theirs string, ours readiness.Result) bool {
		return isCurrentThere(theirs, ours, "status.availableReplicas")
	}},
	{"a Job that has been suspended, or is about to fail, is InProgress; kstatus reads status.startTime", func(obj *unstructured.Object, theirs string, ours readiness.Result) bool {
		return obj.GetKind() == "Job" && isCurrentThere(theirs, ours, "")
	}},
	{"a PodDisruptionBudget that could not be synced is InProgress; kstatus makes every budget Current", func(obj *unstructured.Object, theirs string, ours readiness.Result) bool {
		return obj.GetKind() == "PodDisruptionBudget" && isCurrentThere(theirs, ours, "status.conditions[type=DisruptionAllowed]")
	}},
	{"names of a CustomResourceDefinition that are not accepted make it Failed also if it is established; kstatus takes the first condition", between("CustomResourceDefinition", status.CurrentStatus, readiness.Failed)},
	{"kstatus does not read a condition's observedGeneration", func(_ *unstructured.Object, theirs string, ours readiness.Result) bool {
		return theirs != "" && ours.Status == readiness.InProgress && strings.HasSuffix(ours.Field, "].observedGeneration")
	}},
	{"a field of an unexpected type decides nothing; kstatus returns an error, or takes a default", func(_ *unstructured.Object, _ string, ours readiness.Result) bool {
		return mentionsType(ours)
	}},
	{"kstatus reads no positive condition but Ready, and of this the statuses True, False and Unknown", func(_ *unstructured.Object, theirs string, ours readiness.Result) bool {
		return isCurrentThere(theirs, ours, "status.") && strings.Contains(ours.Field, "conditions[")
	}},
	{"a route without parents is InProgress; kstatus reads no parents", func(_ *unstructured.Object, theirs string, ours readiness.Result) bool {
		return isCurrentThere(theirs, ours, "status.parents")
	}},
	{"no controller has reported yet; kstatus does not know which kinds have a status", func(_ *unstructured.Object, theirs string, ours readiness.Result) bool {
		return theirs == string(status.CurrentStatus) && ours.Message == "no controller has reported yet"
	}},
	{"kstatus returns an error for a null; for the API it is a field that does not exist", func(obj *unstructured.Object, theirs string, _ readiness.Result) bool {
		return theirs == "" && (isNull(obj, "metadata", "generation") || isNull(obj, "metadata", "deletionTimestamp") || isNull(obj, "status", "observedGeneration"))
	}},
	{"kstatus panics at containerStatuses that are no lists of objects", func(obj *unstructured.Object, theirs string, _ readiness.Result) bool {
		return obj.GetKind() == "Pod" && theirs == ""
	}},
}

func textAt(obj *unstructured.Object, fields ...string) string {
	text, _, _ := unstructured.Get[string](obj, fields...)
	return text
}

func isNull(obj *unstructured.Object, parent, field string) bool {
	fields, _ := obj.Object[parent].(map[string]any)
	value, found := fields[field]
	return found && value == nil
}

// kstatusStatus returns kstatus's status, or "" if it fails.
func kstatusStatus(obj *unstructured.Object) (computed string) {
	defer func() {
		if recover() != nil {
			computed = ""
		}
	}()
	result, err := status.Compute(obj)
	if err != nil {
		return ""
	}
	return string(result.Status)
}

// ourStatus returns the status of an object whose kind has the subresource status.
func ourStatus(t *testing.T, obj *unstructured.Object) readiness.Result {
	t.Helper()
	opts := &readiness.Options{StatusSubresource: new(true)}
	result := readiness.Compute(obj, opts)
	lazy, err := unstructured.As[unstructured.Lazy](obj)
	require.NoError(t, err)
	assert.Equal(t, result, readiness.Compute(lazy, opts), "as a Lazy")
	return result
}

// compareKstatus compares the status of an object with kstatus's, and returns the reason of a difference.
func compareKstatus(t *testing.T, name string, obj *unstructured.Object) (theirs, reason string) {
	t.Helper()
	theirs = kstatusStatus(obj)
	ours := ourStatus(t, obj)
	if theirs == string(ours.Status) || theirs == "" && ours.Status == readiness.Unknown {
		return theirs, ""
	}
	if reason = reasonFor(kstatusDifferences, obj, theirs, ours); reason == "" {
		assert.Fail(t, "another status than kstatus's", "%s: kstatus %q, anykind %s (%s): %v", name, theirs, ours, ours.Field, obj.Object)
	}
	return theirs, reason
}

// kstatusObjects returns the objects in the tests of kstatus by the names of their variables.
func kstatusObjects(t *testing.T) map[string]*unstructured.Object {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/fluxcd/cli-utils/pkg/kstatus/status").Output()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(folder)), "*_test.go"))
	require.NoError(t, err)
	objects := map[string]*unstructured.Object{}
	for _, file := range files {
		positions := token.NewFileSet()
		parsed, err := parser.ParseFile(positions, file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING || !strings.Contains(literal.Value, "\napiVersion:") {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			if strings.Contains(text, "%s") {
				text = fmt.Sprintf(text, time.Now().UTC().Format(time.RFC3339))
			}
			at := positions.Position(literal.Pos())
			objects[fmt.Sprintf("%s:%d", filepath.Base(at.Filename), at.Line)] = readinessObject(t, text)
			return true
		})
	}
	return objects
}

func readinessObject(t *testing.T, text string) *unstructured.Object {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	obj, err := unstructured.Decode(data)
	require.NoError(t, err)
	return obj
}

// moreObjects are of kinds and in states that kstatus's tests lack.
var moreObjects = []string{`
apiVersion: v1
kind: ReplicationController
metadata: {generation: 1}
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 1}
`, `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
status: {conditions: [{type: Available, status: "False"}]}
`, `
apiVersion: example.com/v1
kind: Thing
metadata: {generation: 2}
status: {observedGeneration: 2, conditions: [{type: Synced, status: "True"}, {type: Ready, status: "True", reason: Made, observedGeneration: 2}]}
`, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {generation: 1}
spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}
status: {observedGeneration: 1, replicas: 3, readyReplicas: 3, currentReplicas: 1, updatedReplicas: 2, currentRevision: a, updateRevision: b}
`, `
apiVersion: v1
kind: Pod
metadata: {generation: 1}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "True"}], containerStatuses: [{name: app, state: {waiting: {reason: ImagePullBackOff}}}]}
`, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {generation: 1}
spec: {replicas: 1, minReadySeconds: 5}
status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, currentReplicas: 1, availableReplicas: 1, currentRevision: a, updateRevision: a}
`, `
apiVersion: apps/v1
kind: DaemonSet
metadata: {generation: 1}
spec: {updateStrategy: {type: OnDelete}}
status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2, numberReady: 2}
`, `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {generation: 2}
spec: {parentRefs: [{name: web}]}
status: {parents: [{conditions: [{type: Accepted, status: "True", observedGeneration: 2}]}]}
`, `
apiVersion: example.com/v1
kind: Thing
spec: {}
`}

// TestCompute_KstatusVariations compares the status of what comes of each object by one change: a field that is removed or has
// another value, or a field or condition more.
func TestCompute_KstatusVariations(t *testing.T) {
	objects := kstatusObjects(t)
	for i, text := range moreObjects {
		objects[fmt.Sprintf("moreObjects[%d]", i)] = readinessObject(t, text)
	}
	compared := 0
	occurred := map[string]int{}
	for name, obj := range objects {
		for change, variation := range variations(obj) {
			compared++
			if _, reason := compareKstatus(t, name+" with "+change, variation); reason != "" {
				occurred[reason]++
			}
		}
	}
	t.Logf("%d objects: %v", compared, occurred)
	require.Greater(t, compared, 5000)
	for _, each := range kstatusDifferences {
		assert.Contains(t, occurred, each.reason)
	}
}

// variations returns copies of an object with one change each, by what has changed.
func variations(obj *unstructured.Object) map[string]*unstructured.Object {
	all := map[string]*unstructured.Object{"no change": obj}
	put := func(value any, path ...string) {
		changed := obj.DeepCopy()
		if unstructured.Set(changed, value, path...) == nil { // an error: there is no such place in this object
			all[fmt.Sprintf("%v = %#v", path, value)] = changed
		}
	}
	for _, path := range leaves(obj.Object) {
		changed := obj.DeepCopy()
		if _, err := unstructured.Delete(changed, path...); err == nil {
			all[fmt.Sprintf("%v deleted", path)] = changed
		}
		for _, value := range []any{int64(0), int64(1), int64(2), int64(9), "", "True", "False", "Unknown", "other", "Failed", "ProgressDeadlineExceeded",
			"DeploymentPaused", "NewReplicaSetAvailable", "Unschedulable", "CrashLoopBackOff", "OnDelete", "Succeeded", "Bound", "Lost", true, nil, map[string]any{}, []any{}, []any{"a"}} {
			put(value, path...)
		}
	}
	for _, replicas := range []int64{0, 1, 3} {
		put(replicas, "spec", "replicas")
		put(replicas, "status", "replicas")
		put(replicas, "status", "desiredNumberScheduled")
		put(replicas, "spec", "updateStrategy", "rollingUpdate", "partition")
	}
	put("2026-01-02T03:04:05Z", "metadata", "deletionTimestamp")
	put([]any{map[string]any{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed"}}, "status", "conditions")
	put([]any{}, "status", "parents")
	put(int64(7), "metadata", "generation")
	put("LoadBalancer", "spec", "type")
	put("OnDelete", "spec", "updateStrategy", "type")
	conditions, _, _ := unstructured.Get[[]any](obj, "status", "conditions")
	for _, conditionType := range []string{"Ready", "Reconciling", "Stalled", "Available", "Progressing", "ReplicaFailure", "Complete", "Failed", "Established", "NamesAccepted", "Valid", "Suspended", "Other"} {
		for _, conditionStatus := range []string{"True", "False", "Unknown", "Perhaps"} {
			for _, observed := range []any{nil, int64(0)} {
				condition := map[string]any{"type": conditionType, "status": conditionStatus, "reason": "Other", "message": "a message"}
				if observed != nil {
					condition["observedGeneration"] = observed
				}
				others := slices.DeleteFunc(slices.Clone(conditions), func(item any) bool {
					old, _ := item.(map[string]any)
					return old["type"] == conditionType // the API has one of each type
				})
				put(append(slices.Clone(others), any(condition)), "status", "conditions")
				put(append([]any{condition}, others...), "status", "conditions")
			}
		}
	}
	return all
}

// leaves returns the paths of all values below spec, status and metadata, lists and maps included.
func leaves(obj map[string]any) (paths [][]string) {
	var walk func(value any, path []string)
	walk = func(value any, path []string) {
		if len(path) > 0 {
			paths = append(paths, slices.Clone(path))
		}
		switch value := value.(type) {
		case map[string]any:
			for name, child := range value {
				walk(child, append(slices.Clone(path), name))
			}
		case []any:
			for i, child := range value {
				walk(child, append(slices.Clone(path), strconv.Itoa(i)))
			}
		}
	}
	for _, part := range []string{"metadata", "spec", "status"} {
		if value, found := obj[part]; found {
			walk(value, []string{part})
		}
	}
	return paths
}
