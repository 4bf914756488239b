package change

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
)

func TestSet_LocalObjectWithoutPods(t *testing.T) {
	for _, args := range [][]string{{"image", "app=new"}, {"env", "A=b"}, {"resources", "--limits=cpu=1"}, {"serviceaccount", "robot"}} {
		t.Run(args[0], func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			state := &command.State{
				Streams: command.Streams{
					In:  strings.NewReader("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"),
					Out: &stdout, Err: &stderr,
				},
				Connection: flags.NewConnection(),
			}
			defer state.Connection.Close()
			root := command.Root(state, &cobra.Command{Use: "anyctl"}, Commands(state)...)
			root.SetArgs(append([]string{"set", "--local", "-f", "-", "--kubeconfig", os.DevNull}, args...))
			assert.Equal(t, 1, exit.Report(&stderr, root.ExecuteContext(t.Context())))
			assert.Contains(t, stderr.String(), "the object is not a pod or does not have a pod template")
			assert.Empty(t, stdout.String())
		})
	}
}
