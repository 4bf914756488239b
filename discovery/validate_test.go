package discovery

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/testing/scripted"
)

// responding is a client of a server that serves items at /apis, and serves a healthy core group.
func responding(t *testing.T, items string) *Client {
	t.Helper()
	server, client := serving(t, "")
	server.Handle("GET /apis", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", aggregatedType)
		_, _ = io.WriteString(w, `{"kind":"APIGroupDiscoveryList","items":[`+items+`]}`)
	})
	return client
}

// item is a group of one version and one resource, in which old is replaced by new.
func item(group, old, by string) string {
	return strings.Replace(fmt.Sprintf(`{"metadata":{"name":%q},"versions":[{"version":"v1","resources":[{"resource":"things","scope":"Namespaced",
		"singularResource":"thing","responseKind":{"group":%q,"version":"v1","kind":"Thing"},"shortNames":["th"],"categories":["all"],"verbs":["get"],
		"subresources":[{"subresource":"status","responseKind":{"kind":"Thing"},"verbs":["get"]}]}]}]}`, group, group), old, by, 1)
}

func TestRefresh_QuarantinesBadGroups(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		name, bad string
		version   string // what the error of version v1 of the bad group says, unless it is rejected
		rejected  string
	}{
		{"path as resource", item("bad.example", `"things"`, `"../../../api/v1/secrets"`), `invalid resource name "../../../api/v1/secrets"`, ""},
		{"dots as resource", item("bad.example", `"things"`, `".."`), `invalid resource name ".."`, ""},
		{"escaped slash", item("bad.example", `"things"`, `"a%2fb"`), `invalid resource name "a%2fb"`, ""},
		{"query in resource", item("bad.example", `"things"`, `"a?b"`), `invalid resource name "a?b"`, ""},
		{"empty resource", item("bad.example", `"things"`, `""`), `invalid resource name ""`, ""},
		{"long resource", item("bad.example", `"things"`, `"`+long+`"`), `invalid resource name "xxx`, ""},
		{"path as subresource", item("bad.example", `"status"`, `"../../secrets"`), `invalid subresource name "../../secrets"`, ""},
		{"control in category", item("bad.example", `"all"`, `"a\u001b[31m"`), `invalid category "a"`, ""},
		{"space in short name", item("bad.example", `"th"`, `"t h"`), `invalid short name "t h"`, ""},
		{"line break in kind", item("bad.example", `"Thing"`, `"Th\ning"`), `invalid kind "Th ing"`, ""},
		{"path as kind's group", item("bad.example", `"group":"bad.example"`, `"group":"../x"`), `invalid group name "../x"`, ""},
		{"space in verb", item("bad.example", `["get"]`, `["g et"]`), `invalid verb "g et"`, ""},
		{"resource listed twice", item("bad.example", `"resources":[`, `"resources":[{"resource":"things"},`), `resource "things": listed twice`, ""},
		{"a number as resource", item("bad.example", `"things"`, `1`), `where a string should begin`, ""},
		{"null resource", item("bad.example", `"resources":[`, `"resources":[null,`), `invalid resource name ""`, ""},
		{"a number as version", item("bad.example", `"v1"`, `1`), "", "bad.example"},
		{"path as version", item("bad.example", `"v1"`, `"../v1"`), "", `group "bad.example": invalid version name "../v1"`},
		{"version listed twice", item("bad.example", `"versions":[`, `"versions":[{"version":"v1"},`), "", `group "bad.example": version "v1": listed twice`},
		{"path as group", item("../../api", "", ""), "", `invalid group name "../../api"`},
		{"a number as group", item("bad.example", `"bad.example"`, `1`), "", `group`},
		{"a list as item", `[]`, "", `group`},
		{"group listed twice", item("good.example", "", ""), "", `group "good.example": listed twice`},
		{"the core group again", item("", "", ""), "", `group "": listed twice`},
		{"null versions", `{"metadata":{"name":"bad.example"},"versions":null}`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := responding(t, item("good.example", "", "")+","+c.bad+","+item("other.example", "", ""))
			snapshot, err := client.Refresh(t.Context())
			require.NoError(t, err)
			for _, good := range []string{"good.example", "other.example"} {
				version := versionOf(snapshot, good)
				require.NotNil(t, version)
				assert.NoError(t, version.Err)
				assert.Len(t, version.Resources, 1)
			}
			require.Len(t, snapshot.Groups[0].Versions[0].Resources, 1, "the core group's")
			if c.version != "" {
				bad := versionOf(snapshot, "bad.example")
				require.NotNil(t, bad)
				assert.Empty(t, bad.Resources)
				require.ErrorContains(t, bad.Err, c.version)
				assert.NotContains(t, bad.Err.Error(), "\n")
				assert.Less(t, len(bad.Err.Error()), 500)
			}
			assert.Equal(t, c.rejected != "", len(snapshot.Rejected) == 1, "%v", snapshot.Rejected)
			if c.rejected != "" {
				require.ErrorContains(t, snapshot.Rejected[0], c.rejected)
			}
		})
	}
}

// TestRefresh_AcceptsUnusualNames has names that real servers use: metrics as resources, and escape sequences.
func TestRefresh_AcceptsUnusualNames(t *testing.T) {
	client := responding(t, item("good.example", `"all"`, `"r\u0026d","a\/b","\"q\"","größe"`)+","+
		item("metrics.example", `"things"`, `"datadogmetric@ns:name|p95_total~x"`)+","+item("virt.example", `"status"`, `"sev/fetchcertchain"`))
	snapshot, err := client.Refresh(t.Context())
	require.NoError(t, err)
	assert.Empty(t, snapshot.Rejected)
	for _, group := range []string{"good.example", "metrics.example", "virt.example"} {
		version := versionOf(snapshot, group)
		require.NoError(t, version.Err, group)
		require.Len(t, version.Resources, 1, group)
	}
	assert.Equal(t, []string{"r&d", "a/b", `"q"`, "größe"}, versionOf(snapshot, "good.example").Resources[0].Categories)
}

func TestRefresh_ValidatesNamesOfLegacyDiscovery(t *testing.T) {
	script, client := serving(t, "")
	script.serveJSON(map[string]string{
		"/api": `{"kind":"APIVersions","versions":["v1","../../secrets"]}`, "/api/v1": `{"kind":"APIResourceList","resources":[{"name":"pods","kind":"Pod"}]}`,
		"/apis":                `{"kind":"APIGroupList","groups":[{"name":"../api","versions":[{"version":"v1"}]},{"name":"bad.example","versions":[{"version":"v1"}]}]}`,
		"/apis/bad.example/v1": `{"kind":"APIResourceList","resources":[{"name":"../secrets","kind":"Secret"}]}`,
	})
	snapshot := refresh(t, client)
	assert.Len(t, snapshot.Rejected, 2)
	assert.Len(t, snapshot.Groups, 2)
	require.ErrorContains(t, snapshot.Groups[1].Versions[0].Err, `invalid resource name ".."`)
	assert.Equal(t, 4, script.Count(), "no request for a bad name")

	script.Handle("GET /apis/shop", scripted.JSON(`{"kind":"APIGroup","name":"../apps","versions":[{"version":"v1"}]}`))
	require.ErrorContains(t, client.refreshGroup(t.Context(), "shop"), `the response is group "../apps"`)
}

// TestSnapshot_RejectsCacheWithBadNames writes names into the shared cache folder that no server may have.
func TestSnapshot_RejectsCacheWithBadNames(t *testing.T) {
	dir := t.TempDir()
	_, client := serving(t, deployments)
	_, err := New(client.conn, &Options{CacheDir: dir}).Snapshot(t.Context())
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "discovery", "*", "apps", "v1", resourcesFile))
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(files[0], bytes.Replace(text, []byte(`"deployments"`), []byte(`"../secrets"`), 1), 0o600))
	fresh := New(client.conn, &Options{CacheDir: dir})
	snapshot, err := fresh.Snapshot(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "deployments", snapshot.Groups[1].Versions[0].Resources[0].GVR.Resource, "the server was asked")
}

func TestGet_LimitsDecompressedBodies(t *testing.T) {
	var bomb bytes.Buffer
	compressor := gzip.NewWriter(&bomb)
	spaces := bytes.Repeat([]byte(" "), 1<<20)
	for range 8 {
		_, err := compressor.Write(spaces)
		require.NoError(t, err)
	}
	require.NoError(t, compressor.Close())
	conn := scripted.Connect(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	}), nil)
	client := New(conn, nil)
	client.maxDocument = 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := client.ServerVersion(t.Context())
	require.ErrorContains(t, err, "longer than 1048576 bytes")
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
	_, err = client.Refresh(t.Context())
	require.ErrorContains(t, err, "longer than")
}

func TestErrors_AreShortAndPrintable(t *testing.T) {
	text := strings.Repeat("\x1b[31mred\nline ", 1000)
	status, err := json.Marshal(map[string]any{"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": text})
	require.NoError(t, err)
	for name, handle := range map[string]http.HandlerFunc{
		"status": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write(status)
		},
		"page": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>"+text) },
		"kind": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"kind":%q}`, strings.Repeat("\n", 10_000))
		},
	} {
		_, err := New(scripted.Connect(t, handle, nil), nil).Refresh(t.Context())
		require.Error(t, err, name)
		assert.Less(t, len(err.Error()), 3000, name)
		assert.NotContains(t, err.Error(), "\x1b", name)
		for line := range strings.SplitSeq(err.Error(), "\n") { // of errors.Join
			assert.Greater(t, len(line), 20, name)
		}
		assert.Equal(t, name == "status", apierrors.IsForbidden(err), name)
	}
}

// hanging is an older server, of which one group version hangs.
func hanging() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api":
			scripted.JSON(`{"kind":"APIVersions","versions":["v1"]}`)(w, r)
		case "/apis":
			scripted.JSON(`{"kind":"APIGroupList","groups":[{"name":"hung.example","versions":[{"version":"v1"}]},{"name":"apps","versions":[{"version":"v1"}]}]}`)(w, r)
		case "/apis/hung.example/v1":
			<-r.Context().Done()
		default:
			plural := map[bool]string{true: "pods", false: "deployments"}[r.URL.Path == "/api/v1"]
			scripted.JSON(fmt.Sprintf(`{"kind":"APIResourceList","resources":[{"name":%q,"kind":"K"}]}`, plural))(w, r)
		}
	}
}

func target(group, resource string) *SearchQuery {
	gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
	return &SearchQuery{
		IsServed:     func(s *Snapshot) bool { return s.resourcesByGVR()[gvr] != nil },
		MayBeInGroup: func(name string) bool { return name == group },
	}
}

func TestSearch_HangingGroupDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := New(scripted.Connect(t, hanging(), nil), nil)
		began := time.Now()
		took := func() time.Duration { d := time.Since(began); began = time.Now(); return d }
		_, err := client.Search(t.Context(), target("apps", "deployments"))
		require.NoError(t, err)
		assert.Equal(t, defaultVersionGrace, took(), "the first response gives the group some time")
		_, err = client.Search(t.Context(), target("apps", "nothing"))
		require.NoError(t, err)
		assert.Equal(t, defaultVersionGrace, took())
		snapshot, err := client.Search(t.Context(), target("hung.example", "things"))
		require.NoError(t, err)
		assert.Equal(t, defaultVersionGrace+defaultVersionTimeout, took(), "who asks for the group itself waits")
		require.EqualError(t, versionOf(snapshot, "hung.example").Err, "no response within 10s")
		for range 10 {
			_, err = client.Search(t.Context(), target("hung.example", "things"))
			require.NoError(t, err)
			_, err = client.Search(t.Context(), target("apps", "nothing"))
			require.NoError(t, err)
		}
		assert.Zero(t, took(), "and then not again")
		_, err = client.Refresh(t.Context())
		require.NoError(t, err)
		assert.Equal(t, defaultVersionTimeout, took())
	})
}

// TestRun_HangingGroupDelaysNoOther has Live ask for a group that hangs, while others change and are looked up.
func TestRun_HangingGroupDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.Handle("WATCH "+definitionsPath, func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Second)
			scripted.Watch(strings.ReplaceAll(widgetsModified, "shop", "hung.example"), widgetsModified)(w, r)
		})
		server.Handle("GET /apis/hung.example", scripted.Watch())
		server.Handle("GET /apis/shop", scripted.JSON(`{"kind":"APIGroup","name":"shop","versions":[{"version":"v1"}]}`))
		server.Handle("GET /apis/shop/v1", scripted.JSON(`{"kind":"APIResourceList","resources":[{"name":"widgets","kind":"Widget"}]}`))
		client, _, _ := startRun(t, server)
		time.Sleep(10100 * time.Millisecond)
		assert.Contains(t, groupsByName(client.Latest()), "shop")
		began := time.Now()
		_, err := client.Search(t.Context(), target("apps", "nothing"))
		require.NoError(t, err)
		assert.Zero(t, time.Since(began))
	})
}

func TestSearch_WaitsForSlowGroupOnlyIfNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := New(scripted.Connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/apis/hung.example/v1" {
				hanging()(w, r)
				return
			}
			select {
			case <-r.Context().Done():
			case <-time.After(3 * time.Second):
				scripted.JSON(`{"kind":"APIResourceList","resources":[{"name":"things","kind":"Thing"}]}`)(w, r)
			}
		}), nil), nil)
		_, err := client.Search(t.Context(), target("apps", "deployments"))
		require.NoError(t, err)
		snapshot, err := client.Search(t.Context(), target("hung.example", "things"))
		require.NoError(t, err)
		assert.NotNil(t, snapshot.resourcesByGVR()[schema.GroupVersionResource{Group: "hung.example", Version: "v1", Resource: "things"}])

		ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, io.ErrClosedPipe)
		defer cancel()
		_, err = client.Search(ctx, target("hung.example", "nothing"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, io.ErrClosedPipe)
	})
}

func TestSearch_RefreshesAfterInvalidate(t *testing.T) {
	server := newServer()
	server.serve(deployments)
	client := New(scripted.Connect(t, server, nil), nil)
	search := func(requests int) *Snapshot {
		t.Helper()
		before := server.Discoveries()
		found, err := client.Search(t.Context(), target("apps", "deployments"))
		require.NoError(t, err)
		assert.Equal(t, requests, server.Discoveries()-before)
		return found
	}
	known := search(1)
	assert.True(t, client.Fresh())
	assert.Same(t, known, search(0))

	client.Invalidate()
	assert.False(t, client.Fresh())
	server.Handle("GET /apis", scripted.Status(http.StatusInternalServerError, "InternalError"))
	assert.Same(t, known, search(1), "the latest snapshot is all there is")
	assert.False(t, client.Fresh())
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client.Search(canceled, target("apps", "deployments"))
	require.ErrorIs(t, err, context.Canceled)

	server.serve(jobs)
	found, err := client.Search(t.Context(), target("apps", "deployments"))
	require.NoError(t, err)
	assert.Nil(t, groupNamed(found.Groups, "apps"))
	assert.True(t, client.Fresh())
}

func TestSearch_OfflineSendsNoRequest(t *testing.T) {
	snapshot := &Snapshot{}
	found, err := NewOffline(snapshot).Search(t.Context(), target("apps", "deployments"))
	require.NoError(t, err)
	assert.Same(t, snapshot, found)
	_, err = NewOffline(nil).Search(t.Context(), target("apps", "deployments"))
	require.ErrorIs(t, err, errOffline)
}
