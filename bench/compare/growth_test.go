//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGrowthRows_ExtrapolateAndCheck(t *testing.T) {
	counts := []int{10, 20, 100}
	measured := medians{}
	for _, s := range growthSeries { // 100 bytes and 4 for each object; the largest is 1 % above that line
		measured[s.cost(10, "held")], measured[s.cost(20, "held")], measured[s.cost(100, "held")] = 140, 180, 505
	}
	rows := growthRows(counts, measured)
	require.Len(t, rows, len(growthSeries))
	assert.Equal(t, growthRow{
		Label: "client-go, unstructured", PerObject: []string{"14", "9", "5"}, Million: "0.00 GB", Checked: "-1.0 %",
	}, rows[0])
	assert.InDelta(t, 4.0625*million, extrapolated(counts[1:], []float64{180, 505}, million), 100)
	assert.Empty(t, growthRows(counts[:2], measured)[0].Checked)
	assert.Empty(t, growthRows(counts[:1], measured)[0].Million)
}
