package simulate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest/simulate/internal/testing/broken"
)

// TestRunOnce_SeedRepeatsRequests runs each controller with some seeds twice, and compares all requests: their times, order and bodies.
func TestRunOnce_SeedRepeatsRequests(t *testing.T) {
	for _, c := range broken.All() {
		t.Run(c.Name, func(t *testing.T) {
			different := map[string]bool{}
			for seed := range uint64(12) {
				var histories [2]string
				for i := range histories {
					res := runOnce(t, scenarioOf(t, c, true), &choices{seed: seed}, nil, i == 1)
					require.Nil(t, res.failure)
					require.NotEmpty(t, res.history)
					histories[i] = strings.Join(res.history, "\n")
				}
				require.Equal(t, histories[0], histories[1], "seed %d", seed)
				different[histories[0]] = true
			}
			assert.GreaterOrEqual(t, len(different), 10, "seeds differ in what happens")
		})
	}
}
