package plan

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUnified_Hunks(t *testing.T) {
	numbers := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n"
	for name, c := range map[string]struct{ before, after, want string }{
		"equal":   {"a\n", "a\n", ""},
		"created": {"", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		"deleted": {"a\n", "", "@@ -1,1 +0,0 @@\n-a\n"},
		"changed": {"a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"},
		"two hunks": {
			numbers, strings.NewReplacer("1\n2\n3", "1\nx\n3", "19\n", "").Replace(numbers),
			"@@ -1,5 +1,5 @@\n 1\n-2\n+x\n 3\n 4\n 5\n@@ -16,5 +16,4 @@\n 16\n 17\n 18\n-19\n 20\n",
		},
		"joined hunk": {
			numbers, strings.NewReplacer("\n5\n", "\n", "\n12\n", "\nx\n").Replace(numbers),
			"@@ -2,14 +2,13 @@\n 2\n 3\n 4\n-5\n 6\n 7\n 8\n 9\n 10\n 11\n-12\n+x\n 13\n 14\n 15\n",
		},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, unified(c.before, c.after)) })
	}
}

// TestDifference_RestoresBothTexts checks random texts, also above maxCells.
func TestDifference_RestoresBothTexts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range 300 {
		size := 30
		if i == 0 {
			size = 3000
		}
		text := func() (all []string) {
			for range random.IntN(size) + size/2 {
				all = append(all, string(rune('a'+random.IntN(4))))
			}
			return all
		}
		before := text()
		after := text()
		var first, second []string
		for _, e := range difference(before, after) {
			if e.kind != '+' {
				first = append(first, e.line)
			}
			if e.kind != '-' {
				second = append(second, e.line)
			}
		}
		assert.Equal(t, before, first)
		assert.Equal(t, after, second)
	}
}
