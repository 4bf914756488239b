package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"

	"github.com/anykind/anykind/dev/internal/page"
)

const goMod = `module github.com/anykind/anykind/compat

go 1.26.0

require (
	github.com/anykind/anykind v0.1.0
	github.com/stretchr/testify v1.12.1
	k8s.io/apimachinery v0.34.0
	k8s.io/client-go v0.34.0
	k8s.io/klog/v2 v2.130.1
	sigs.k8s.io/yaml v1.6.0
)

require k8s.io/kube-openapi v0.0.0-20250710124328-f3f2b991d03b // indirect
`

func TestSetVersion_KubernetesLibrariesOnly(t *testing.T) {
	file, err := modfile.Parse("go.mod", []byte(goMod), nil)
	require.NoError(t, err)
	oldest, err := setVersion(file, "v0.36.6", "/checkout")
	require.NoError(t, err)
	assert.Empty(t, oldest)
	required := map[string]string{}
	for _, one := range file.Require {
		required[one.Mod.Path] = one.Mod.Version
	}
	assert.Equal(t, map[string]string{
		"github.com/anykind/anykind": "v0.1.0", "github.com/stretchr/testify": "v1.12.1",
		"k8s.io/apimachinery": "v0.36.6", "k8s.io/client-go": "v0.36.6",
	}, required)
	require.Len(t, file.Replace, 1)
	assert.Equal(t, "/checkout", file.Replace[0].New.Path)
}

func TestSetVersion_OlderThanRequired(t *testing.T) {
	file, err := modfile.Parse("go.mod", []byte(goMod), nil)
	require.NoError(t, err)
	oldest, err := setVersion(file, "v0.33.0", "/checkout")
	require.NoError(t, err)
	assert.Equal(t, "v0.34.0", oldest)
}

func TestTable_BetweenMarkers(t *testing.T) {
	results := &table{versions: []string{"v0.34.0", "v0.37.2"}, rows: []row{{"example.com/m", []string{"needs v0.37.2", "passes"}}}}
	text, err := page.Replace("a\n"+beginMarker+"old\n"+endMarker+"\nb\n", beginMarker, endMarker, results.markdown())
	require.NoError(t, err)
	assert.Equal(t, "a\n"+beginMarker+"| module | v0.34.0 | v0.37.2 |\n|---|---|---|\n| `example.com/m` | needs v0.37.2 | passes |\n"+endMarker+"\nb\n", text)
	_, err = page.Replace("a\n"+endMarker, beginMarker, endMarker, "")
	require.Error(t, err)
}

// TestSupportedVersions_SameEverywhere compares the list with the targets and jobs that test its versions.
func TestSupportedVersions_SameEverywhere(t *testing.T) {
	supported := strings.Split(supportedVersions, ",")
	oldest := supported[0]
	newest := supported[len(supported)-1]
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	assert.Contains(t, string(makefile), "go run ./dev/versions -versions "+oldest+"\n")
	workflow, err := os.ReadFile("../../.github/workflows/ci.yml")
	require.NoError(t, err)
	matrix := regexp.MustCompile(`version: \[(.*)\]`).FindSubmatch(workflow)
	require.NotNil(t, matrix)
	assert.Equal(t, strings.Join(supported, ", "), string(matrix[1]))

	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/apimachinery", "k8s.io/client-go")
	list.Dir = "../.."
	list.Env = append(os.Environ(), "GOWORK=")
	selected, err := list.Output()
	require.NoError(t, err)
	assert.Equal(t, newest+"\n"+newest+"\n", string(selected), "go.work selects the newest version")
}
