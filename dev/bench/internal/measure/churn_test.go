//go:build unix

package measure

import (
	"strconv"
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

func TestMeter_MissingChangesNamesObjects(t *testing.T) {
	m := &Meter{Settings: &Settings{Count: 6}, Figures: Figures{}}
	for _, change := range []struct{ name, sequence string }{{"a", "0"}, {"b", "1"}, {"a", "3"}} {
		m.SeeSequence(change.name, change.sequence, 3)
	}
	assert.EqualError(t, m.MissingChanges(3), "3 of 6 changes seen and none for 2m0s: 1 of 3 objects have not changed; changes of the others: b has 1 of 2")
	m = &Meter{Settings: &Settings{Count: 100}, Figures: Figures{}}
	for i := range 20 {
		m.SeeSequence(string(rune('a'+i)), strconv.Itoa(i), 20)
	}
	assert.ErrorContains(t, m.MissingChanges(20), "a has 1 of 5")
	assert.ErrorContains(t, m.MissingChanges(20), "j has 1 of 5, 10 more")
}
