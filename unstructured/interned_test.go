package unstructured

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

func TestStringsSeenAgainAreNotAllocatedAgain(t *testing.T) {
	table := newInterned(internSlots)
	first := table.name([]byte("metadata"))
	again := table.name([]byte("metadata"))
	assert.Equal(t, "metadata", again)
	assert.Same(t, unsafe.StringData(first), unsafe.StringData(again))
}

func TestStringsThatShareSlotsAreNotMixedUp(t *testing.T) {
	table := newInterned(internSlots)
	for range 3 {
		for i := range 10 * internSlots {
			want := fmt.Sprint("name-", i)
			assert.Equal(t, want, table.name([]byte(want)))
		}
	}
	assert.Len(t, table.slots, internSlots)
}

func TestLongStringsAreNotKept(t *testing.T) {
	table := newInterned(internSlots)
	long := strings.Repeat("x", internLongest+1)
	assert.Equal(t, long, table.name([]byte(long)))
	for _, slot := range table.slots {
		assert.Empty(t, slot)
	}
	assert.Empty(t, table.name(nil))
}

func TestStringsThatStandTogetherStayWhatTheyAre(t *testing.T) {
	table := newInternedValues(internFew)
	table.together = true
	var want, got []any
	for i := range 1000 {
		text := strings.Repeat(fmt.Sprint(i), i%9)
		want, got = append(want, text), append(got, table.value([]byte(text)))
	}
	assert.Equal(t, want, got)
	table.forget()
	assert.Equal(t, want, got)
	assert.Zero(t, table.piece.Cap())
}
