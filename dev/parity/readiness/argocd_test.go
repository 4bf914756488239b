package readiness_test

import (
	"archive/zip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

// argoObject is an object of Argo CD's tests with the health that they expect.
type argoObject struct {
	name   string // kind folder and file
	health string
	object *unstructured.Object
}

// gitopsEngine has the tests of Argo CD's health of built-in kinds, with the checksum of its version.
var gitopsEngine = [3]string{"github.com/argoproj/gitops-engine", "v0.7.3", "h1:0ZlRTReAJG5Y1PviQ8ZIJq/+VowxWe2uFwoXqYcbtXU="}

// argoObjects returns the objects of the health tests of Argo CD, in the order of their names.
func argoObjects(t *testing.T) []argoObject {
	t.Helper()
	return append(engineObjects(t), customizationObjects(t)...)
}

// moduleFiles returns the files below a folder of a module, by their path in the folder. Objects of the tests of Argo CD need not
// compile with this module's Go, so nothing requires the modules.
func moduleFiles(t *testing.T, module [3]string, folder string) map[string][]byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module[0]+"@"+module[1])
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	output, err := command.Output()
	var downloaded struct{ Sum, Zip, Error string }
	require.NoError(t, json.Unmarshal(output, &downloaded), "%v: %s", err, output)
	require.NotEmpty(t, downloaded.Zip, downloaded.Error) // with a Zip, the error only concerns programs that need a newer Go
	require.Equal(t, module[2], downloaded.Sum)
	archive, err := zip.OpenReader(downloaded.Zip)
	require.NoError(t, err)
	defer func() { _ = archive.Close() }()
	files := map[string][]byte{}
	prefix := module[0] + "@" + module[1] + "/" + folder + "/"
	for _, file := range archive.File {
		name, isBelow := strings.CutPrefix(file.Name, prefix)
		if !isBelow {
			continue
		}
		reader, err := file.Open()
		require.NoError(t, err)
		files[name], err = io.ReadAll(reader)
		require.NoError(t, err)
		require.NoError(t, reader.Close())
	}
	return files
}

// engineObjects returns the objects of gitops-engine: of built-in kinds.
func engineObjects(t *testing.T) (all []argoObject) {
	t.Helper()
	files := moduleFiles(t, gitopsEngine, "pkg/health")
	calls := regexp.MustCompile(`assertAppHealth\(t, "\./testdata/([^"]+)\.yaml", HealthStatus(\w+)\)`)
	for _, call := range calls.FindAllStringSubmatch(string(files["health_test.go"]), -1) {
		obj := readinessObject(t, string(files["testdata/"+call[1]+".yaml"]))
		all = append(all, argoObject{"gitops-engine " + call[1], call[2], obj})
	}
	return all
}

// customizationObjects returns the objects of Argo CD's resource customizations: mostly custom resources.
func customizationObjects(t *testing.T) (all []argoObject) {
	t.Helper()
	list, err := os.ReadFile("../../corpus/modules.txt")
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^(github\.com/argoproj/argo-cd/v3) (\S+) (\S+)$`).FindStringSubmatch(string(list))
	require.Len(t, line, 4)
	files := moduleFiles(t, [3]string(line[1:]), "resource_customizations")
	for name, text := range files {
		folder, file := path.Split(name)
		if file != "health_test.yaml" {
			continue
		}
		var tests struct {
			Tests []struct {
				HealthStatus struct{ Status string }
				InputPath    string
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &tests), name)
		for _, test := range tests.Tests {
			obj := readinessObject(t, string(files[path.Join(folder, test.InputPath)]))
			all = append(all, argoObject{folder + path.Base(test.InputPath), test.HealthStatus.Status, obj})
		}
	}
	return all
}

// argoDifferences are tried in order. theirs is a health status of Argo CD.
var argoDifferences = []difference{
	{"an object that is being deleted is Terminating; Argo CD has no such status", func(_ *unstructured.Object, _ string, ours readiness.Result) bool {
		return ours.Status == readiness.Terminating
	}},
	{"Argo CD's statuses Suspended, Unknown and Missing have no equal: a paused object is Current or InProgress by its fields, and so is an object that the script of Argo CD does not understand", func(_ *unstructured.Object, theirs string, _ readiness.Result) bool {
		return slices.Contains([]string{"Suspended", "Unknown", "Missing"}, theirs)
	}},
	{"a Job is Current once it has started, as for kstatus", func(obj *unstructured.Object, theirs string, ours readiness.Result) bool {
		return obj.GetKind() == "Job" && theirs == "Progressing" && ours.Status == readiness.Current
	}},
	{"an Ingress does not wait for an address, which many controllers never publish", func(obj *unstructured.Object, theirs string, ours readiness.Result) bool {
		return obj.GetKind() == "Ingress" && theirs == "Progressing" && ours.Status == readiness.Current
	}},
	{"a running Pod that is ready is Current whatever its restartPolicy; a container that crashes makes a Pod Failed, also if it is restarted on failure only", func(obj *unstructured.Object, theirs string, ours readiness.Result) bool {
		return obj.GetKind() == "Pod" && theirs == "Progressing" && (ours.Status == readiness.Current || ours.Status == readiness.Failed)
	}},
	{"a CustomResourceDefinition whose condition Established is False for another reason than Installing is Failed, as for kstatus", func(obj *unstructured.Object, theirs string, ours readiness.Result) bool {
		return obj.GetKind() == "CustomResourceDefinition" && theirs == "Progressing" && ours.Status == readiness.Failed
	}},
	{"an autoscaler without metrics is InProgress; Argo CD takes the first healthy condition, here AbleToScale", func(obj *unstructured.Object, theirs string, ours readiness.Result) bool {
		return obj.GetKind() == "HorizontalPodAutoscaler" && theirs == "Healthy" && ours.Status == readiness.InProgress
	}},
	{"no controller has reported yet; Argo CD's script knows that the kind has no controller, or that a missing status is good (in anykind: a Rule)", func(_ *unstructured.Object, theirs string, ours readiness.Result) bool {
		return theirs == "Healthy" && ours.Message == "no controller has reported yet"
	}},
	{"the status, or the condition of a parent, is of another generation; Argo CD's script for the kind ignores it", func(_ *unstructured.Object, theirs string, ours readiness.Result) bool {
		return theirs == "Healthy" && ours.Status == readiness.InProgress && (strings.HasSuffix(ours.Field, "bservedGeneration") || ours.Field == "metadata.generation")
	}},
	{"a condition is not True that Argo CD's script for the kind ignores in this case (in anykind: a Rule)", func(_ *unstructured.Object, theirs string, ours readiness.Result) bool {
		return theirs == "Healthy" && ours.Status == readiness.InProgress && strings.Contains(ours.Field, "conditions[")
	}},
	{"InProgress, not Failed: most controllers try again, and a wait goes on until its deadline. Argo CD calls it Degraded", func(_ *unstructured.Object, theirs string, ours readiness.Result) bool {
		return theirs == "Degraded" && ours.Status == readiness.InProgress
	}},
	{"a positive condition is True; Argo CD's script reads further fields or conditions of the kind (in anykind: a Rule)", func(_ *unstructured.Object, theirs string, ours readiness.Result) bool {
		return theirs != "Healthy" && ours.Status == readiness.Current && strings.Contains(ours.Field, "conditions[")
	}},
	{"no condition that anykind knows; Argo CD's script reads fields or conditions of the kind (in anykind: a Rule)", func(_ *unstructured.Object, theirs string, ours readiness.Result) bool {
		return theirs != "Healthy" && ours.Status == readiness.Current && ours.Field == ""
	}},
	{"a PodDisruptionBudget that permits no disruption does what it is for", func(obj *unstructured.Object, theirs string, ours readiness.Result) bool {
		return obj.GetKind() == "PodDisruptionBudget" && theirs != "Healthy" && ours.Status == readiness.Current
	}},
}

// isEqualHealth reports whether a health status of Argo CD says the same as a status of anykind.
func isEqualHealth(health string, ours readiness.Status) bool {
	return map[string]readiness.Status{"Healthy": readiness.Current, "Progressing": readiness.InProgress, "Degraded": readiness.Failed}[health] == ours
}
