package flags_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/unstructured/manifest"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// parse returns the files of a command line.
func parse(t *testing.T, args ...string) *flags.Files {
	t.Helper()
	files := &flags.Files{Reader: manifest.Reader{In: strings.NewReader(configMap)}}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	files.AddFlags(fs, "to read")
	require.NoError(t, fs.Parse(args))
	return files
}

func TestFiles_AddFlags(t *testing.T) {
	for _, c := range []struct {
		args      []string
		want      []string
		recursive bool
		err       string
	}{
		{nil, nil, false, ""},
		{[]string{"-f", "-"}, []string{"-"}, false, ""},
		{[]string{"-f", "a.yaml,b", "--filename", "c", "-R"}, []string{"a.yaml", "b", "c"}, true, `the path "a.yaml" does not exist`},
		{[]string{"-f", "-,-"}, []string{"-", "-"}, false, "standard input cannot be used for multiple arguments"},
		{[]string{"-k", "base", "-f", "-"}, []string{"-"}, false, "only one of -f or -k can be specified"},
		{[]string{"-k", "base", "-R"}, nil, true, "the -k flag can't be used with -f or -R"},
	} {
		files := parse(t, c.args...)
		assert.Equal(t, c.want, files.Paths, "%q", c.args)
		assert.Equal(t, c.recursive, files.Recursive, "%q", c.args)
		assert.Equal(t, c.args == nil, files.IsEmpty(), "%q", c.args)
		objects, err := files.Read(t.Context())
		if c.err != "" {
			assert.ErrorContains(t, err, c.err, "%q", c.args)
			continue
		}
		require.NoError(t, err, "%q", c.args)
		assert.Len(t, objects, len(c.want), "%q", c.args)
	}
}

func TestFiles_AllTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	require.NoError(t, os.WriteFile(path, []byte(configMap+"---\n"+configMap), 0o600))
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"-f", path}, 2},
		{[]string{"-f", path, "-f", "-"}, 3}, // standard input is read once
		{[]string{"-f", filepath.Join(filepath.Dir(path), "*.yaml")}, 2},
		{nil, 0},
	} {
		all := parse(t, c.args...).All(t.Context())
		for range 2 {
			n := 0
			for _, err := range all {
				require.NoError(t, err, "%q", c.args)
				n++
			}
			assert.Equal(t, c.want, n, "%q", c.args)
		}
	}
	for _, err := range parse(t, "-f", "missing.yaml").All(t.Context()) {
		assert.ErrorContains(t, err, "does not exist")
	}
}

// writeProgram writes a shell script.
func writeProgram(t *testing.T, folder, name, script string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
}

func TestFiles_KustomizeRunsProgram(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	_, err := parse(t, "-k", "base").Read(t.Context())
	assert.EqualError(t, err, "read kustomization base: neither kustomize nor kubectl is in PATH (install one of them, or write the objects to a file for -f)")

	printed := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '%s'}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: second}\n"
	writeProgram(t, folder, "kubectl", `printf "`+printed+`" "kubectl $*"`)
	objects, err := parse(t, "-k", "--rm").Read(t.Context())
	require.NoError(t, err)
	require.Len(t, objects, 2)
	assert.Equal(t, "kubectl kustomize -- --rm", objects[0].GetName(), "a folder is never a flag")
	assert.Equal(t, "--rm: document 2, line 5", objects[1].Position())

	writeProgram(t, folder, "kustomize", `printf "`+printed+`" "kustomize $*"`)
	objects, err = parse(t, "--kustomize", "https://example.com/base?ref=v1").Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "kustomize build -- https://example.com/base?ref=v1", objects[0].GetName())

	writeProgram(t, folder, "kustomize", `echo 'Error: no such base' >&2; exit 3`)
	_, err = parse(t, "-k", "base").Read(t.Context())
	assert.EqualError(t, err, "read kustomization base: "+filepath.Join(folder, "kustomize")+": no such base")

	writeProgram(t, folder, "kustomize", `exit 3`)
	_, err = parse(t, "-k", "base").Read(t.Context())
	assert.ErrorContains(t, err, "exit status 3")

	writeProgram(t, folder, "kustomize", `echo 'kind: ['`)
	_, err = parse(t, "-k", "base").Read(t.Context())
	assert.ErrorContains(t, err, "base: document 1")

	writeProgram(t, folder, "kustomize", `exec /bin/cat /dev/zero`)
	_, err = parse(t, "-k", "base").Read(t.Context())
	assert.ErrorContains(t, err, "is larger than 67108864 bytes")
}
