package restmapper_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/restmapper"
)

// served are resources in the format of scripted.Index.
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

// serve returns a mapper over a scripted server of the resources.
func serve(t testing.TB, resources string) (*restmapper.Mapper, *scripted.Server) {
	t.Helper()
	server := scripted.New(resources)
	return restmapper.New(connect(t, server)), server
}

func connect(t testing.TB, server http.Handler) *discovery.Client {
	t.Helper()
	return discovery.New(scripted.Connect(t, server, nil), nil)
}

func TestMapper_Resource(t *testing.T) {
	mapper, server := serve(t, served)
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
	assert.Equal(t, 1, server.Discoveries(), "a name that is found asks the server nothing")
}

func TestMapper_Kind(t *testing.T) {
	mapper, _ := serve(t, served)
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
	mapper, _ := serve(t, served)
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
	mapper, _ := serve(t, served)
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

func TestMapper_AmbiguousNameAfterDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mapper, server := serve(t, served)
		_, err := mapper.Resource(t.Context(), "pods")
		require.NoError(t, err)
		requireAmbiguous := func() {
			t.Helper()
			_, err := mapper.Resource(t.Context(), "widgets")
			require.ErrorAs(t, err, new(*restmapper.AmbiguousError))
		}
		requireAmbiguous()
		sent := server.Count()
		server.Serve(strings.Replace(served, "\nb.example.com/v1 widgets widget Widget wi,svc", "", 1))
		requireAmbiguous()
		assert.Equal(t, sent, server.Count(), "no request for the same name within 50 ms")
		time.Sleep(50 * time.Millisecond)
		found, err := mapper.Resource(t.Context(), "widgets")
		require.NoError(t, err)
		assert.Equal(t, "a.example.com", found.GVR.Group)
	})
}

func TestMapper_CoreGroupConflictsOnlyWithItself(t *testing.T) {
	lines := served + "\n/v1 twins twin Twin tw\n/v1 twos two Two tw\nz.example.com/v1 towers tower Tower tw"
	mapper, _ := serve(t, lines)
	_, err := mapper.Resource(t.Context(), "tw")
	var ambiguous *restmapper.AmbiguousError
	require.ErrorAs(t, err, &ambiguous)
	assert.Equal(t, []schema.GroupVersionResource{{Version: "v1", Resource: "twins"}, {Version: "v1", Resource: "twos"}}, ambiguous.Candidates)
}

func TestMapper_FindsNewResources(t *testing.T) {
	mapper, server := serve(t, served)
	_, err := mapper.Resource(t.Context(), "pods")
	require.NoError(t, err)

	server.Serve(served + "\ncnat.example.com/v1 ats at At")
	mapping, err := mapper.Resource(t.Context(), "ats")
	require.NoError(t, err)
	assert.Equal(t, "cnat.example.com", mapping.GVR.Group)
	mapping, err = mapper.Kind(t.Context(), mapping.GVK)
	require.NoError(t, err)
	assert.Equal(t, "ats", mapping.GVR.Resource)
	assert.Equal(t, 2, server.Discoveries())
}

func FuzzResource(f *testing.F) {
	for _, name := range []string{"pods", "deployments.v1.apps", "..", "Ünï.cödé"} {
		f.Add(name)
	}
	mapper, _ := serve(f, served)
	f.Fuzz(func(t *testing.T, name string) {
		mapping, err := mapper.Resource(t.Context(), name)
		requireResult(t, mapping != nil, err)
		list, err := mapper.Resources(t.Context(), name)
		requireResult(t, len(list) > 0, err)
		adapter := mapper.RESTMapper(t.Context())
		_, err = adapter.ResourcesFor(schema.GroupVersionResource{Resource: "pods", Group: name})
		requireResult(t, err == nil, err)
		_, err = adapter.RESTMappings(schema.GroupKind{Group: "apps", Kind: name}, name)
		requireResult(t, err == nil, err)
	})
}

// requireResult refuses what is neither a result nor one of the package's errors.
func requireResult(t *testing.T, found bool, err error) {
	t.Helper()
	var unavailable *restmapper.UnavailableError
	switch {
	case found == (err != nil):
		t.Fatalf("found %v, and the error is %v", found, err)
	case err != nil && !meta.IsNoMatchError(err) && !meta.IsAmbiguousError(err) && !errors.As(err, &unavailable):
		t.Fatalf("an error of another kind: %v", err)
	}
}
