//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWriteReadme_BetweenMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(path, []byte("before\n"+readmeStart+"old\n"+readmeEnd+"after\n"), 0o600))
	paged := result{comparison{name: "list-objects-paged-cpu/50"}, 1, 4}
	short := result{comparison{name: "list-objects-paged-cpu/20"}, 1, 3}
	size := result{comparison{name: "binary-size"}, 2, 4}
	require.NoError(t, writeReadme(path, []result{short, paged, size}, 50))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "before\n"+readmeStart+"| | of client-go's |\n|---|---|\n"+
		"| CPU of a list of 50 pods in pages, as maps: `List` and client-go's pager | 0.25 |\n"+
		"| size of a program that lists any resource by its short name | 0.50 |\n"+readmeEnd+"after\n", string(text))

	require.NoError(t, os.WriteFile(path, []byte("no marks\n"), 0o600))
	require.ErrorContains(t, writeReadme(path, nil, 50), "a mark is missing")
}

func TestReadmeRows_AreComparisons(t *testing.T) {
	opts, err := parse([]string{"-kubeconfig", "unused"})
	require.NoError(t, err)
	for _, row := range readmeRows {
		found := 0
		for _, c := range opts.all() {
			if c.nameAt(50_000) == row.name {
				found++
			}
		}
		assert.Equal(t, 1, found, row.name)
	}
}
