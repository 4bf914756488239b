package oracle

import (
	"strings"
	"testing"
)

func TestDiff_SameAsKubectl(t *testing.T) {
	o := newSetOracle(t)
	for _, c := range diffCases() {
		t.Run(strings.ReplaceAll(c.line, "/", ":"), func(t *testing.T) {
			t.Parallel()
			o.compare(t, &c)
		})
	}
}
