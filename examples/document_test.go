package examples_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDocument_ListsPrograms compares the table of docs/EXAMPLES.md with the folders of examples and their lines.
func TestDocument_ListsPrograms(t *testing.T) {
	const root = ".."
	lines := map[string]int{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		folder, rest, isExample := strings.Cut(filepath.ToSlash(path), "examples/")
		if name, _, isProgram := strings.Cut(rest, "/"); isExample && isProgram {
			text, err := os.ReadFile(path)
			lines[strings.TrimPrefix(folder, root+"/")+"examples/"+name] += bytes.Count(text, []byte("\n"))
			return err
		}
		return nil
	}))
	document, err := os.ReadFile("../docs/EXAMPLES.md")
	require.NoError(t, err)
	listed := map[string]int{}
	for _, row := range regexp.MustCompile(`(?m)^\| \[(\S+)\]\(\.\./(\S+)\) \| .* \| (\d+) \|$`).FindAllStringSubmatch(string(document), -1) {
		assert.Equal(t, row[1], row[2])
		listed[row[1]], err = strconv.Atoi(row[3])
		require.NoError(t, err)
	}
	assert.Equal(t, lines, listed)
}
