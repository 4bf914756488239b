package clients_test

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "sigs.k8s.io/controller-runtime/pkg/client" // so that go.mod requires what its suite needs

	"github.com/anykind/anykind/apitest"
)

// TestControllerRuntime_ClientSuitePasses runs controller-runtime's own suite of its client on a server.
func TestControllerRuntime_ClientSuitePasses(t *testing.T) {
	server := apitest.NewServer(t, &apitest.Options{OnNotValidated: func(apitest.Request, string) {}})
	suite := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "sigs.k8s.io/controller-runtime/pkg/client", "-ginkgo.no-color")
	suite.Env = append(os.Environ(), "KUBECONFIG="+server.Kubeconfig(t), "USE_EXISTING_CLUSTER=true")
	output, err := suite.CombinedOutput()
	require.NoError(t, err, "%s", output)
	result := regexp.MustCompile(`Ran \d+ of \d+ Specs[^\n]*\n[^\n]*`).Find(output)
	assert.Regexp(t, `\b3\d\d Passed \| 0 Failed`, string(result), "%s", output)
	t.Logf("%s", result)
}
