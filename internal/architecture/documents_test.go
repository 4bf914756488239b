package architecture_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// peersDocuments name files of other projects.
var peersDocuments = []string{"dev/suites/introduction.md", "docs/COMPATIBILITY.md"}

var quotedSource = regexp.MustCompile("`([a-z0-9_./]+\\.go)`")

func TestDocuments_NameExistingFiles(t *testing.T) {
	sources := map[string]bool{} // "dynamic/delete.go", "delete.go"
	eachSource(t, func(path string) {
		name, err := filepath.Rel(root(t), path)
		require.NoError(t, err)
		for name = filepath.ToSlash(name); ; {
			sources[name] = true
			_, rest, found := strings.Cut(name, "/")
			if !found {
				break
			}
			name = rest
		}
	})
	checked := 0
	generatedPages := filepath.Join(root(t), "dev", "site", "pages")
	require.NoError(t, filepath.WalkDir(root(t), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") || path == generatedPages):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		document, err := filepath.Rel(root(t), path)
		require.NoError(t, err)
		if slices.Contains(peersDocuments, filepath.ToSlash(document)) {
			return nil
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, match := range quotedSource.FindAllStringSubmatch(string(text), -1) {
			checked++
			assert.True(t, sources[match[1]], "%s names %s, which does not exist", document, match[1])
		}
		return nil
	}))
	assert.Greater(t, checked, 100)
}
