package discovery_test

import (
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
)

func sandbox(t *testing.T) *transport.Conn {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// groupByGroup requests legacy discovery, as from servers before 1.26.
type groupByGroup struct{ conn *transport.Conn }

func (p groupByGroup) RoundTrip(r *http.Request) (*http.Response, error) {
	return p.conn.Do(r.Context(), &transport.Request{Path: r.URL.Path, Header: http.Header{"Accept": {"application/json"}}})
}

func TestRefresh_AggregatedAndLegacyAgreeOnRealServer(t *testing.T) {
	conn := sandbox(t)
	aggregated, err := discovery.New(conn, nil).Snapshot(t.Context())
	require.NoError(t, err)
	require.True(t, aggregated.Aggregated)
	old, err := transport.New(conn.Server(), &http.Client{Transport: groupByGroup{conn}}, nil)
	require.NoError(t, err)
	legacy, err := discovery.New(old, nil).Snapshot(t.Context())
	require.NoError(t, err)
	require.False(t, legacy.Aggregated)

	require.Greater(t, len(aggregated.Groups), 10)
	assert.Equal(t, sorted(aggregated), sorted(legacy))
	assert.Equal(t, preferred(aggregated), preferred(legacy))
}

// sorted lists a snapshot's resources by name: the two forms list them, and their short names, in different orders.
func sorted(snapshot *discovery.Snapshot) map[string]discovery.Resource {
	all := map[string]discovery.Resource{}
	for _, group := range snapshot.Groups {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				one := *resource
				one.StorageVersionHash = "" // which only the legacy form has
				one.Verbs = slices.Sorted(slices.Values(one.Verbs))
				one.Subresources = slices.SortedFunc(slices.Values(one.Subresources), func(a, b discovery.Subresource) int {
					return strings.Compare(a.Name, b.Name)
				})
				all[one.GVR.String()] = one
			}
		}
	}
	return all
}

// preferred lists the groups in the server's order, each with its preferred version.
func preferred(snapshot *discovery.Snapshot) []string {
	var groups []string
	for _, group := range snapshot.Groups {
		groups = append(groups, group.Name+"/"+group.Versions[0].Name)
	}
	return groups
}

func TestClient_ServerVersionOfRealServer(t *testing.T) {
	version, err := discovery.New(sandbox(t), nil).ServerVersion(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "1", version.Major)
	assert.True(t, strings.HasPrefix(version.GitVersion, "v1."), version.GitVersion)
}

// TestSnapshot_PreferredResourcesEqualKubectl takes kubectl api-resources with the same filters for an oracle.
func TestSnapshot_PreferredResourcesEqualKubectl(t *testing.T) {
	conn := sandbox(t)
	snapshot, err := discovery.New(conn, nil).Snapshot(t.Context())
	require.NoError(t, err)
	for flags, filter := range map[string]*discovery.ResourceFilter{
		"":                            nil,
		"--verbs=list,watch":          {Verbs: []string{"list", "watch"}},
		"--verbs=create":              {Verbs: []string{"create"}},
		"--namespaced=true":           {Namespaced: new(true)},
		"--namespaced=false":          {Namespaced: new(false)},
		"--api-group=":                {Groups: []string{""}},
		"--api-group=apps":            {Groups: []string{"apps"}},
		"--api-group=example.org":     {Groups: []string{"example.org"}},
		"--categories=all":            {Categories: []string{"all"}},
		"--categories=api-extensions": {Categories: []string{"api-extensions"}},
		"--verbs=delete --namespaced=true --api-group=apps --categories=all": {
			Verbs: []string{"delete"}, Namespaced: new(true), Groups: []string{"apps"}, Categories: []string{"all"},
		},
	} {
		t.Run(flags, func(t *testing.T) {
			assert.ElementsMatch(t, table(apiResources(t, strings.Fields(flags)...)), rows(snapshot, filter))
		})
	}
}

func apiResources(t *testing.T, flags ...string) string {
	t.Helper()
	args := append([]string{"--kubeconfig", cluster.Kubeconfig(t), "--cache-dir", t.TempDir(), "api-resources", "-o", "wide", "--sort-by=name"}, flags...)
	output, err := exec.CommandContext(t.Context(), cluster.Kubectl(t), args...).Output()
	require.NoError(t, err)
	return string(output)
}

// row is a resource as kubectl prints it: plural, short names, group version, scope, kind, verbs.
type row [6]string

// table reads kubectl's columns, which begin where their headings do.
func table(output string) []row {
	heading, body, _ := strings.Cut(strings.TrimSpace(output), "\n")
	var rows []row
	for line := range strings.Lines(body) {
		var read row
		for i, name := range []string{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND", "VERBS"} {
			read[i], _, _ = strings.Cut(line[strings.Index(heading, name):], " ")
		}
		read[5] = byName(strings.Split(read[5], ","))
		rows = append(rows, read)
	}
	return rows
}

func rows(snapshot *discovery.Snapshot, filter *discovery.ResourceFilter) []row {
	var rows []row
	for r := range snapshot.PreferredResources(filter) {
		namespaced := map[bool]string{true: "true", false: "false"}[r.Namespaced]
		rows = append(rows, row{r.GVR.Resource, strings.Join(r.ShortNames, ","), r.GVR.GroupVersion().String(),
			namespaced, r.GVK.Kind, byName(r.Verbs)})
	}
	return rows
}

func byName(verbs []string) string { return strings.Join(slices.Sorted(slices.Values(verbs)), ",") }
