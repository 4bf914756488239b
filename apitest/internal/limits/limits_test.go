package limits_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest/internal/limits"
)

func TestCheckAliases(t *testing.T) {
	big := "a: &a " + strings.Repeat("x", 1<<20) + "\n"
	tests := map[string]struct {
		yaml string
		want string
	}{
		"no aliases":        {big + "b: '*'", ""},
		"few aliases":       {big + "b: [*a,*a]", ""},
		"aliases":           {big + "b: [" + strings.Repeat("*a,", 300_000) + "]", "yaml: document contains excessive aliasing"},
		"aliases of levels": {big + "b: &b [*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b]", "yaml: document contains excessive aliasing"},
		"aliases of fields": {big + "b: &b {<<: {c: *a, d: *a}}\nc: [" + strings.Repeat("*b,", 20) + "]", "yaml: document contains excessive aliasing"},
		"aliases of binary": {"a: &a !!binary " + strings.Repeat("eHh4", 1<<18) + "\nb: [" + strings.Repeat("*a,", 300_000) + "]", "yaml: document contains excessive aliasing"},
		"within itself":     {"a: &a [*a]", ""},
		"broken":            {"a: &a b\nc: *b", "yaml: unknown anchor 'b' referenced"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := limits.CheckAliases([]byte(test.yaml))
			runtime.ReadMemStats(&after)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(limits.MaxDecoded))
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, test.want)
		})
	}
}
