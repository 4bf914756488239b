package probe

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/apitest/internal/testing/realserver"
	"github.com/anykind/anykind/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// casesOfWrite is the number of faults drawn for each write of a kind in CI.
const casesOfWrite = 10

// bothServers returns the sandbox's server and a new apitest server, with a namespace of the same name.
func bothServers(t *testing.T) (sandboxServer, double Server) {
	t.Helper()
	sandbox := compare.Sandbox(t)
	server, err := apitest.Start(nil) // logs no warnings
	require.NoError(t, err)
	t.Cleanup(server.Close)
	conn, err := transport.Open(server.Config())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	double = Server{Requests: realserver.New(conn), Namespace: sandbox.Namespace}
	namespace := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": sandbox.Namespace}}
	created, _ := double.send(t, http.MethodPost, "/api/v1/namespaces", nil, namespace)
	require.True(t, created.accepted(), created.message)
	return Server{Requests: sandbox.Requests, Namespace: sandbox.Namespace}, double
}

// TestProbe_NoRejectionUnnoticed plays faults of every field of the built-in kinds on both servers.
func TestProbe_NoRejectionUnnoticed(t *testing.T) {
	sandbox, double := bothServers(t)
	report := Run(t, sandbox, double, compare.Number(t, "ANYKIND_APITEST_SEED", 1), compare.Number(t, "ANYKIND_APITEST_PROBES", casesOfWrite))
	t.Log(report.Summary())
	if version := sandbox.minor(t); version != builtin.RulesVersion {
		isListed := func(f difference) bool { return slices.Contains(differencesOf(version), version+": probe: "+f.key()) }
		report.Unnoticed = slices.DeleteFunc(report.Unnoticed, isListed)
		report.TooStrict = slices.DeleteFunc(report.TooStrict, isListed)
	}
	assert.Empty(t, Group(report.Unnoticed), "rejected by the real server, accepted without a warning")
	assert.Empty(t, Group(report.TooStrict), "accepted by the real server")
	if path := os.Getenv("ANYKIND_APITEST_FINDINGS"); path != "" {
		require.NoError(t, os.WriteFile(path, []byte(report.Summary()+"\n"+Group(report.Unnoticed)+"\n"+Group(report.TooStrict)+"\n"+Group(report.OtherCause)), 0o600))
	}
	if path := os.Getenv("ANYKIND_APITEST_DOCUMENT"); path != "" && !t.Failed() {
		compare.WriteTable(t, path, tableInDocument, report.Summary()+":\n\n"+report.Table())
	}
}

var tableInDocument = regexp.MustCompile(`(?s)(<!-- table of the probe: begin -->\n).*(<!-- table of the probe: end -->)`)
