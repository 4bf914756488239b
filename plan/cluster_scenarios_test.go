package plan_test

import (
	"testing"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/planscenario"
)

// TestObjects_EqualsApply compares plans without a copy with the cluster after the apply.
func TestObjects_EqualsApply(t *testing.T) {
	c := client.Connect(t, "admin")
	for _, s := range planscenario.All() {
		if s.NeedsCopy {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			planscenario.Run(t, c, &s, nil)
		})
	}
}
