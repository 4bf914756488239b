package parity_test

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

// A readinessDifference is a reason for which the status of an object is not kstatus's.
type readinessDifference struct {
	reason string
	// explains reports whether the reason holds for an object, given the status of kstatus; that is empty if it returned an
	// error or panicked.
	explains func(obj *unstructured.Object, theirs status.Status, ours readiness.Result) bool
}

// readinessDifferences are tried in order.
var readinessDifferences = []readinessDifference{
	{"anykind makes a failed Pod Failed, kstatus Current", func(obj *unstructured.Object, theirs status.Status, ours readiness.Result) bool {
		return obj.GetKind() == "Pod" && textAt(obj, "status", "phase") == "Failed" && theirs == status.CurrentStatus && ours.Status == readiness.Failed
	}},
	{"anykind makes a complete Deployment Current that is paused, as kubectl rollout status does", func(obj *unstructured.Object, theirs status.Status, ours readiness.Result) bool {
		return obj.GetKind() == "Deployment" && textAt(obj, "status", "conditions", "[type=Progressing]", "reason") == "DeploymentPaused" &&
			theirs == status.InProgressStatus && ours.Status == readiness.Current
	}},
	{"anykind makes an object InProgress that no controller has observed, kstatus only DaemonSets", func(_ *unstructured.Object, theirs status.Status, ours readiness.Result) bool {
		return ours.Message == "no generation is observed yet" && theirs == status.CurrentStatus && ours.Status == readiness.InProgress
	}},
	{"kstatus has no rule for ReplicationController and APIService", func(obj *unstructured.Object, theirs status.Status, ours readiness.Result) bool {
		return slices.Contains([]string{"ReplicationController", "APIService"}, obj.GetKind()) && theirs == status.CurrentStatus && ours.Status == readiness.InProgress
	}},
	{"kstatus does not read a condition's observedGeneration", func(_ *unstructured.Object, theirs status.Status, ours readiness.Result) bool {
		return theirs != "" && ours.Status == readiness.InProgress && strings.HasSuffix(ours.Field, "].observedGeneration")
	}},
	{"kstatus takes a default for a field of an unexpected type", func(_ *unstructured.Object, _ status.Status, ours readiness.Result) bool {
		return ours.Status == readiness.Unknown && strings.HasPrefix(ours.Message, ".")
	}},
	{"kstatus ignores a condition Ready whose status is none of three", func(_ *unstructured.Object, theirs status.Status, ours readiness.Result) bool {
		return theirs == status.CurrentStatus && ours.Status == readiness.Unknown && ours.Field == "status.conditions[type=Ready].status"
	}},
	{"kstatus returns an error for a null, anykind takes it for a field that does not exist, as the API does", func(obj *unstructured.Object, theirs status.Status, _ readiness.Result) bool {
		return theirs == "" && (isNull(obj, "metadata", "generation") || isNull(obj, "metadata", "deletionTimestamp") || isNull(obj, "status", "observedGeneration"))
	}},
	{"kstatus panics at containerStatuses that are no lists of objects", func(obj *unstructured.Object, theirs status.Status, _ readiness.Result) bool {
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

// theirStatus is the status by kstatus, empty if it fails.
func theirStatus(obj *unstructured.Object) (computed status.Status) {
	defer func() {
		if recover() != nil {
			computed = ""
		}
	}()
	result, err := status.Compute(obj)
	if err != nil {
		return ""
	}
	return result.Status
}

// compareReadiness compares the status of an object with kstatus's, and returns which difference explains it.
func compareReadiness(t *testing.T, name string, obj *unstructured.Object) (reason string) {
	t.Helper()
	theirs := theirStatus(obj)
	ours := readiness.Compute(obj)
	lazy, err := unstructured.As[unstructured.Lazy](obj)
	require.NoError(t, err)
	assert.Equal(t, ours, readiness.Compute(lazy), "%s, as a Lazy", name)
	if string(theirs) == string(ours.Status) || theirs == "" && ours.Status == readiness.Unknown {
		return ""
	}
	for _, difference := range readinessDifferences {
		if difference.explains(obj, theirs, ours) {
			return difference.reason
		}
	}
	assert.Fail(t, "another status than kstatus's", "%s: kstatus %q, anykind %s (%s): %v", name, theirs, ours, ours.Field, obj.Object)
	return ""
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

// TestReadiness_KstatusObjects compares the status of each object of kstatus's own tests.
func TestReadiness_KstatusObjects(t *testing.T) {
	objects := kstatusObjects(t)
	require.GreaterOrEqual(t, len(objects), 55)
	var different []string
	statuses := map[status.Status]int{}
	for name, obj := range objects {
		statuses[theirStatus(obj)]++
		if reason := compareReadiness(t, name, obj); reason != "" {
			different = append(different, obj.GetKind()+": "+reason)
		}
	}
	t.Logf("%d objects: %v", len(objects), statuses)
	assert.Equal(t, []string{"Pod: " + readinessDifferences[0].reason}, different)
	for _, each := range []status.Status{status.CurrentStatus, status.InProgressStatus, status.FailedStatus} {
		assert.Positive(t, statuses[each], "%s", each)
	}
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
`}

// TestReadiness_KstatusVariations compares the status of what comes of each object by one change: a field that is removed or has
// another value, or a field or condition more.
func TestReadiness_KstatusVariations(t *testing.T) {
	objects := kstatusObjects(t)
	for i, text := range moreObjects {
		objects[fmt.Sprintf("moreObjects[%d]", i)] = readinessObject(t, text)
	}
	compared := 0
	occurred := map[string]int{}
	for name, obj := range objects {
		for change, variation := range variations(obj) {
			compared++
			if reason := compareReadiness(t, name+" with "+change, variation); reason != "" {
				occurred[reason]++
			}
		}
	}
	t.Logf("%d objects: %v", compared, occurred)
	require.Greater(t, compared, 5000)
	for _, difference := range readinessDifferences {
		assert.Contains(t, occurred, difference.reason)
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
	put(int64(7), "metadata", "generation")
	put("LoadBalancer", "spec", "type")
	put("OnDelete", "spec", "updateStrategy", "type")
	conditions, _, _ := unstructured.Get[[]any](obj, "status", "conditions")
	for _, conditionType := range []string{"Ready", "Reconciling", "Stalled", "Available", "Progressing", "ReplicaFailure", "Complete", "Failed", "Established", "NamesAccepted", "Other"} {
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
