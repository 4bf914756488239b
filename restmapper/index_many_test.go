package restmapper_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMapper_TwoThousandDefinitions(t *testing.T) {
	var all strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&all, "g%d.example.com/v1 things%d thing%d Thing%d t%d,same\n", i%50, i, i, i, i)
	}
	lines := all.String()
	mapper, server := serve(t, lines)
	for i := range 2000 {
		want := schema.GroupVersionResource{Group: fmt.Sprintf("g%d.example.com", i%50), Version: "v1", Resource: fmt.Sprintf("things%d", i)}
		for _, name := range []string{want.Resource, fmt.Sprintf("thing%d", i), fmt.Sprintf("Thing%d", i), fmt.Sprintf("t%d", i), want.GroupResource().String()} {
			mapping, err := mapper.Resource(t.Context(), name)
			require.NoError(t, err, name)
			require.Equal(t, want, mapping.GVR, name)
		}
	}
	assert.Equal(t, 1, server.Discoveries())
	_, err := mapper.Resource(t.Context(), "same")
	assert.True(t, meta.IsAmbiguousError(err), "%v", err)
	_, err = mapper.Resource(t.Context(), "thingz17")
	require.ErrorContains(t, err, "things17.g17.example.com")
}
