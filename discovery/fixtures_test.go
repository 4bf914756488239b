package discovery

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/testing/scripted"
)

// changingServer is a server whose answers a test changes, with ETags as real ones give them. A path that hangs answers when
// its request is given up.
type changingServer struct {
	answers map[string]string // a body, or an HTTP status
	hang    map[string]bool
	full    atomic.Int32 // answers with a body
}

func (s *changingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.hang[r.URL.Path] {
		<-r.Context().Done()
		return
	}
	body, ok := s.answers[r.URL.Path]
	code := http.StatusNotFound
	if _, err := fmt.Sscanf(body, "%d", &code); err == nil || !ok {
		w.WriteHeader(code)
		return
	}
	if strings.Contains(body, "APIGroupDiscoveryList") {
		etag := fmt.Sprintf(`"%x"`, body)
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	s.full.Add(1)
	_, _ = w.Write([]byte(body))
}

func serving(t *testing.T, answers map[string]string) (*changingServer, *Client) {
	t.Helper()
	script := &changingServer{answers: answers, hang: map[string]bool{}}
	return script, New(scripted.Connect(t, script, nil), nil)
}

// aggregated is a discovery root's answer: "apps/v1 deployments,!stale/v1 things".
func aggregated(groups string) string {
	var items []string
	for entry := range strings.SplitSeq(groups, ",") {
		gv, plural, _ := strings.Cut(entry, " ")
		freshness := "Current"
		if rest, stale := strings.CutPrefix(gv, "!"); stale {
			gv = rest
			freshness = "Stale"
		}
		group, version, _ := strings.Cut(gv, "/")
		resources := ""
		if plural != "" {
			resources = fmt.Sprintf(`{"resource":%q,"responseKind":{"group":%q,"version":%q,"kind":%q},"scope":"Namespaced","verbs":["get"]}`,
				plural, group, version, "Kind-"+plural)
		}
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q},"versions":[{"version":%q,"freshness":%q,"resources":[%s]}]}`,
			group, version, freshness, resources))
	}
	return `{"kind":"APIGroupDiscoveryList","items":[` + strings.Join(items, ",") + `]}`
}

func refresh(t *testing.T, client *Client) *Snapshot {
	t.Helper()
	snapshot, err := client.Refresh(t.Context())
	require.NoError(t, err)
	return snapshot
}

// versionOf returns version v1 of a group, nil if the snapshot lacks it.
func versionOf(s *Snapshot, group string) *Version {
	return maps.Collect(s.Versions())[schema.GroupVersion{Group: group, Version: "v1"}]
}
