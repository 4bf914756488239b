package jsonread

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

func TestStringTable_ReusesStrings(t *testing.T) {
	table := NewStringTable(TableSlots, false)
	first := table.Name([]byte("metadata"))
	again := table.Name([]byte("metadata"))
	assert.Equal(t, "metadata", again)
	assert.Same(t, unsafe.StringData(first), unsafe.StringData(again))
}

func TestStringTable_SharedSlots(t *testing.T) {
	table := NewStringTable(TableSlots, false)
	for range 3 {
		for i := range 10 * TableSlots {
			want := fmt.Sprint("name-", i)
			assert.Equal(t, want, table.Name([]byte(want)))
		}
	}
	assert.Len(t, table.slots, TableSlots)
}

func TestStringTable_LeavesOutLongStrings(t *testing.T) {
	table := NewStringTable(TableSlots, false)
	long := strings.Repeat("x", maxInterned+1)
	assert.Equal(t, long, table.Name([]byte(long)))
	for _, slot := range table.slots {
		assert.Empty(t, slot)
	}
	assert.Empty(t, table.Name(nil))
}

func TestStringTable_PackedStringsStay(t *testing.T) {
	table := NewStringTable(PooledTableSlots, true)
	var want, got []any
	for i := range 1000 {
		text := strings.Repeat(fmt.Sprint(i), i%9)
		want = append(want, text)
		got = append(got, table.Value([]byte(text)))
	}
	assert.Equal(t, want, got)
	table.Forget()
	assert.Equal(t, want, got)
	assert.Zero(t, table.chunk.Cap())
}
