package schema_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/transport"
)

// caseExport writes objects with the outcomes of the server for dev/parity/validators: files in cases, the server's schemas in
// schemas and as documents in openapi, and outcomes.json. A nil caseExport writes nothing.
type caseExport struct {
	dir string

	mu       sync.Mutex
	outcomes []exportedOutcome
}

type exportedOutcome struct {
	File     string `json:"file"`
	IsCustom bool   `json:"isCustom"`
	Rejected bool   `json:"rejected"` // by the server
}

// newCaseExport returns an export to the folder of ANYKIND_SCHEMA_EXPORT, or nil.
func newCaseExport(t *testing.T) *caseExport {
	t.Helper()
	dir := os.Getenv("ANYKIND_SCHEMA_EXPORT")
	if dir == "" {
		return nil
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "cases"), 0o750))
	return &caseExport{dir: dir}
}

// add writes an object. Only objects with an outcome of the server are added.
func (e *caseExport) add(t *testing.T, kind *kindCases, obj map[string]any, isRejected bool) {
	t.Helper()
	if e == nil {
		return
	}
	content, err := json.Marshal(obj)
	require.NoError(t, err)
	e.mu.Lock()
	defer e.mu.Unlock()
	one := exportedOutcome{
		File: strconv.Itoa(len(e.outcomes)) + ".json", IsCustom: !strings.HasPrefix(kind.schema.Name, "io.k8s.api."), Rejected: isRejected,
	}
	require.NoError(t, os.WriteFile(filepath.Join(e.dir, "cases", one.File), content, 0o600))
	e.outcomes = append(e.outcomes, one)
}

// finish writes the outcomes and the server's schemas.
func (e *caseExport) finish(t *testing.T, conn *transport.Conn) {
	t.Helper()
	if e == nil {
		return
	}
	outcomes, err := json.Marshal(e.outcomes)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(e.dir, "outcomes.json"), outcomes, 0o600))
	require.NoError(t, schema.New(conn, nil).Save(t.Context(), filepath.Join(e.dir, "schemas")))
	var list struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	require.NoError(t, json.Unmarshal(readPath(t, conn, "/openapi/v3"), &list))
	for path, entry := range list.Paths {
		if isGroupVersion := strings.HasPrefix(path, "api/") || strings.Count(path, "/") == 2; !isGroupVersion {
			continue
		}
		file := filepath.Join(e.dir, "openapi", path+".json")
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, readPath(t, conn, entry.ServerRelativeURL), 0o600))
	}
}

func readPath(t *testing.T, conn *transport.Conn, path string) []byte {
	t.Helper()
	response, err := conn.Do(t.Context(), &transport.Request{Method: http.MethodGet, Path: path, Header: http.Header{"Accept": {"application/json"}}})
	require.NoError(t, err, path)
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err, path)
	return data
}
