package guide

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	reference = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fenced    = regexp.MustCompile("(?ms)^```.*?^```$")
	inline    = regexp.MustCompile("`[^`\n]*`")
	unwritten = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestDocuments_LinksExist checks the files and headings that documents link to.
func TestDocuments_LinksExist(t *testing.T) {
	var documents []string
	for _, glob := range []string{"*.md", "docs/*.md", "docs/design/*.md"} {
		found, err := filepath.Glob("../../" + glob)
		require.NoError(t, err)
		documents = append(documents, found...)
	}
	require.NotEmpty(t, documents)
	for _, document := range documents {
		for _, match := range reference.FindAllStringSubmatch(inline.ReplaceAllString(prose(t, document), "code"), -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, ":") {
				continue
			}
			path := document
			if target != "" {
				path = filepath.Join(filepath.Dir(document), target)
			}
			_, err := os.Stat(path)
			if assert.NoError(t, err, "%s links to %s", document, match[1]) && anchor != "" {
				assert.Contains(t, anchors(prose(t, path)), anchor, "%s links to %s", document, match[1])
			}
		}
	}
}

// TestGuide_HasEachPage checks that docs/README.md lists all pages of docs.
func TestGuide_HasEachPage(t *testing.T) {
	index := prose(t, "../../docs/README.md")
	found, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	for _, page := range found {
		if name := filepath.Base(page); name != "README.md" {
			assert.Contains(t, index, "]("+name+")")
		}
	}
}

func TestReadme_IsShort(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	assert.LessOrEqual(t, strings.Count(string(text), "\n"), 150)
}

// prose returns the text of a document without its code blocks.
func prose(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return fenced.ReplaceAllString(string(text), "")
}

// anchors returns the anchors that GitHub gives to the headings of a text.
func anchors(text string) []string {
	var all []string
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(unwritten.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return all
}
