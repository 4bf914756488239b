package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const upstreamFile = `package p

import "testing"

func TestNew(t *testing.T) {
	c, err := pkg.New(one, // New
		two)
	d := pkg.New(pkg.New)
	want := 3
	g.Expect(crt.Count()).To(gmg.Equal(want))
	g.Expect(crt.Count()).To(gmg.Equal(2 + 2))
	g.Expect(c).To(gmg.Equal(d))
	g.Eventually(func() { g.Expect(err).To(gmg.BeNil()) })
}
`

func TestPatch_ChangesExactPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		patch patch
		lines map[string]string // old and new lines
		wrong string            // the error
	}{
		"text": {
			patch: replaceText{file: "f.go", old: "\twant := 3\n", new: "\twant := 4\n"},
			lines: map[string]string{"\twant := 3\n": "\twant := 4\n"},
		},
		"text of several places": {
			patch: replaceText{file: "f.go", old: "crt.Count()", new: "n", count: 2},
			lines: map[string]string{"Expect(crt.Count()).To(gmg.Equal(want))": "Expect(n).To(gmg.Equal(want))", "Expect(crt.Count()).To(gmg.Equal(2": "Expect(n).To(gmg.Equal(2"},
		},
		"text that is not there": {
			patch: replaceText{file: "f.go", old: "want := 5"}, wrong: `patch f.go: "want := 5" occurs 0 times, want 1`,
		},
		"text that is there twice": {
			patch: replaceText{file: "f.go", old: "crt.Count"}, wrong: `patch f.go: "crt.Count" occurs 2 times, want 1`,
		},
		"calls": {
			patch: replaceCalls{file: "f.go", old: "pkg.New", new: "ours.NewOver", count: 2, imports: "example.com/ours"},
			lines: map[string]string{
				"pkg.New(one,":     "ours.NewOver(one,",
				"pkg.New(pkg.New)": "ours.NewOver(pkg.New)",
				"package p\n":      "package p\n\nimport ours \"example.com/ours\"\n",
			},
		},
		"calls of another number": {
			patch: replaceCalls{file: "f.go", old: "pkg.New", new: "New", count: 3}, wrong: "patch f.go: 2 calls of pkg.New, want 3",
		},
		"assertions": {
			patch: dropAssertions{file: "f.go", actual: "crt.Count()", count: 2},
			lines: map[string]string{
				"g.Expect(crt.Count()).To(gmg.Equal(want))":  "_ = want",
				"g.Expect(crt.Count()).To(gmg.Equal(2 + 2))": "_ = 2 + 2",
			},
		},
		"assertions of another number": {
			patch: dropAssertions{file: "f.go", actual: "crt.Count()", count: 1}, wrong: "patch f.go: 2 assertions of crt.Count(), want 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f.go")
			require.NoError(t, os.WriteFile(path, []byte(upstreamFile), 0o600))
			err := c.patch.apply(dir)
			patched, readErr := os.ReadFile(path)
			require.NoError(t, readErr)
			want := upstreamFile
			for old, replacement := range c.lines {
				want = replaceOnce(t, want, old, replacement)
			}
			assert.Equal(t, want, string(patched))
			if c.wrong == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.wrong)
			}
		})
	}
	assert.ErrorIs(t, replaceText{file: "none.go", old: "a", new: "b"}.apply(t.TempDir()), os.ErrNotExist)
}

func replaceOnce(t *testing.T, text, old, replacement string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	require.NoError(t, replaceText{file: filepath.Base(file), old: old, new: replacement}.apply(filepath.Dir(file)))
	replaced, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(replaced)
}
