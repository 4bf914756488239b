package restmapper_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/restmapper"
)

func TestMapper_WaitForResources(t *testing.T) {
	for name, test := range map[string]struct {
		names []string
		want  []string
		err   string
	}{
		"none":             {},
		"names":            {names: []string{"po", "Deployment.v1beta1.apps", "gears"}, want: []string{"v1/pods", "apps/v1beta1/deployments", "c.example.com/v1/gears"}},
		"the same twice":   {names: []string{"pods", "pod"}, want: []string{"v1/pods", "v1/pods"}},
		"an ambiguous one": {names: []string{"po", "widgets", "none"}, err: `"widgets" means several resources: say which of widgets.a.example.com, widgets.b.example.com`},
	} {
		t.Run(name, func(t *testing.T) {
			mapper, server := serve(t, served)
			found, err := mapper.WaitForResources(t.Context(), test.names...)
			if test.err != "" {
				require.EqualError(t, err, test.err)
				assert.True(t, meta.IsAmbiguousError(err))
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, test.want, namesOf(found))
			assert.Equal(t, 1, server.Discoveries())
		})
	}
}

func namesOf(resources []*discovery.Resource) []string {
	var all []string
	for _, r := range resources {
		all = append(all, r.GVR.GroupVersion().String()+"/"+r.GVR.Resource)
	}
	return all
}

func TestMapper_WaitForKinds(t *testing.T) {
	mapper, _ := serve(t, served)
	gadget := schema.GroupVersionKind{Group: "b.example.com", Version: "v1", Kind: "Gadget"}
	found, err := mapper.WaitForKinds(t.Context(), gadget, schema.GroupVersionKind{Group: "apps", Kind: "Deployment"})
	require.NoError(t, err)
	assert.Equal(t, []string{"b.example.com/v1/gadgets", "apps/v1/deployments"}, namesOf(found))
}

func TestMapper_WaitForEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mapper, server := serve(t, served)
		wait := func(names ...string) error {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := mapper.WaitForResources(ctx, names...)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return err
		}
		var noMatch *restmapper.NoMatchError
		err := wait("po", "gadgts")
		require.ErrorAs(t, err, &noMatch)
		assert.Contains(t, err.Error(), `wait for "gadgts": discover resources of http://`)
		assert.Contains(t, err.Error(), `did you mean gadgets.b.example.com?`)
		assert.Greater(t, server.Discoveries(), 2)
		var unavailable *restmapper.UnavailableError
		require.ErrorAs(t, wait("things.c.example.com"), &unavailable)
	})

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	mapper, _ := serve(t, served)
	_, err := mapper.WaitForKinds(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "wait for resources: ")
}

func TestMapper_WaitForDefinitionsOfRealServer(t *testing.T) {
	conn, _, mapper := sandbox(t)
	type result struct {
		found []*discovery.Resource
		err   error
	}
	waited := make(chan result, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		found, err := mapper.WaitForKinds(ctx,
			schema.GroupVersionKind{Group: "wait2.example.com", Version: "v1", Kind: "Gadget"}, schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
			schema.GroupVersionKind{Group: "wait1.example.com", Kind: "Gadget"})
		waited <- result{found, err}
	}()
	time.Sleep(300 * time.Millisecond)
	define(t, conn, "wait1.example.com")
	eventually(t, mapper, "gadgets.wait1.example.com")
	assert.Empty(t, waited, "one of them is missing")
	define(t, conn, "wait2.example.com")
	got := <-waited
	require.NoError(t, got.err)
	assert.Equal(t, []string{"wait2.example.com/v1/gadgets", "v1/pods", "wait1.example.com/v1/gadgets"}, namesOf(got.found))
}
