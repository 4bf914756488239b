//go:build unix

package transport

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPluginsChildrenEndWithItWhereThereIsNoTerminal(t *testing.T) {
	fake := NewFakePlugin(t)
	a := execAuthenticatorOf(t, &Config{Exec: fake.Plugin(t)})
	ctx, cancel := context.WithCancel(t.Context())
	result := a.ask(ctx)
	run := fake.Next(t)
	run.Do(t, Order{Child: true, Stay: true})
	child := fake.Next(t)
	cancel()
	require.ErrorIs(t, (<-result).err, context.Canceled)
	run.Gone(t)
	child.Gone(t)
}

func TestATerminalIsOne(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	defer terminal.Close()
	assert.True(t, isTerminal(terminal))
}
