//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

func TestInterrupt_ExitCodeOfKubectl(t *testing.T) {
	namespace := runningPod(t, false)
	pods := client.Resource(t, client.Connect(t, "admin"), "pods").Namespace(namespace)
	changes := 0
	for _, c := range []struct{ line, shown string }{
		{"get pods -w -L changed", "web-0"},
		{"get pods -w -o json", `"web-0"`},
		{"get pods -w -o custom-columns=A:.metadata.name,B:.metadata.labels.changed", "web-0"},
		{"logs -f web-0", "hello from the sandbox"},
		{"port-forward web-0 :7", "Forwarding from"},
		{"exec web-0 -- sh -c 'echo begun; sleep 600'", "begun"},
	} {
		t.Run(c.line, func(t *testing.T) {
			var codes []int
			var last *screen
			for _, program := range []string{cluster.Kubectl(t), anyctl(t)} {
				args := append([]string{"-n", namespace}, strings.Fields(c.line)...)
				if before, script, found := strings.Cut(c.line, "'"); found {
					args = append(append([]string{"-n", namespace}, strings.Fields(before)...), strings.TrimSuffix(script, "'"))
				}
				s := startProgram(t, "NO_COLOR=1", program, args...)
				s.waitFor(c.shown)
				if strings.Contains(c.line, " -w") { // kubectl handles the interrupt from the first change on
					changes++
					change := "change-" + strconv.Itoa(changes)
					_, err := pods.Patch(t.Context(), "web-0", types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"`+change+`"}}}`), nil)
					require.NoError(t, err)
					s.waitFor(change)
				}
				s.press("\x03")
				codes = append(codes, s.exitCode())
				last = s
				assert.Equal(t, s.before, s.state(), "the terminal is restored")
			}
			assert.Equal(t, codes[0], codes[1], "exit codes of kubectl and anyctl: %s", last)
		})
	}
}

func TestGet_WatchSurvivesRestart(t *testing.T) {
	cluster.NeedComponents(t, cluster.APIServer)
	c := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, c)
	configMaps := client.Resource(t, c, "configmaps").Namespace(namespace)
	create := func(name string) {
		t.Helper()
		_, err := configMaps.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}}}, nil)
		require.NoError(t, err)
	}
	create("first")
	lines := []string{"get configmaps -w", "get configmaps -w -o name", "get configmaps -w --output-watch-events -L app"}
	var screens []*screen
	for _, line := range lines {
		s := start(t, append([]string{"-n", namespace}, strings.Fields(line)...)...)
		s.waitFor("first")
		screens = append(screens, s)
	}
	cluster.RestartAPIServer(t, true)
	create("second")
	for _, s := range screens {
		s.waitFor("second")
		s.press("\x03")
		assert.Equal(t, 1, s.exitCode(), "%s", s)
		assert.Equal(t, 1, strings.Count(s.String(), "first"), "no object is repeated: %s", s)
	}
}

// TestTable_TerminalWidth compares tables in terminals and with COLUMNS: neither program cuts lines.
func TestTable_TerminalWidth(t *testing.T) {
	namespace := runningPod(t, false)
	for _, variable := range []string{"NO_COLOR=1", "COLUMNS=20"} {
		var shown []string
		for _, program := range []string{cluster.Kubectl(t), anyctl(t)} {
			s := startProgram(t, variable, program, "get", "pods", "-n", namespace, "-o", "custom-columns=NAME:.metadata.name,UID:.metadata.uid,IMAGE:.spec.containers[*].image")
			require.NoError(t, pty.Setsize(s.keys, &pty.Winsize{Cols: 20, Rows: 5}))
			require.Equal(t, 0, s.exitCode(), "%s", s)
			shown = append(shown, strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "").Replace(s.String()))
		}
		assert.Equal(t, shown[0], shown[1], variable)
	}
}

// longLines have more output than a pipe holds.
var longLines = []string{"get --raw /openapi/v2", "get clusterroles -o json", "get clusterroles -o yaml", "get clusterroles,events,configmaps -A -o json"}

func TestPipe_ClosedReaderAsKubectl(t *testing.T) {
	cluster.NeedComponents(t, cluster.APIServer)
	for _, line := range longLines {
		var results []string
		for _, program := range []string{cluster.Kubectl(t), anyctl(t)} {
			cmd := exec.Command("bash", "-c", program+" "+line+" | head -c 1; echo \" status ${PIPESTATUS[0]}\"")
			cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(t), "HOME="+t.TempDir())
			output, err := cmd.CombinedOutput()
			require.NoError(t, err)
			results = append(results, string(output))
		}
		assert.Equal(t, results[0], results[1], line)
	}
}

func TestOutput_FullDevice(t *testing.T) {
	cluster.NeedComponents(t, cluster.APIServer)
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	lines := append([]string{
		"get clusterroles", "get clusterrole view", "get clusterrole view -o name", "describe clusterrole view", "api-resources", "api-versions", "version",
		"config view", "explain pods", "get clusterroles --contexts=admin", "label clusterrole view a=b --dry-run=client",
	}, longLines...)
	for _, line := range lines {
		t.Run(line, func(t *testing.T) {
			cmd := anyctlCommand(t, strings.Fields(line)...)
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			require.NoError(t, err)
			defer full.Close()
			var stderr bytes.Buffer
			cmd.Stdout = full
			cmd.Stderr = &stderr
			require.Error(t, cmd.Run())
			assert.Equal(t, 1, cmd.ProcessState.ExitCode())
			assert.Contains(t, stderr.String(), "no space left on device")
		})
	}
}

// bashWords stands for the function of package bash-completion, which kubectl's completion needs as well.
const bashWords = `_get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cword=$COMP_CWORD; words=("${COMP_WORDS[@]}"); }`

// TestCompletion_SourcedInShells completes a line in the shells that exist.
func TestCompletion_SourcedInShells(t *testing.T) {
	cluster.NeedComponents(t, cluster.APIServer)
	t.Setenv("PATH", filepath.Dir(anyctl(t))+":"+os.Getenv("PATH"))
	for shell, setup := range map[string][]string{
		"bash": {"bash", "--norc", "--noprofile", "-i"},
		"zsh":  {"zsh", "-f", "-i"},
	} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("completion is not sourced: %v", err)
			}
			s := startProgram(t, "PS1=ready> ", setup[0], setup[1:]...)
			s.press(map[string]string{"zsh": "autoload -Uz compinit && compinit -u -D", "bash": bashWords}[shell] + "\r")
			s.press("source <(anyctl completion " + shell + ") && echo source''d\r")
			s.waitFor("sourced")
			s.press("anyctl get configm\t")
			s.waitFor("anyctl get configmaps")
			s.press("\x15anyctl --contex\t")
			s.waitFor("anyctl --context")
			s.press("\x15exit\r")
			assert.Equal(t, 0, s.exitCode(), "%s", s)
		})
	}
}
