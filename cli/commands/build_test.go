package commands

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
)

func TestBuild_GroupOfFirstArgument(t *testing.T) {
	names := func(args ...string) (names []string) {
		state := &command.State{Connection: flags.NewConnection(), Args: args}
		for _, cmd := range build(state, false) {
			names = append(names, cmd.Name())
		}
		return names
	}
	all := names()
	for _, group := range groups {
		for _, name := range group.names {
			assert.Subset(t, names(name, "-o", "json"), group.names, name)
			assert.Less(t, len(names(name)), len(all), name)
		}
	}
	assert.ElementsMatch(t, all, names("--namespace", "shop", "get"))
	var listed []string
	for _, group := range groups {
		listed = append(listed, group.names...)
	}
	unlisted := slices.DeleteFunc(all, func(name string) bool { return slices.Contains(listed, name) })
	assert.ElementsMatch(t, []string{"completion", "copy", "kuberc", "plugin", "rehearse", "role"}, unlisted, "commands that use all others, and single ones")
}

func TestBuild_NeedsAll(t *testing.T) {
	state := &command.State{Connection: flags.NewConnection(), Args: []string{"get"}}
	assert.True(t, slices.ContainsFunc(build(state, true), func(cmd *cobra.Command) bool { return cmd.Name() == "apply" }))
}
