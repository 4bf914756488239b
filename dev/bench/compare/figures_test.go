//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWriteFigures_OfMeasuredComparisons(t *testing.T) {
	path := filepath.Join(t.TempDir(), "PAGE.md")
	require.NoError(t, os.WriteFile(path, []byte("| <!-- bench list-cpu/50 -->0.30 | <!-- bench binary-size -->1 |\n<!-- bench get-cpu -->0.40.\n"), 0o600))
	paged := result{comparison{name: "list-cpu/50"}, 1, 4}
	short := result{comparison{name: "list-cpu/20"}, 1, 3}
	size := result{comparison{name: "binary-size"}, 2, 4}
	require.NoError(t, writeFigures([]string{path}, []result{short, paged, size}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "| <!-- bench list-cpu/50 -->0.25 | <!-- bench binary-size -->0.50 |\n<!-- bench get-cpu -->0.40.\n", string(text))
	require.ErrorIs(t, writeFigures([]string{"absent.md"}, nil), os.ErrNotExist)
}

// TestDocuments_FiguresEqualThePage finds figures that were changed by hand, and names of no comparison.
func TestDocuments_FiguresEqualThePage(t *testing.T) {
	benchmarks, err := os.ReadFile("../../../docs/BENCHMARKS.md")
	require.NoError(t, err)
	shown := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\S+) \| .* \| (\S+) \| ≤ `).FindAllStringSubmatch(string(benchmarks), -1) {
		shown[row[1]] = row[2]
	}
	paths, err := documents("../../../docs")
	require.NoError(t, err)
	count := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		figures := documentFigure.FindAllStringSubmatch(string(text), -1)
		assert.Len(t, figures, strings.Count(string(text), "<!-- bench "), path)
		for _, figure := range figures {
			assert.Equal(t, shown[figure[1]], figure[2], "%s: %s", path, figure[1])
			count++
		}
	}
	assert.NotZero(t, count)
}
