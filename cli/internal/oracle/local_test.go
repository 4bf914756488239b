package oracle

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
)

// newPrograms returns an oracle without fixtures. Its cases run in namespace default.
func newPrograms(t *testing.T) *oracle {
	t.Helper()
	kubeconfig := cluster.Kubeconfig(t)
	return &oracle{
		kubectl:  &program{path: kubectlPath(t), home: t.TempDir(), kubeconfig: kubeconfig, kubectl: kubectlPath(t)},
		anyctl:   &program{path: buildAnyctl(t), home: t.TempDir(), kubeconfig: kubeconfig, kubectl: kubectlPath(t)},
		client:   client.Connect(t, "admin"),
		fixtures: "default",
	}
}

// plugins are shell scripts by file name in two folders of PATH.
var plugins = map[string]string{
	"one/kubectl-foo":          "echo foo $# \"$@\"; exit 7",
	"one/kubectl-foo-bar_baz":  "echo bar-baz $# \"$@\"; cat",
	"one/kubectl_complete-foo": "echo one-$1; echo two; echo :4",
	"two/kubectl-foo":          "echo other",
	"two/kubectl-get":          "echo not run",
	"two/kubectl-create-thing": "echo thing $# \"$@\"",
	"two/kubectl-killed":       "kill -KILL $$",
}

func TestPlugin_SameAsKubectl(t *testing.T) {
	t.Parallel()
	o := newPrograms(t)
	folder := t.TempDir()
	for name, script := range plugins {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "two", "kubectl-text"), nil, 0o600))
	env := []string{"PATH=" + filepath.Join(folder, "one") + ":" + filepath.Join(folder, "two") + ":/nonexistent:/bin:/usr/bin"}
	prefixed := []mask{{`(?m)^Error: `, "error: "}, {`(?m)^\[Debug\].*\n`, ""}, {`(?m)^Unable to read.*\n`, ""}, {`"kubectl `, `"anyctl `}}
	for _, c := range []oracleCase{
		{line: "foo a 'b c' -x --context=none", fails: true},
		{line: "foo bar-baz a", stdin: "input\n"},
		{line: "foo bar a", fails: true},
		{line: "foo -x bar-baz", fails: true},
		{line: "create thing a"},
		{line: "create other", fails: true},
		{line: "create --dry-run=client thing", fails: true},
		{line: "killed", fails: true},
		{line: "fob", fails: true, differs: &difference{[]string{"stderr"}, "kubectl suggests top, whose first letter is different"}},
		{line: "-n default foo", fails: true},
		{line: "plugin list", fails: true},
		{line: "plugin list --name-only", fails: true},
		{line: "plugin nonsense", fails: true},
		{line: "plugin list", env: []string{"PATH=/nonexistent"}, fails: true},
		{line: "__complete fo"},
		{line: "__complete foo ''"},
		{line: "__complete foo bar"},
		{line: "__complete foo bar-baz ''"},
	} {
		c.readOnly = true
		c.env = append(env, c.env...)
		c.masks = append(prefixed, c.masks...)
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			o.compare(t, &c)
		})
	}
}
