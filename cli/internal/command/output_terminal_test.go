//go:build unix

package command

import (
	"bufio"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/cli/progress"
	"github.com/anykind/anykind/unstructured"
)

func TestOutput_OneLineOnTerminal(t *testing.T) {
	screen, tty, err := pty.Open()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = tty.Close()
		_ = screen.Close()
	})
	out := printable.Writer(tty)
	display := progress.New(out)
	t.Cleanup(display.Close)
	lines := bufio.NewReader(screen)
	obj := &unstructured.Object{Object: map[string]any{"kind": "X", "metadata": map[string]any{"name": "a\nx/fake\x1b[2J"}}}
	for format, want := range map[string]string{"": "x/a x/fake\ufffd[2J updated\r\n", "name": "x/a x/fake\ufffd[2J\r\n"} {
		o := &Output{Flags: *print.NewFlags()}
		o.Output = format
		require.NoError(t, o.Complete(display.Above(out), flags.DryRunNone))
		require.NoError(t, o.Object(obj, "updated"))
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, want, line, format)
	}
}
