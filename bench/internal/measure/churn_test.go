//go:build unix

package measure

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMeter_SeeSequenceCountsMergedChanges(t *testing.T) {
	m := &Meter{Settings: &Settings{Count: 6}, Figures: Figures{}}
	for _, change := range []struct {
		name, sequence string
		seen           int
	}{
		{"a", "0", 1}, {"b", "1", 2}, {"a", "4", 4}, // "2" was merged into "4"
		{"a", "2", 4}, {"b", "3", 5}, {"b", "5", 6},
	} {
		m.SeeSequence(change.name, change.sequence, 2)
		assert.Equal(t, change.seen, m.seen, change)
	}
	assert.True(t, m.Done())
	require.NoError(t, m.check())
	m.SeeSequence("c", "", 2)
	require.ErrorContains(t, m.check(), "1 changes lack")
}
