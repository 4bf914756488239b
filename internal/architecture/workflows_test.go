package architecture_test

import (
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
				words := strings.Fields(step.Run)
				if len(words) == 0 {
					assert.Regexp(t, `^actions/[a-z-]+@v\d+$`, step.Uses, "%s: %s", name, job)
					continue
				}
				commands++
				switch {
				case words[0] == "make":
					assert.Regexp(t, `(?m)^`+regexp.QuoteMeta(words[1])+`:`, makefile, "%s: %s", name, job)
				case strings.HasPrefix(words[0], "."):
					assert.FileExists(t, filepath.Join(root(t), words[0]), "%s: %s", name, job)
				default:
					assert.Contains(t, []string{"go", "gh"}, words[0], "%s: %s", name, job)
				}
			}
		}
	}
	assert.GreaterOrEqual(t, commands, 7)
	// The release uploads what this target builds.
	assert.Contains(t, makefile, "DIST := .bin/dist\n")
	assert.Contains(t, read(t, ".github/workflows/release.yml"), ".bin/dist/*")
}
