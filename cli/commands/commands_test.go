package commands_test

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/commands"
	"github.com/anykind/anykind/cli/flags"
)

func TestNew_HelpNamesProgram(t *testing.T) {
	root := &cobra.Command{Use: "shopctl"}
	_, err := commands.New(root, flags.NewConnection(), nil, "apply", "plan", "set")
	require.NoError(t, err)
	checked := 0
	for _, cmd := range root.Commands() {
		if flag := cmd.Flags().Lookup("field-manager"); flag != nil {
			checked++
			assert.Contains(t, flag.Usage, "(default shopctl)", cmd.Name())
		}
		assert.NotContains(t, cmd.Long+cmd.Example, "anyctl ", cmd.Name())
	}
	assert.Equal(t, 3, checked)
}
