//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestManagerRows_BeforeAndAfter(t *testing.T) {
	figures := map[cost]float64{}
	for i, form := range managerForms {
		after, before := form.runs(50)
		for figure, values := range map[string][2]float64{"start-wall": {0.5, 0.25}, "start-cpu": {1, float64(i)}, "held": {40e6, 10e6}} {
			figures[cost{before, figure}] = values[0]
			figures[cost{after, figure}] = values[1]
		}
	}
	rows := managerRows([]int{50}, resultsWith(t, figures))
	assert.Len(t, rows, len(managerForms))
	assert.Equal(t, managerRow{Form: "typed", Pods: 50, Figures: []string{"0.50 → 0.25 s (0.50)", "1.00 → 2.00 s (2.00)", "40.00 → 10.00 MB (0.25)"}}, rows[2])
}

func TestControllerRuntimeComparisons_HaveAimsAndStages(t *testing.T) {
	staged := map[string]bool{}
	for _, tasks := range stages {
		for _, task := range tasks {
			staged[task] = true
		}
	}
	for _, c := range controllerRuntimeComparisons([]int{5}) {
		assert.Positive(t, c.aim, c.name)
		assert.True(t, staged[c.ours.task] && staged[c.theirs.task], c.name)
	}
}
