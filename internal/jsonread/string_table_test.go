package jsonread

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

func TestStringTable_ReusesStrings(t *testing.T) {
	table := newStringTable(tableSlots, false)
	first := table.name([]byte("metadata"))
	again := table.name([]byte("metadata"))
	assert.Equal(t, "metadata", again)
	assert.Same(t, unsafe.StringData(first), unsafe.StringData(again))
}

func TestStringTable_SharedSlots(t *testing.T) {
	table := newStringTable(tableSlots, false)
	for range 3 {
		for i := range 10 * tableSlots {
			want := fmt.Sprint("name-", i)
			assert.Equal(t, want, table.name([]byte(want)))
		}
	}
	assert.Len(t, table.slots, tableSlots)
}

func TestStringTable_LeavesOutLongStrings(t *testing.T) {
	table := newStringTable(tableSlots, false)
	long := strings.Repeat("x", maxInterned+1)
	assert.Equal(t, long, table.name([]byte(long)))
	for _, slot := range table.slots {
		assert.Empty(t, slot)
	}
	assert.Empty(t, table.name(nil))
}

func TestStringTable_PackedStringsStay(t *testing.T) {
	table := newStringTable(pooledTableSlots, true)
	var want, got []any
	for i := range 1000 {
		text := strings.Repeat(fmt.Sprint(i), i%9)
		want = append(want, text)
		got = append(got, table.value([]byte(text)))
	}
	assert.Equal(t, want, got)
	table.forget()
	assert.Equal(t, want, got)
	assert.Zero(t, table.chunk.Cap())
}
