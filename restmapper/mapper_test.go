package restmapper_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// served writes a line for each resource: group/version plural singular Kind shortName[,shortName] category[,category],
// where "-" is none; "stale" before a line marks its version, "cluster" the resource's scope.
const served = `
/v1 pods pod Pod po all
/v1 events event Event ev
/v1 services service Service svc all
apps/v1 deployments deployment Deployment deploy all,workloads
apps/v1beta1 deployments deployment Deployment deploy all
apps/v1beta1 scales scale Scale
events.k8s.io/v1 events event Event ev
a.example.com/v1 widgets widget Widget wi
b.example.com/v1 widgets widget Widget wi,svc
b.example.com/v1 gadgets gadget Gadget
stale c.example.com/v2 gears gear Gear
c.example.com/v1 gears gear Gear
d.example.com/v1 oddities oddity Curiosity
v1.example.com/v3 things thing Thing`

// scripted serves what *lines says at each request and counts the discoveries.
func scripted(t *testing.T, lines *string) (*restmapper.Mapper, *atomic.Int32) {
	t.Helper()
	discoveries := &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		if r.URL.Path == "/apis" {
			discoveries.Add(1)
		}
		_, _ = fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","items":[%s]}`, groups(*lines, r.URL.Path == "/api"))
	}))
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(); server.Close() })
	return restmapper.New(discovery.New(conn, nil)), discoveries
}

// groups writes the lines of the core group, or of all others, as aggregated discovery does.
func groups(lines string, core bool) string {
	var order []string
	versions := map[string][]string{}
	resources := map[string][]string{}
	fresh := map[string]string{}
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		fields := strings.Fields(line)
		freshness := "Current"
		scope := "Namespaced"
		if fields[0] == "stale" {
			freshness = "Stale"
			fields = fields[1:]
		}
		if fields[0] == "cluster" {
			scope = "Cluster"
			fields = fields[1:]
		}
		group, version, _ := strings.Cut(fields[0], "/")
		if (group == "") != core {
			continue
		}
		if versions[group] == nil {
			order = append(order, group)
		}
		fields = append(fields, "-", "-")
		kind := strings.Trim(fields[3], "-")
		resource := fmt.Sprintf(
			`{"resource":%q,"singularResource":%q,"scope":%q,"responseKind":{"group":%q,"version":%q,"kind":%q},"shortNames":%s,"categories":%s}`,
			fields[1], fields[2], scope, group, version, kind, list(fields[4]), list(fields[5]))
		gv := group + "/" + version
		if resources[gv] == nil {
			versions[group] = append(versions[group], version)
		}
		resources[gv] = append(resources[gv], resource)
		fresh[gv] = freshness
	}
	var items []string
	for _, group := range order {
		var listed []string
		for _, version := range versions[group] {
			gv := group + "/" + version
			listed = append(listed, fmt.Sprintf(`{"version":%q,"freshness":%q,"resources":[%s]}`, version, fresh[gv], strings.Join(resources[gv], ",")))
		}
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q},"versions":[%s]}`, group, strings.Join(listed, ",")))
	}
	return strings.Join(items, ",")
}

func list(field string) string {
	if field == "-" {
		return "[]"
	}
	return `["` + strings.ReplaceAll(field, ",", `","`) + `"]`
}

func TestMapper_Resource(t *testing.T) {
	lines := served
	mapper, discoveries := scripted(t, &lines)
	const deployments, pods, things = "apps/v1/deployments", "/v1/pods", "v1.example.com/v3/things"
	for name, want := range map[string]string{
		"pods": pods, "pod": pods, "po": pods, "Pod": pods, "PODS": pods, "PO": pods,
		"pods.v1.": pods, "pods.": pods, "Pod.v1.": pods,
		"deployments": deployments, "deployment": deployments, "deploy": deployments, "Deployment": deployments,
		"deployments.apps": deployments, "deploy.apps": deployments, "Deployment.apps": deployments,
		"deployments.v1.apps": deployments, "Deployment.v1.apps": deployments, "deploy.v1.apps": deployments,
		"deployments.v1beta1.apps": "apps/v1beta1/deployments",
		"scales":                   "apps/v1beta1/scales", // only an older version of the group has it
		"Curiosity":                "d.example.com/v1/oddities",
		"oddity":                   "d.example.com/v1/oddities",
		"curiosity.d.example.com":  "d.example.com/v1/oddities", // a kind in lower case
		"CURIOSITY":                "d.example.com/v1/oddities",
		"oddities.d":               "d.example.com/v1/oddities", // a group's beginning
		"po.":                      pods,
		"deploy.app":               deployments,
		"Gadget.b.example":         "b.example.com/v1/gadgets",
		"things.v3.v1.example.com": things,
		"things.v1.example.com":    things,                   // the version reading finds nothing, the group reading does
		"gears":                    "c.example.com/v1/gears", // v2 is preferred, but stale
		"gears.v2.c.example.com":   "c.example.com/v2/gears",
		"events":                   "/v1/events", // core wins
		"ev":                       "/v1/events",
		"events.events.k8s.io":     "events.k8s.io/v1/events",
		"svc":                      "/v1/services",
		"svc.b.example.com":        "b.example.com/v1/widgets",
		"widgets.a.example.com":    "a.example.com/v1/widgets",
	} {
		mapping, err := mapper.Resource(t.Context(), name)
		if assert.NoError(t, err, name) {
			assert.Equal(t, want, mapping.GVR.Group+"/"+mapping.GVR.Version+"/"+mapping.GVR.Resource, name)
		}
	}
	assert.EqualValues(t, 1, discoveries.Load(), "a name that is found asks the server nothing")
}

func TestMapper_Kind(t *testing.T) {
	lines := served
	mapper, _ := scripted(t, &lines)
	for gvk, want := range map[schema.GroupVersionKind]string{
		{Group: "apps", Version: "v1", Kind: "Deployment"}:      "v1",
		{Group: "apps", Version: "v1beta1", Kind: "Deployment"}: "v1beta1",
		{Group: "apps", Kind: "Deployment"}:                     "v1",
		{Version: "v1", Kind: "Pod"}:                            "v1",
		{Group: "c.example.com", Kind: "Gear"}:                  "v1",
	} {
		mapping, err := mapper.Kind(t.Context(), gvk)
		if assert.NoError(t, err, "%v", gvk) {
			assert.Equal(t, want, mapping.GVR.Version)
			assert.Equal(t, gvk.Kind, mapping.GVK.Kind)
		}
	}
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "deployment"}, // a kind's case counts
		{Version: "v1", Kind: "Deployment"},                // the core group, not any
		{Group: "apps", Version: "v1", Kind: ""},
		{Group: "app", Kind: "Deployment"}, // a kind's group is whole
	} {
		_, err := mapper.Kind(t.Context(), gvk)
		assert.True(t, meta.IsNoMatchError(err), "%v: %v", gvk, err)
	}
}

func TestMapper_UnknownNameIsNoMatchError(t *testing.T) {
	lines := served
	mapper, _ := scripted(t, &lines)
	for name, want := range map[string]restmapper.NoMatchError{
		"deploymnets":              {Suggestions: []string{"deployments.apps"}},
		"Pods2":                    {Suggestions: []string{"pods"}},
		"gadge":                    {Suggestions: []string{"gadgets.b.example.com"}},
		"deployments.v2.apps":      {ServedVersions: []string{"v1", "v1beta1"}},
		"widgets.v2.a.example.com": {ServedVersions: []string{"v1"}},
		"zzzzzzzz":                 {},
		"":                         {},
		"pods.apps":                {Suggestions: []string{"pods"}},
		"...":                      {},
		"pd":                       {Suggestions: []string{"pods"}},
		"sva":                      {},                                                               // short names are alike too often
		"deployments.v1.app":       {ServedVersions: nil, Suggestions: []string{"deployments.apps"}}, // a version goes with a whole group
	} {
		_, err := mapper.Resource(t.Context(), name)
		var noMatch *restmapper.NoMatchError
		if assert.ErrorAs(t, err, &noMatch, name) {
			want.Name = name
			assert.Equal(t, &want, noMatch)
			assert.True(t, meta.IsNoMatchError(err))
			for _, part := range append(want.Suggestions, want.ServedVersions...) {
				assert.ErrorContains(t, err, part)
			}
		}
	}
}

func TestMapper_NameOfSeveralResourcesIsAmbiguous(t *testing.T) {
	lines := served
	mapper, _ := scripted(t, &lines)
	for _, name := range []string{"widgets", "widget", "Widget", "wi"} {
		_, err := mapper.Resource(t.Context(), name)
		var ambiguous *restmapper.AmbiguousError
		require.ErrorAs(t, err, &ambiguous, name)
		assert.Equal(t, &restmapper.AmbiguousError{Name: name, Candidates: []schema.GroupVersionResource{
			{Group: "a.example.com", Version: "v1", Resource: "widgets"}, {Group: "b.example.com", Version: "v1", Resource: "widgets"},
		}}, ambiguous)
		require.ErrorContains(t, err, "say which of widgets.a.example.com, widgets.b.example.com")
		assert.True(t, meta.IsAmbiguousError(err))
	}
}

func TestMapper_CoreGroupConflictsOnlyWithItself(t *testing.T) {
	lines := served + "\n/v1 twins twin Twin tw\n/v1 twos two Two tw\nz.example.com/v1 towers tower Tower tw"
	mapper, _ := scripted(t, &lines)
	_, err := mapper.Resource(t.Context(), "tw")
	var ambiguous *restmapper.AmbiguousError
	require.ErrorAs(t, err, &ambiguous)
	assert.Equal(t, []schema.GroupVersionResource{{Version: "v1", Resource: "twins"}, {Version: "v1", Resource: "twos"}}, ambiguous.Candidates)
}

func TestMapper_FindsNewResources(t *testing.T) {
	lines := served
	mapper, discoveries := scripted(t, &lines)
	_, err := mapper.Resource(t.Context(), "pods")
	require.NoError(t, err)

	lines += "\ncnat.example.com/v1 ats at At"
	mapping, err := mapper.Resource(t.Context(), "ats")
	require.NoError(t, err)
	assert.Equal(t, "cnat.example.com", mapping.GVR.Group)
	mapping, err = mapper.Kind(t.Context(), mapping.GVK)
	require.NoError(t, err)
	assert.Equal(t, "ats", mapping.GVR.Resource)
	assert.EqualValues(t, 2, discoveries.Load())
}

func FuzzResource(f *testing.F) {
	for _, name := range []string{"pods", "deployments.v1.apps", "..", "Ünï.cödé"} {
		f.Add(name)
	}
	lines := served
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		_, _ = fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","items":[%s]}`, groups(lines, r.URL.Path == "/api"))
	}))
	f.Cleanup(server.Close)
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	require.NoError(f, err)
	f.Cleanup(conn.Close)
	mapper := restmapper.New(discovery.New(conn, nil))
	f.Fuzz(func(t *testing.T, name string) {
		mapping, err := mapper.Resource(t.Context(), name)
		requireAnswer(t, mapping != nil, err)
		list, err := mapper.Resources(t.Context(), name)
		requireAnswer(t, len(list) > 0, err)
		adapter := mapper.RESTMapper(t.Context())
		_, err = adapter.ResourcesFor(schema.GroupVersionResource{Resource: "pods", Group: name})
		requireAnswer(t, err == nil, err)
		_, err = adapter.RESTMappings(schema.GroupKind{Group: "apps", Kind: name}, name)
		requireAnswer(t, err == nil, err)
	})
}

// requireAnswer refuses what is neither an answer nor one of the package's errors.
func requireAnswer(t *testing.T, found bool, err error) {
	t.Helper()
	var unavailable *restmapper.UnavailableError
	switch {
	case found == (err != nil):
		t.Fatalf("found %v, and the error is %v", found, err)
	case err != nil && !meta.IsNoMatchError(err) && !meta.IsAmbiguousError(err) && !errors.As(err, &unavailable):
		t.Fatalf("an error of another kind: %v", err)
	}
}
