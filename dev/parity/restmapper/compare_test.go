package restmapper_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dev/parity/discoverytest"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport"
)

// Reasons why anykind may resolve a name differently from kubectl.
const (
	several   = "several groups serve it: anykind asks which, kubectl takes the first"
	itsCase   = "anykind takes short names in any case"
	itsKind   = "anykind takes a kind whose lower case is not its singular without a group, too"
	itsStale  = "anykind resolves the last known resources of a stale version, client-go drops them"
	versioned = "anykind keeps to the version that is typed after a short name, client-go drops it"
)

// resourceName is a name of a resource in one form.
type resourceName struct {
	text string
	// short, upper and kind are the properties of the name that may cause a difference.
	short, upper, kind, versioned bool
}

// resourceNames returns the names of a resource of a group version in all forms.
func resourceNames(gv schema.GroupVersion, r *apidiscovery.APIResourceDiscovery) []resourceName {
	lower := strings.ToLower(r.ResponseKind.Kind)
	bare := []resourceName{
		{text: r.Resource},
		{text: strings.ToUpper(r.Resource)},
		{text: r.ResponseKind.Kind, kind: true},
		{text: lower, kind: true},
	}
	if r.SingularResource != "" {
		bare = append(bare, resourceName{text: r.SingularResource})
	}
	for _, short := range r.ShortNames {
		bare = append(bare, resourceName{text: short, short: true}, resourceName{text: strings.ToUpper(short), short: true, upper: true})
	}
	var all []resourceName
	for _, name := range bare {
		grouped := name
		full := name
		grouped.text += "." + gv.Group
		full.text += "." + gv.Version + "." + gv.Group
		full.versioned = true
		all = append(all, name, full)
		if gv.Group == "" {
			continue
		}
		all = append(all, grouped)
		if first, _, dotted := strings.Cut(gv.Group, "."); dotted {
			name.text += "." + first
			all = append(all, name)
		}
	}
	return all
}

func TestMapper_NamesAsKubectl(t *testing.T) {
	served := discoverytest.EveryForm()
	server := discoverytest.NewServer(t, served.Groups)
	mapper := offlineMapper(t, discoverytest.Connect(t, server))
	theirs, _ := discoverytest.ClientGoMapper(discoverytest.NewInOrder(t, discoverytest.ClientGoDiscovery(t, server)))
	differences := compareNames(t, served, mapper, theirs)
	assert.ElementsMatch(t, []string{several, itsCase, itsKind, itsStale, versioned}, differences,
		"a difference that is gone has no place in the list")
}

// offlineMapper returns a mapper with a snapshot of the server and no connection: thousands of missing names would exceed
// the rate at which a mapper refreshes.
func offlineMapper(t *testing.T, conn *transport.Conn) *restmapper.Mapper {
	t.Helper()
	snapshot, err := discovery.New(conn, nil).Snapshot(t.Context())
	require.NoError(t, err)
	return restmapper.New(discovery.NewOffline(snapshot))
}

// compareNames resolves each name of each resource with both mappers, and counts the differences by reason.
func compareNames(t *testing.T, served *discoverytest.Catalog, mapper *restmapper.Mapper, theirs meta.RESTMapper) []string {
	t.Helper()
	compared := 0
	differences := map[string][]string{}
	served.Each(func(gv schema.GroupVersion, stale bool, resource *apidiscovery.APIResourceDiscovery) {
		for _, name := range resourceNames(gv, resource) {
			compared++
			want, theirErr := discoverytest.KubectlResolves(theirs, name.text)
			got, ourErr := mapper.Resource(t.Context(), name.text)
			if same(got, want) && (ourErr == nil) == (theirErr == nil) {
				continue
			}
			reason := explain(&name, stale, got, want, ourErr)
			if reason == "" {
				t.Errorf("%s: anykind %v, %v; kubectl %v, %v", name.text, got, ourErr, want, theirErr)
			}
			differences[reason] = append(differences[reason], name.text)
		}
	})
	t.Logf("%d names compared", compared)
	for reason, names := range differences {
		t.Logf("%d differ: %s (such as %s)", len(names), reason, names[0])
	}
	return slices.Collect(maps.Keys(differences))
}

// explain returns the reason for a difference, or "".
func explain(name *resourceName, stale bool, got *discovery.Resource, want *meta.RESTMapping, err error) string {
	var ambiguous *restmapper.AmbiguousError
	switch {
	case errors.As(err, &ambiguous):
		if want == nil || ambiguous.Candidates[0] == want.Resource {
			return several
		}
		return ""
	case err != nil:
		return ""
	case want == nil && stale:
		return itsStale
	case want == nil && name.upper:
		return itsCase
	case want == nil && name.kind:
		return itsKind
	case want != nil && name.short && name.versioned && got.GVR.GroupResource() == want.Resource.GroupResource():
		return versioned
	default:
		return ""
	}
}

// same reports whether both found the same, or neither found anything.
func same(got *discovery.Resource, want *meta.RESTMapping) bool {
	if got == nil || want == nil {
		return got == nil && want == nil
	}
	return got.GVR == want.Resource && got.Namespaced == (want.Scope.Name() == meta.RESTScopeNameNamespace) &&
		// client-go returns a kind as it was typed.
		strings.EqualFold(got.GVK.Kind, want.GroupVersionKind.Kind)
}

func TestRESTMapper_AsClientGo(t *testing.T) {
	served := discoverytest.EveryForm()
	server := discoverytest.NewServer(t, served.Groups)
	ours := offlineMapper(t, discoverytest.Connect(t, server)).RESTMapper(t.Context())
	theirs, _ := discoverytest.ClientGoMapper(discoverytest.NewInOrder(t, discoverytest.ClientGoDiscovery(t, server)))
	asked := map[string]bool{}
	served.Each(func(gv schema.GroupVersion, _ bool, resource *apidiscovery.APIResourceDiscovery) {
		if gv.Group == "stale.example.com" {
			return // client-go drops what is stale: see the test above
		}
		partials := []schema.GroupVersionResource{}
		for _, name := range append([]string{resource.Resource, resource.SingularResource, strings.ToUpper(resource.Resource)}, resource.ShortNames...) {
			short := slices.Contains(resource.ShortNames, name)
			partials = append(partials, schema.GroupVersionResource{Resource: name}, schema.GroupVersionResource{Group: gv.Group, Resource: name})
			if !short {
				partials = append(partials, gv.WithResource(name), schema.GroupVersionResource{Version: gv.Version, Resource: name})
			}
		}
		partials = append(partials, schema.GroupVersionResource{Group: gv.Group, Version: "__internal", Resource: resource.Resource},
			schema.GroupVersionResource{Group: gv.Group, Version: "v9", Resource: resource.Resource})
		for _, partial := range partials {
			compareResources(t, ours, theirs, partial)
		}
		kinds := []string{resource.ResponseKind.Kind, resource.ResponseKind.Kind + "List"}
		if !asked[gv.Group] {
			asked[gv.Group] = true
			kinds = append(kinds, "List", "None")
		}
		for _, name := range kinds {
			kind := schema.GroupKind{Group: gv.Group, Kind: name}
			for _, versions := range [][]string{nil, {""}, {gv.Version}, {"v9"}, {"v9", gv.Version}, {"v1", "v1beta1"}, {"v1beta1", "v1"}} {
				compareKinds(t, ours, theirs, kind, versions)
			}
		}
	})
}

// compareResources calls every method of both mappers with a partial resource.
func compareResources(t *testing.T, ours, theirs meta.RESTMapper, partial schema.GroupVersionResource) {
	t.Helper()
	resource, ourErr := ours.ResourceFor(partial)
	wantResource, theirErr := theirs.ResourceFor(partial)
	assertSame(t, fmt.Sprintf("ResourceFor %v", partial), resource, wantResource, ourErr, theirErr)
	resources, ourErr := ours.ResourcesFor(partial)
	wantResources, theirErr := theirs.ResourcesFor(partial)
	assertSame(t, fmt.Sprintf("ResourcesFor %v", partial), resources, wantResources, ourErr, theirErr)
	kind, ourErr := ours.KindFor(partial)
	wantKind, theirErr := theirs.KindFor(partial)
	assertSame(t, fmt.Sprintf("KindFor %v", partial), kind, wantKind, ourErr, theirErr)
	kinds, ourErr := ours.KindsFor(partial)
	wantKinds, theirErr := theirs.KindsFor(partial)
	assertSame(t, fmt.Sprintf("KindsFor %v", partial), kinds, wantKinds, ourErr, theirErr)
	singular, ourErr := ours.ResourceSingularizer(partial.Resource)
	wantSingular, theirErr := theirs.ResourceSingularizer(partial.Resource)
	assertSame(t, fmt.Sprintf("ResourceSingularizer %v", partial), singular, wantSingular, ourErr, theirErr)
}

func compareKinds(t *testing.T, ours, theirs meta.RESTMapper, kind schema.GroupKind, versions []string) {
	t.Helper()
	one, ourErr := ours.RESTMapping(kind, versions...)
	wantOne, theirErr := theirs.RESTMapping(kind, versions...)
	assertSame(t, fmt.Sprintf("RESTMapping %v %v", kind, versions), one, wantOne, ourErr, theirErr)
	all, ourErr := ours.RESTMappings(kind, versions...)
	wantAll, theirErr := theirs.RESTMappings(kind, versions...)
	assertSame(t, fmt.Sprintf("RESTMappings %v %v", kind, versions), all, wantAll, ourErr, theirErr)
}

// assertSame compares results, and the properties of errors that callers use: no match and of what, or several matches.
func assertSame[T any](t *testing.T, what string, got, want T, ourErr, theirErr error) {
	t.Helper()
	assert.Equal(t, meta.IsNoMatchError(theirErr), meta.IsNoMatchError(ourErr), "%s: %v", what, ourErr)
	assert.Equal(t, meta.IsAmbiguousError(theirErr), meta.IsAmbiguousError(ourErr), "%s: %v", what, ourErr)
	assert.Equal(t, theirErr == nil, ourErr == nil, "%s: anykind %v, client-go %v", what, ourErr, theirErr)
	if theirErr == nil {
		assert.Equal(t, want, got, what)
	}
	var noKind, wantKind *meta.NoKindMatchError
	if errors.As(theirErr, &wantKind) && assert.ErrorAs(t, ourErr, &noKind, what) {
		assert.Equal(t, wantKind, noKind, what)
	}
	var noResource, wantResource *meta.NoResourceMatchError
	if errors.As(theirErr, &wantResource) && assert.ErrorAs(t, ourErr, &noResource, what) {
		assert.True(t, strings.EqualFold(wantResource.PartialResource.Resource, noResource.PartialResource.Resource), what)
	}
}
