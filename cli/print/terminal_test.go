//go:build unix

package print

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

func TestPrinter_TerminalGetsNoControls(t *testing.T) {
	const name, shown = "世界\x1b[31m\a\u009b2J", "世界\ufffd[31m\ufffd\ufffd2J"
	screen, tty, err := pty.Open()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = tty.Close()
		_ = screen.Close()
	})
	lines := bufio.NewReader(screen)
	obj := &unstructured.Object{Object: map[string]any{"kind": "X", "metadata": map[string]any{"name": name}}}
	for _, format := range []string{
		"name", `jsonpath={.metadata.name}{"\n"}`, `go-template={{.metadata.name}}{{"\n"}}`, "jq=.metadata.name",
	} {
		f := NewFlags()
		f.Output = format
		printer, err := f.Printer(tty)
		require.NoError(t, err)
		require.NoError(t, printer.Object(obj))
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, shown, strings.TrimPrefix(strings.TrimRight(line, "\r\n"), "x/"), format)
	}
	printer, err := NewFlags().Printer(tty)
	require.NoError(t, err)
	require.NoError(t, printer.Changed(obj, "created"))
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "x/"+shown+" created\r\n", line)

	for _, c := range []struct {
		name, output string
		want         string
	}{
		{"a\nb", "", "x/a b created\r\n"},
		{"a\nb", "name", "x/a b\r\n"},
		{"a\r", "jsonpath={.metadata.name}", "a\ufffd"},
		{"a\xe4\xb8", "jsonpath={.metadata.name}", "a\ufffd\ufffd"},
	} {
		f := NewFlags()
		f.Output = c.output
		obj := &unstructured.Object{Object: map[string]any{"kind": "X", "metadata": map[string]any{"name": c.name}}}
		printer, err := f.Printer(tty)
		require.NoError(t, err)
		require.NoError(t, printer.Changed(obj, "created"))
		shown := make([]byte, len(c.want))
		_, err = io.ReadFull(lines, shown)
		require.NoError(t, err)
		assert.Equal(t, c.want, string(shown), c.output)
	}

	f := NewFlags()
	f.Color = "never"
	f.NoHeaders = true
	table, err := f.Table(tty, nil)
	require.NoError(t, err)
	columns := []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Ready"}}
	require.NoError(t, table.Row(&dynamic.TableRow{Columns: columns, Cells: []any{name, "1/1"}}))
	require.NoError(t, table.Flush())
	line, err = lines.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, strings.ReplaceAll(shown, "\ufffd[31m", "^[[31m")+"   1/1\r\n", line, "ESC as kubectl writes it")
}

func TestTable_ColorsWithoutOtherControls(t *testing.T) {
	f := NewFlags()
	f.Color = "always"
	var out strings.Builder
	table, err := f.Table(&out, nil)
	require.NoError(t, err)
	columns := []metav1.TableColumnDefinition{{Name: "Name\a"}, {Name: "Status"}}
	require.NoError(t, table.Row(&dynamic.TableRow{Columns: columns, Cells: []any{"x\u009b0m", "Running"}}))
	require.NoError(t, table.Flush())
	assert.Equal(t, "\x1b[1mNAME\ufffd\x1b[0m   \x1b[1mSTATUS\x1b[0m\nx\ufffd0m    \x1b[32mRunning\x1b[0m\n", out.String())
}

func TestTerminal_ReplacesControls(t *testing.T) {
	screen, tty, err := pty.Open()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = tty.Close()
		_ = screen.Close()
	})
	w := Terminal(tty)
	assert.Same(t, w, Terminal(w))
	_, err = io.WriteString(w, "error:\t\x1b[2J\u009b\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(screen).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "error:\t\ufffd[2J\ufffd\r\n", line)
	var file strings.Builder
	assert.Same(t, &file, Terminal(&file))
}
