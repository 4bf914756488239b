package architecture_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestWorkflows_CallWhatExists looks up the make targets, files and folders that the workflows use.
func TestWorkflows_CallWhatExists(t *testing.T) {
	makefile := read(t, "Makefile")
	workflows, err := filepath.Glob(filepath.Join(root(t), ".github", "workflows", "*.yml"))
	require.NoError(t, err)
	require.Len(t, workflows, 2)
	commands := 0
	for _, path := range workflows {
		var workflow struct {
			Jobs map[string]struct {
				Steps []struct {
					Run  string            `json:"run"`
					Uses string            `json:"uses"`
					With map[string]string `json:"with"`
				} `json:"steps"`
			} `json:"jobs"`
		}
		name := ".github/workflows/" + filepath.Base(path)
		require.NoError(t, yaml.Unmarshal([]byte(read(t, name)), &workflow), name)
		for job, content := range workflow.Jobs {
			require.NotEmpty(t, content.Steps, "%s: %s", name, job)
			for _, step := range content.Steps {
				if file := step.With["go-version-file"]; file != "" {
					assert.FileExists(t, filepath.Join(root(t), file), "%s: %s", name, job)
				}
				if step.Run == "" {
					assert.Regexp(t, `^actions/[a-z-]+@v\d+$`, step.Uses, "%s: %s", name, job)
				}
				for line := range strings.Lines(step.Run) {
					commands++
					assert.NoError(t, checkCommand(root(t), makefile, strings.Fields(line)), "%s: %s: %s", name, job, line)
				}
			}
		}
	}
	assert.GreaterOrEqual(t, commands, 8)
	// The release uploads what this target builds.
	assert.Contains(t, makefile, "DIST := .bin/dist\n")
	assert.Contains(t, read(t, ".github/workflows/release.yml"), ".bin/dist/*")
	programs := regexp.MustCompile(`(?m)for program in ([^;]+);`).FindStringSubmatch(makefile)
	require.NotNil(t, programs)
	for _, program := range strings.Fields(programs[1]) {
		assert.FileExists(t, filepath.Join(root(t), program, "main.go"), "make artifacts")
	}
}

// checkCommand returns an error if a workflow's command uses a target, file or folder that is missing, or another program.
func checkCommand(root, makefile string, words []string) error {
	exists := func(name string) error {
		_, err := os.Stat(filepath.Join(root, name))
		return err
	}
	switch {
	case len(words) < 1:
		return nil
	case strings.HasPrefix(words[0], "."):
		return exists(words[0])
	case len(words) < 2:
	case words[0] == "make" && regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(words[1])+`:`).MatchString(makefile):
		return nil
	case words[0] == "go" && words[1] == "run" && len(words) > 2:
		return exists(words[2])
	case words[0] == "go" && (words[1] == "test" || words[1] == "install"), words[0] == "gh", words[0] == "sudo" && words[1] == "apt-get":
		return nil
	}
	return errors.New("unknown command or target")
}

func TestCheckCommand_WhatIsMissing(t *testing.T) {
	makefile := "test: x\n\techo\n"
	for command, ok := range map[string]bool{
		"": true, "make test N=1": true, "make tests": false, "make": false, "./architecture_test.go": true, "./none": false,
		"go run . a": true, "go run ./none": false, "go run": false, "go test ./...": true, "gh release": true, "curl x": false,
	} {
		assert.Equal(t, ok, checkCommand(".", makefile, strings.Fields(command)) == nil, command)
	}
}
