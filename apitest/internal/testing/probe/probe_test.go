package probe

import (
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/apitest/internal/testing/realserver"
	"github.com/anykind/anykind/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// casesOfWrite is the number of faults drawn for each write of a kind in CI.
const casesOfWrite = 10

func number(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	value, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return value
}

// TestProbe_NoRejectionUnnoticed plays faults of every field of the built-in kinds on both servers.
func TestProbe_NoRejectionUnnoticed(t *testing.T) {
	sandbox := compare.Sandbox(t)
	conn, err := transport.Open(apitest.NewServer(t, nil).Config())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	double := Server{Requests: realserver.New(conn), Namespace: sandbox.Namespace}
	namespace := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": sandbox.Namespace}}
	created, _ := double.send(t, http.MethodPost, "/api/v1/namespaces", nil, namespace)
	require.True(t, created.accepted(), created.message)
	sandboxServer := Server{Requests: sandbox.Requests, Namespace: sandbox.Namespace}

	report := Run(t, sandboxServer, double, number(t, "ANYKIND_APITEST_SEED", 1), number(t, "ANYKIND_APITEST_PROBES", casesOfWrite))
	t.Log(report.Summary())
	assert.Empty(t, Group(report.Unnoticed), "rejected by the real server, accepted without a warning")
	assert.Empty(t, Group(report.TooStrict), "accepted by the real server")
	if path := os.Getenv("ANYKIND_APITEST_FINDINGS"); path != "" {
		require.NoError(t, os.WriteFile(path, []byte(report.Summary()+"\n"+Group(report.Unnoticed)+"\n"+Group(report.TooStrict)+"\n"+Group(report.OtherCause)), 0o600))
	}
	if path := os.Getenv("ANYKIND_APITEST_DOCUMENT"); path != "" && !t.Failed() {
		writeTable(t, path, report)
	}
}

var tableInDocument = regexp.MustCompile(`(?s)(<!-- table of the probe: begin -->\n).*(<!-- table of the probe: end -->)`)

// writeTable replaces the table of a document.
func writeTable(t testing.TB, path string, report *Report) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Regexp(t, tableInDocument, string(text))
	table := strings.ReplaceAll(report.Summary()+":\n\n"+report.Table(), "$", "$$")
	changed := tableInDocument.ReplaceAllString(string(text), "${1}"+table+"$2")
	require.NoError(t, os.WriteFile(path, []byte(changed), 0o644)) //nolint:gosec // A document that all may read.
}
