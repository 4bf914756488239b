package change

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/cli/flags"
)

func TestSet_LocalObjectWithoutPods(t *testing.T) {
	for _, args := range [][]string{{"image", "app=new"}, {"env", "A=b"}, {"resources", "--limits=cpu=1"}, {"serviceaccount", "robot"}} {
		t.Run(args[0], func(t *testing.T) {
			var stdout bytes.Buffer
			stdin := strings.NewReader("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n")
			r := execute(t.Context(), flags.NewConnection(), stdin, &stdout, append([]string{"set", "--local", "-f", "-", "--kubeconfig", os.DevNull}, args...)...)
			assert.Equal(t, 1, r.code)
			assert.Contains(t, r.stderr, "the object is not a pod or does not have a pod template")
			assert.Empty(t, stdout.String())
		})
	}
}
