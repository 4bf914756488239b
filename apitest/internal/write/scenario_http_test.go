package write_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
)

// TestRecorded_Sandbox compares the recorded responses with the real API server's.
func TestRecorded_Sandbox(t *testing.T) {
	config, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: "admin"})
	require.NoError(t, err)
	conn, err := transport.Open(config)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	p := &httpPlayer{conn}
	for _, req := range readScenario(t, "testdata/setup.txt") {
		code, _, body := p.send(t, req)
		require.True(t, code < 300 || code == http.StatusConflict, "%s: %v", describe(req), body)
	}
	time.Sleep(time.Second) // custom resources are served a moment after their definition is established
	for _, scenario := range scenarios(t) {
		t.Run(namespaceOf(scenario), func(t *testing.T) {
			namespace := namespaceOf(scenario) + "-" + time.Now().Format("150405")
			code, _, body := p.send(t, request{method: "POST", path: "/api/v1/namespaces", agent: "scenario/1", mediaType: "application/json",
				body: `{"metadata":{"name":"` + namespace + `"}}`})
			require.Equal(t, http.StatusCreated, code, body)
			got := play(t, p, namespace, readScenario(t, scenario))
			if os.Getenv("ANYKIND_RECORD") == "1" {
				require.NoError(t, os.WriteFile(recordedPath(scenario), []byte(shownObject.ReplaceAllString(marshal(t, got), `$1\"OBJECT\":`)), 0o644))
			}
			compareRecorded(t, readRecorded(t, recordedPath(scenario)), got)
		})
	}
}

// TestRecorded_Server compares a server's responses over HTTP with the real API server's.
func TestRecorded_Server(t *testing.T) {
	for _, scenario := range scenarios(t) {
		t.Run(namespaceOf(scenario), func(t *testing.T) {
			t.Parallel()
			server := apitest.NewServer(t, nil)
			conn, err := transport.Open(server.Config())
			require.NoError(t, err)
			t.Cleanup(conn.Close)
			p := &httpPlayer{conn}
			for _, req := range readScenario(t, "testdata/setup.txt") {
				code, _, body := p.send(t, req)
				require.Equal(t, http.StatusCreated, code, body)
			}
			namespace := namespaceOf(scenario)
			code, _, body := p.send(t, request{method: "POST", path: "/api/v1/namespaces", agent: "scenario/1", mediaType: "application/json",
				body: `{"metadata":{"name":"` + namespace + `"}}`})
			require.Equal(t, http.StatusCreated, code, body)
			compareRecorded(t, readRecorded(t, recordedPath(scenario)), play(t, p, namespace, readScenario(t, scenario)))
		})
	}
}

// httpPlayer sends requests over HTTP.
type httpPlayer struct{ conn *transport.Conn }

var warningText = regexp.MustCompile(`^299 \S+ "(.*)"$`)

func (p *httpPlayer) send(t *testing.T, req request) (code int, warnings []string, body map[string]any) {
	t.Helper()
	httpReq, err := http.NewRequestWithContext(t.Context(), req.method, p.conn.Server()+req.path, strings.NewReader(req.body))
	require.NoError(t, err)
	httpReq.Header.Set("User-Agent", req.agent)
	if req.body != "" {
		httpReq.Header.Set("Content-Type", req.mediaType)
	}
	httpReq.Header.Set("Accept", "application/json")
	resp, err := p.conn.RoundTrip(httpReq)
	require.NoError(t, err)
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if err := json.Unmarshal(content, &body); err != nil {
		body = map[string]any{"text": string(content)}
	}
	for _, header := range resp.Header.Values("Warning") {
		text := warningText.FindStringSubmatch(header)
		require.NotNil(t, text, header)
		if strings.HasPrefix(text[1], "apitest: ") {
			continue
		}
		warnings = append(warnings, strings.ReplaceAll(strings.ReplaceAll(text[1], `\"`, `"`), `\\`, `\`))
	}
	return resp.StatusCode, warnings, body
}
