package discovery

import (
	"fmt"
	"runtime"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/limits"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

func TestDecodeAggregated_AnyOrderAndForm(t *testing.T) {
	const document = `{"kind":"APIGroupDiscoveryList","metadata":{"x":[]},"items":[%s]}`
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	want := []Group{{Name: "example.com", Versions: []Version{{Name: "v1", Stale: true, Resources: []*Resource{{
		GVR: gv.WithResource("things"), GVK: gv.WithKind("Thing"), Singular: "thing", ShortNames: []string{"th"}, Categories: []string{},
		Namespaced: true, Verbs: []string{"get", "list"},
		Subresources: []Subresource{
			{Name: "status", GVK: gv.WithKind("Thing"), Verbs: []string{"get"}},
			{Name: "scale", GVK: schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}},
		},
	}}}}}}
	const subresources = `[{"subresource":"status","responseKind":{"kind":"Thing"},"verbs":["get"]},
		{"verbs":null,"responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"subresource":"scale","more":[1]}]`
	for name, text := range map[string]string{
		"as servers write it": `{"metadata":{"name":"example.com","creationTimestamp":null},"versions":[{"version":"v1","resources":[
			{"resource":"things","responseKind":{"group":"example.com","version":"v1","kind":"Thing"},"scope":"Namespaced","singularResource":"thing",
			"verbs":["get","list"],"shortNames":["th"],"categories":[],"subresources":` + subresources + `}],"freshness":"Stale"}]}`,
		"backwards": `{"versions":[{"freshness":"Stale","resources":[{"subresources":` + subresources + `,"categories":[],"shortNames":["th"],
			"verbs":["get","list"],"singularResource":"thing","scope":"Namespaced","responseKind":{"kind":"Thing"},"resource":"things"}],
			"version":"v1"}],"metadata":{"name":"example.com"}}`,
		"escaped, with unknown fields": `{"x":{"versions":[{"version":"v2"}]},"metadata":{"name":"ex\u0061mple.com","labels":{"name":"x"}},"versions":[{"version":"\u0076\u0031",
			"resources":[{"resource":"th\u0069ngs","Resource":"X","responseKind":{"kind":"Th\u0069ng","x":1},"scope":"Namespaced","singularResource":"thin\u0067",
			"verbs":["g\u0065t","list"],"shortNames":["t\u0068"],"categories":[ ],"x":[{}],"subresources":` + subresources + `}],"x":{"version":"v2"},"freshness":"Stale"}]}`,
	} {
		groups, rejected, err := decodeAggregated(fmt.Appendf(nil, document, text), limits.DefaultPage)
		require.NoError(t, err, name)
		assert.Empty(t, rejected, name)
		assert.Equal(t, want, groups, name)
	}
	for name, text := range map[string]string{
		"null": `{"kind":"APIGroupDiscoveryList","items":null}`, "empty": fmt.Sprintf(document, ""), "spaced": " \n" + fmt.Sprintf(document, " ") + "\n",
	} {
		groups, _, err := decodeAggregated([]byte(text), limits.DefaultPage)
		require.NoError(t, err, name)
		assert.Empty(t, groups, name)
	}
	for name, text := range map[string]string{
		"no items": `{"kind":"APIGroupDiscoveryList"}`, "cut": strings.TrimSuffix(fmt.Sprintf(document, ""), "}"), "more behind it": fmt.Sprintf(document, "") + "{}",
		"null document": "null", "list": "[]", "another kind": `{"kind":"APIGroupList","items":[]}`, "empty body": "", "object of items": `{"kind":"APIGroupDiscoveryList","items":{}}`,
	} {
		_, _, err := decodeAggregated([]byte(text), limits.DefaultPage)
		require.ErrorContains(t, err, "decode APIGroupDiscoveryList: ", name)
	}
}

func TestDecodeAggregated_SharesEqualParts(t *testing.T) {
	const count = 500
	var resources []string
	for i := range count {
		resources = append(resources, fmt.Sprintf(`{"resource":"things%d","responseKind":{"group":"example.com","version":"v1","kind":"Thing%d"},"scope":"Namespaced",
			"singularResource":"thing%d","verbs":["delete","get","list"],"categories":["all"],
			"subresources":[{"subresource":"status","responseKind":{"group":"example.com","version":"v1","kind":"Thing%d"},"verbs":["get","patch"]}]}`, i, i, i, i))
	}
	body := []byte(`{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[` +
		strings.Join(resources, ",") + `]}]}]}`)
	groups, _, err := decodeAggregated(body, limits.DefaultPage)
	require.NoError(t, err)
	decoded := groups[0].Versions[0].Resources
	require.Len(t, decoded, count)
	for _, r := range decoded {
		assert.Same(t, &decoded[0].Verbs[0], &r.Verbs[0])
		assert.Same(t, &decoded[0].Categories[0], &r.Categories[0])
		assert.Same(t, &decoded[0].Subresources[0].Verbs[0], &r.Subresources[0].Verbs[0])
	}
	allocations := testing.AllocsPerRun(10, func() {
		_, _, _ = decodeAggregated(body, limits.DefaultPage)
	})
	// Three names and the subresources of each, and the tables.
	assert.Less(t, allocations, 5.0*count)
}

func TestDecodeAggregated_LimitsMemory(t *testing.T) {
	const limit, count = 16 << 20, 1 << 19
	many := func(element string) string { return "[" + element + strings.Repeat(","+element, count) + "]" }
	group := func(text string) string {
		return `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"a"},"versions":[{"version":"v1",` + text + `}]}]}`
	}
	for name, body := range map[string]string{
		"resources":          group(`"resources":` + many(`{}`)),
		"null resources":     group(`"resources":` + many(`null`)),
		"subresources":       group(`"resources":[{"subresources":` + many(`{}`) + `}]`),
		"verbs":              group(`"resources":[{"verbs":` + many(`"a"`) + `}]`),
		"groups":             `{"kind":"APIGroupDiscoveryList","items":` + many(`{}`) + `}`,
		"versions":           `{"kind":"APIGroupDiscoveryList","items":[{"versions":` + many(`{}`) + `}]}`,
		"broken groups":      `{"kind":"APIGroupDiscoveryList","items":` + many(`0`) + `}`,
		"broken versions":    `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"a"},"versions":` + many(`0`) + `}]}`,
		"one broken version": strings.Replace(group(`"resources":`+many(`{}`)), `}]}]}`, `},0]}]}`, 1),
	} {
		var err error
		allocated := allocated(func() { _, _, err = decodeAggregated([]byte(body), limit) })
		require.ErrorIs(t, err, errTooLarge, name)
		assert.Less(t, allocated, int64(8*limit+32*len(body)), name) // with the race detector: twice of what it is without
	}
	skipped := group(`"x":` + many(`{"":0}`))
	assert.Less(t, allocated(func() {
		_, _, err := decodeAggregated([]byte(skipped), limit)
		require.NoError(t, err)
	}), int64(4*len(skipped)))
}

// allocated returns the bytes that f allocates, which are at least those that it holds at any time.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc) //nolint:gosec // less than the memory of this machine
}

func TestCheckMemory_LimitsOtherDocuments(t *testing.T) {
	server := scripted.New("")
	server.Handle("GET /apis", scripted.JSON(`{"kind":"APIGroupList","groups":[{}`+strings.Repeat(",{}", 1<<18)+`]}`))
	conn := scripted.Connect(t, server, &transport.Options{MemoryLimits: transport.MemoryLimits{Page: 16 << 20}})
	client := New(conn, nil)
	assert.Less(t, allocated(func() {
		_, err := client.Refresh(t.Context())
		require.ErrorIs(t, err, errTooLarge)
	}), int64(64<<20))
}

// Documents count a few times their length, far from the limit.
func TestDecodeAggregated_MemoryOfRealDocuments(t *testing.T) {
	resource := `{"resource":"things","responseKind":{"group":"example.com","version":"v1","kind":"Thing"},"scope":"Namespaced","singularResource":"thing",
		"verbs":["delete","deletecollection","get","list","patch","create","update","watch"],"categories":["all"],
		"subresources":[{"subresource":"status","responseKind":{"group":"example.com","version":"v1","kind":"Thing"},"verbs":["get","patch","update"]}]}`
	body := `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"a"},"versions":[{"version":"v1","resources":[` + resource + strings.Repeat(","+resource, 10000) + `]}]}]}`
	smallest := sort.Search(1<<10, func(times int) bool {
		_, _, err := decodeAggregated([]byte(body), int64(times*len(body)))
		return err == nil
	})
	t.Logf("the memory is %d times the length", smallest)
	assert.Less(t, int64(smallest), limits.DefaultPage/maxDocument)
}
