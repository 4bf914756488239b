package editdistance

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBounded(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"pods", "pods", 0}, {"pods", "pod", 1}, {"pdos", "pods", 1}, {"pods", "nodes", 2}, {"pods", "deployments", 3}, {"pods", "", 3}} {
		assert.Equal(t, c.want, Bounded(c.a, c.b, 2), c)
	}
}

func TestSimilar_MostSimilarFirst(t *testing.T) {
	names := []string{"replicas", "replica", "selector", "revisionHistoryLimit"}
	assert.Equal(t, []string{"replicas", "replica"}, Similar("replcias", names, 3))
	assert.Equal(t, []string{"replicas"}, Similar("replcias", names, 1))
	assert.Empty(t, Similar("x", names, 3))
}
