//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestComparison_WithFloor(t *testing.T) {
	ours := cost{run{"ours", "calls", 3}, "get-alloc"}
	theirs := cost{run{"theirs", "calls", 3}, "get-alloc"}
	floor := cost{run{"ours", "floor-calls", 3}, "get-alloc"}
	for name, test := range map[string]struct {
		c    comparison
		cost float64 // of the floor
		aim  float64
	}{
		"above the aim":       {comparison{aim: 0.5, ours: ours, theirs: theirs}, 60, 0.6 * floorAim},
		"below the aim":       {comparison{aim: 0.5, ours: ours, theirs: theirs}, 40, 0.5},
		"not measured":        {comparison{aim: 0.5, ours: ours, theirs: theirs}, 0, 0.5},
		"the floor's own":     {comparison{aim: floorAim, ours: ours, theirs: floor}, 60, floorAim},
		"task without floors": {comparison{aim: 0.5, ours: cost{run{"ours", "lazy", 3}, "alloc"}, theirs: theirs}, 60, 0.5},
		"a cache's heap":      {comparison{aim: 0.5, ours: cost{run{"ours", "cache", 3}, "held"}, theirs: theirs}, 60, 0.6 * floorHeapAim},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.c.withFloor(func(c cost) float64 {
				if strings.HasPrefix(c.task, "floor-") {
					return test.cost
				}
				return 100
			})
			assert.InDelta(t, test.aim, got.aim, 1e-9)
			assert.Equal(t, got.aim != test.c.aim, got.what != "", "the comparison must say that its aim was raised")
		})
	}
}
