package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSVG_ShowsColorsAndEscapes(t *testing.T) {
	drawn := svg("\x1b[1m$ get\x1b[0m\n\na <b> \x1b[32mRunning\x1b[0m end\n")
	require.NoError(t, xml.Unmarshal(drawn, new(struct{})))
	assert.Contains(t, string(drawn), `<tspan class="b">$ get</tspan></text>`)
	assert.Contains(t, string(drawn), `a &lt;b&gt; <tspan class="g">Running</tspan> end</text>`)
}

func TestReplaceText_BetweenMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(path, []byte("before\n"+startMark+"\nold\n"+endMark+"\nafter\n"), 0o600))
	require.NoError(t, replaceText(path, "$ new\n"))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "before\n"+startMark+"\n```console\n$ new\n```\n"+endMark+"\nafter\n", string(data))
	require.NoError(t, os.WriteFile(path, []byte("none\n"), 0o600))
	require.ErrorContains(t, replaceText(path, ""), "no lines")
}

func TestShellLine_QuotesWhatShellsExpand(t *testing.T) {
	assert.Equal(t, `get pods -o 'jq=.a | .b'`, shellLine([]string{"get", "pods", "-o", "jq=.a | .b"}))
}
