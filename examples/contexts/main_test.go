package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/transport/kubeconfig/edit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tenContexts is a kubeconfig with the contexts c0 to c9 of as many clusters.
func tenContexts(server string) *kubeconfig.File {
	file := &kubeconfig.File{Clusters: map[string]kubeconfig.Cluster{}, Contexts: map[string]kubeconfig.Context{}}
	for i := range 10 {
		name := fmt.Sprint("c", i)
		file.Clusters[name] = kubeconfig.Cluster{Server: fmt.Sprintf("%s/%s", server, name)}
		file.Contexts[name] = kubeconfig.Context{Cluster: name}
	}
	return file
}

func names(file *kubeconfig.File) []string {
	var all []string
	for i := range len(file.Contexts) {
		all = append(all, fmt.Sprint("c", i))
	}
	return all
}

const (
	pages, perPage = 10, 500
	index          = `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{},"versions":[{"version":"v1","resources":[
		{"resource":"namespaces","responseKind":{"version":"v1","kind":"Namespace"},"scope":"Cluster","verbs":["list"]},
		{"resource":"pods","responseKind":{"version":"v1","kind":"Pod"},"scope":"Namespaced","verbs":["list"]}]}]}]}`
)

// manyPods serves discovery, no namespace, and pods in 10 pages of 500 with 1 KB each.
func manyPods(w http.ResponseWriter, r *http.Request) {
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch path {
	case "api":
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		fmt.Fprint(w, index)
	case "apis":
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		fmt.Fprint(w, `{"kind":"APIGroupDiscoveryList","items":[]}`)
	case "version":
		fmt.Fprint(w, `{"major":"1","minor":"36","gitVersion":"v1.36.0"}`)
	case "api/v1/namespaces":
		fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[]}`)
	case "api/v1/pods":
		page, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		next := ""
		if page+1 < pages {
			next = fmt.Sprint(page + 1)
		}
		fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"continue":%q},"items":[`, next)
		for i := range perPage {
			fmt.Fprintf(w, `%s{"metadata":{"name":"p%d","annotations":{"filler":%q}}}`, strings.Repeat(",", min(i, 1)), i, strings.Repeat("x", 1<<10))
		}
		fmt.Fprint(w, `]}`)
	default:
		http.NotFound(w, r)
	}
}

// raise makes value the maximum of itself and candidate.
func raise(value *atomic.Int64, candidate int64) {
	for old := value.Load(); old < candidate && !value.CompareAndSwap(old, candidate); old = value.Load() {
	}
}

// TestCompare_BoundsClustersAndMemory reads 50,000 pods, 50 MB, of ten clusters.
func TestCompare_BoundsClustersAndMemory(t *testing.T) {
	const parallel, maxBytes = 2, 16 << 20
	alive := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	var requests, active, mostActive, peak atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := active.Add(1)
		defer active.Add(-1)
		raise(&mostActive, now)
		if strings.HasSuffix(r.URL.Path, "/pods") && requests.Add(1)%5 == 0 {
			raise(&peak, int64(alive()))
		}
		manyPods(w, r)
	}))
	defer server.Close()
	before := int64(alive())
	file := tenContexts(server.URL)
	var out bytes.Buffer
	require.NoError(t, compare(t.Context(), &out, file, names(file), parallel, time.Minute))
	assert.Equal(t, 10, strings.Count(out.String(), "v1.36.0   0            5000\n"), out.String())
	assert.EqualValues(t, 10*pages, requests.Load())
	assert.LessOrEqual(t, mostActive.Load(), int64(2*parallel), "each cluster has at most two requests at a time")
	assert.Less(t, peak.Load(), before+maxBytes)
	t.Logf("%d MB above %d MB", (peak.Load()-before)>>20, before>>20)
}

func TestCompare_FailuresStayInTheirRow(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(manyPods))
	defer server.Close()
	file := tenContexts(server.URL)
	file.Clusters["c1"] = kubeconfig.Cluster{Server: "http://127.0.0.1:1"}
	file.Contexts["c2"] = kubeconfig.Context{Cluster: "none"}
	var out bytes.Buffer
	require.NoError(t, compare(t.Context(), &out, file, []string{"c0", "c1", "c2", "c12"}, 4, time.Minute))
	for _, pattern := range []string{
		`(?m)^c0 +v1.36.0 +0 +5000$`, `(?m)^c1 .*127\.0\.0\.1:1`, `(?m)^c2 .*cluster "none" does not exist`, `(?m)^c12 .*context "c12" does not exist`,
	} {
		assert.Regexp(t, pattern, out.String())
	}
}

// TestRun_TenContextsOfRealServer takes kubectl for an oracle, with ten contexts of one cluster. A Namespace of an earlier test may
// disappear meanwhile: then the comparison is repeated.
func TestRun_TenContextsOfRealServer(t *testing.T) {
	text, err := os.ReadFile(cluster.Kubeconfig(t))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	require.NoError(t, edit.File(t.Context(), path, func(d *edit.Document) error {
		file, err := d.File()
		require.NoError(t, err)
		for i := range 10 {
			file.Contexts[fmt.Sprint("c", i)] = file.Contexts["admin"]
		}
		return d.Put(&kubeconfig.File{Contexts: file.Contexts})
	}))
	t.Setenv("KUBECONFIG", path)
	count := func(c *assert.CollectT, args ...string) int {
		output, err := exec.CommandContext(t.Context(), cluster.Kubectl(t), append(args, "-o", "name")...).Output()
		require.NoError(c, err)
		return strings.Count(string(output), "\n")
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		namespaces := count(c, "get", "namespaces")
		pods := count(c, "get", "pods", "-A")
		var out bytes.Buffer
		require.NoError(c, run(t.Context(), &out, nil, 3, time.Minute))
		rows := regexp.MustCompile(fmt.Sprintf(`(?m)^c\d +v1\.\S+ +%d +%d$`, namespaces, pods)).FindAllString(out.String(), -1)
		assert.Len(c, rows, 10, out.String())
		assert.Regexp(c, `(?m)^limited .*forbidden`, out.String())
	}, time.Minute, time.Second)
}
