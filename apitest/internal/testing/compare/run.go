package compare

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Number returns the number of an environment variable, or otherwise without the variable.
func Number(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	value, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return value
}

// WriteTable replaces the table of a document. place has groups for the marks before and after the table.
func WriteTable(t testing.TB, path string, place *regexp.Regexp, table string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Regexp(t, place, string(text))
	changed := place.ReplaceAllString(string(text), "${1}"+strings.ReplaceAll(table, "$", "$$")+"$2")
	require.NoError(t, os.WriteFile(path, []byte(changed), 0o644)) //nolint:gosec // A document that all may read.
}
