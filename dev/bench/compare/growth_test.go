//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGrowthRows_ExtrapolateAndCheck(t *testing.T) {
	counts := []int{10, 20, 100}
	figures := map[cost]float64{}
	for _, s := range growthSeries { // 100 bytes and 4 for each object; the largest is 1 % above that line
		figures[s.cost(10, "held")] = 140
		figures[s.cost(20, "held")] = 180
		figures[s.cost(100, "held")] = 505
	}
	kept := resultsWith(t, figures)
	rows := growthRows(counts, kept)
	require.Len(t, rows, len(growthSeries))
	assert.Equal(t, growthRow{
		Label: "client-go, unstructured", PerObject: []string{"14", "9", "5"}, Million: "0.00 GB", Checked: "-1.0 %",
	}, rows[0])
	assert.InDelta(t, 4.0625*million, extrapolated(counts[1:], []float64{180, 505}, million), 100)
	assert.Empty(t, growthRows(counts[:2], kept)[0].Checked)
	assert.Empty(t, growthRows(counts[:1], kept)[0].Million)
}
