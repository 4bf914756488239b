package restmapper_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/restmapper"
)

func paths(mappings []*discovery.Resource) []string {
	var all []string
	for _, m := range mappings {
		all = append(all, m.GVR.Group+"/"+m.GVR.Version+"/"+m.GVR.Resource)
	}
	return all
}

func TestMapper_Resources(t *testing.T) {
	lines := served + `
x.example.com/v1 alls alls Alls workloads
x.example.com/v1 news new New - fresh
x.example.com/v1beta1 olds old Old - fresh
x.example.com/v1beta1 news new New - fresh
x.example.com/v1 hats hat Hat
x.example.com/v1beta1 hats hat Hat - fresh`
	mapper, _ := serve(t, lines)
	const pods, services, deployments = "/v1/pods", "/v1/services", "apps/v1/deployments"
	for list, want := range map[string][]string{
		"pods":                {pods},
		"svc,po":              {services, pods},
		"po,pods,Pod":         {pods},
		"all":                 {pods, services, deployments},
		"deploy,all":          {deployments, pods, services},
		"workloads":           {deployments}, // a category wins over the short name of another resource
		"fresh":               {"x.example.com/v1/news", "x.example.com/v1beta1/olds", "x.example.com/v1/hats"},
		"deployments.v1.apps": {deployments},
	} {
		found, err := mapper.Resources(t.Context(), list)
		if assert.NoError(t, err, list) {
			assert.Equal(t, want, paths(found), list)
		}
	}
	for _, list := range []string{"", "po,", "po,nothing", "ALL", "all.apps"} {
		_, err := mapper.Resources(t.Context(), list)
		assert.True(t, meta.IsNoMatchError(err), "%s: %v", list, err)
	}
	_, err := mapper.Resources(t.Context(), "po,widgets")
	assert.True(t, meta.IsAmbiguousError(err), "%v", err)
}

func TestNoMatchError_IsCategory(t *testing.T) {
	mapper, _ := serve(t, served)
	_, err := mapper.Resource(t.Context(), "all")
	var noMatch *restmapper.NoMatchError
	require.ErrorAs(t, err, &noMatch)
	assert.Equal(t, &restmapper.NoMatchError{Name: "all", IsCategory: true}, noMatch)
	require.ErrorContains(t, err, "it is a category")
	assert.True(t, meta.IsNoMatchError(err))
}

func TestMapper_FindsNewCategories(t *testing.T) {
	mapper, server := serve(t, served)
	_, err := mapper.Resource(t.Context(), "pods")
	require.NoError(t, err)
	server.Serve(served + "\nx.example.com/v1 news new New - fresh")
	found, err := mapper.Resources(t.Context(), "fresh")
	require.NoError(t, err)
	assert.Equal(t, []string{"x.example.com/v1/news"}, paths(found))
}
