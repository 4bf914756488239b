//go:build unix

package command_test

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
)

func TestState_PrintfOneLineOnTerminal(t *testing.T) {
	const format, text = "error: %s (%d)\n", "a\nerror: fake\x1b[2J"
	var piped bytes.Buffer
	s := &command.State{Streams: command.Streams{Out: &piped}}
	require.NoError(t, s.Printf(format, text, 7))
	assert.Equal(t, "error: "+text+" (7)\n", piped.String())

	screen, tty, err := pty.Open()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = tty.Close()
		_ = screen.Close()
	})
	s.Out = printable.Writer(tty)
	require.NoError(t, s.Printf(format, text, 7))
	line, err := bufio.NewReader(screen).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "error: a error: fake\ufffd[2J (7)\r\n", line)
}
