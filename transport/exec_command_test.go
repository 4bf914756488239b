package transport

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func program(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/false\n"), 0o700))
	return path
}

func TestOnlyAllowedCommandsRun(t *testing.T) {
	bin, elsewhere := t.TempDir(), t.TempDir()
	t.Setenv("PATH", bin)
	t.Chdir(elsewhere)
	good, evil := program(t, bin, "aws"), program(t, elsewhere, "aws")
	other := program(t, bin, "other")

	for name, tc := range map[string]struct {
		command string
		allowed []string
		path    string // "" where it is refused
	}{
		"any":                        {"aws", nil, good},
		"none":                       {"aws", []string{}, ""},
		"an empty entry":             {"aws", []string{""}, ""},
		"by name":                    {"aws", []string{"other", "aws"}, good},
		"a name's path":              {"aws", []string{good}, good},
		"a path's name":              {good, []string{"aws"}, good},
		"by path":                    {evil, []string{evil}, evil},
		"another path of the name":   {evil, []string{"aws"}, ""},
		"another path":               {evil, []string{good}, ""},
		"another name":               {"other", []string{"aws"}, ""},
		"a relative path is no name": {"./aws", []string{"aws"}, ""},
		"a crooked path":             {filepath.Join(bin, "x") + "/../other", []string{other}, ""},
		"a path that is untidy":      {bin + "/./other", []string{other}, bin + "/./other"},
		"not there, not allowed":     {"missing", []string{"aws"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := allowedPath(&ExecPlugin{Command: tc.command, Allowed: tc.allowed})
			assert.Equal(t, tc.path, path)
			if tc.path == "" {
				require.ErrorAs(t, err, new(notAllowedError))
			} else {
				require.NoError(t, err)
			}
		})
	}

	_, err := allowedPath(&ExecPlugin{Command: "missing", Allowed: []string{"missing"}, InstallHint: "get it"})
	require.ErrorContains(t, err, "get it", "it is allowed, but not there")
}

func TestANameIsNotLookedForInTheCurrentFolder(t *testing.T) {
	dir := t.TempDir()
	program(t, dir, "aws")
	t.Chdir(dir)
	t.Setenv("PATH", ".")
	_, err := allowedPath(&ExecPlugin{Command: "aws"})
	require.ErrorContains(t, err, "write the command as a path")
}
