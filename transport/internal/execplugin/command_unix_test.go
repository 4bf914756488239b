//go:build unix

package execplugin

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/credentials"
)

func TestAuthenticator_CancelKillsChildrenWithoutTerminal(t *testing.T) {
	fake := credentials.NewPlugin(t)
	a := newAuthenticator(t, configOf(fake))
	ctx, cancel := context.WithCancel(t.Context())
	result := a.request(ctx)
	run := fake.Next(t)
	run.Do(t, credentials.PluginAction{Child: true, Stay: true})
	child := fake.Next(t)
	cancel()
	require.ErrorIs(t, (<-result).err, context.Canceled)
	run.AwaitExit(t)
	child.AwaitExit(t)
}
