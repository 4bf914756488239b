package discovery

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestSnapshot_PreferredResources(t *testing.T) {
	resource := func(gv, name string, namespaced bool, verbs, categories []string) *Resource {
		parsed, _ := schema.ParseGroupVersion(gv)
		return &Resource{GVR: parsed.WithResource(name), Namespaced: namespaced, Verbs: verbs, Categories: categories}
	}
	read := []string{"get", "list"}
	all := []string{"all"}
	snapshot := &Snapshot{Groups: []Group{
		{Name: "", Versions: []Version{{Name: "v1", Resources: []*Resource{
			resource("v1", "pods", true, read, all), resource("v1", "nodes", false, read, nil), resource("v1", "bindings", true, []string{"create"}, nil),
		}}}},
		{Name: "apps", Versions: []Version{
			{Name: "v2", Resources: []*Resource{resource("apps/v2", "deployments", true, []string{"get"}, nil), resource("apps/v2", "scales", true, nil, nil)}},
			{Name: "v1", Resources: []*Resource{
				resource("apps/v1", "deployments", true, read, all), resource("apps/v1", "scales", true, []string{"get"}, nil),
				resource("apps/v1", "replicasets", true, read, all),
			}},
		}},
		{Name: "metrics", Versions: []Version{
			{Name: "v2", Stale: true, Resources: []*Resource{resource("metrics/v2", "nodes", false, read, nil), resource("metrics/v2", "old", false, read, nil)}},
			{Name: "v1", Resources: []*Resource{resource("metrics/v1", "nodes", false, read, nil)}},
			{Name: "v0", Err: errors.New("broken")},
		}},
	}}
	everything := []string{
		"/v1/pods", "/v1/nodes", "/v1/bindings", "apps/v2/deployments", "apps/v1/scales", "apps/v1/replicasets", "metrics/v1/nodes", "metrics/v2/old",
	}
	for name, test := range map[string]struct {
		filter *ResourceFilter
		want   []string
	}{
		"all":              {nil, everything},
		"zero filter":      {&ResourceFilter{}, everything},
		"every verb":       {&ResourceFilter{Verbs: read}, []string{"/v1/pods", "/v1/nodes", "apps/v1/replicasets", "metrics/v1/nodes", "metrics/v2/old"}},
		"cluster-scoped":   {&ResourceFilter{Namespaced: new(false)}, []string{"/v1/nodes", "metrics/v1/nodes", "metrics/v2/old"}},
		"namespaced":       {&ResourceFilter{Namespaced: new(true), Groups: []string{""}}, []string{"/v1/pods", "/v1/bindings"}},
		"one of groups":    {&ResourceFilter{Groups: []string{"", "metrics"}, Verbs: []string{"list"}}, []string{"/v1/pods", "/v1/nodes", "metrics/v1/nodes", "metrics/v2/old"}},
		"category":         {&ResourceFilter{Categories: all}, []string{"/v1/pods", "apps/v1/replicasets"}},
		"every category":   {&ResourceFilter{Categories: []string{"all", "none"}}, nil},
		"an unknown group": {&ResourceFilter{Groups: []string{"none"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for r := range snapshot.PreferredResources(test.filter) {
				got = append(got, r.GVR.Group+"/"+r.GVR.Version+"/"+r.GVR.Resource)
			}
			assert.Equal(t, test.want, got)
			for range snapshot.PreferredResources(test.filter) {
				break
			}
		})
	}
}
