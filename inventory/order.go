package inventory

import (
	"cmp"
	"container/heap"
	"encoding/base64"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
)

// position is the place of an object in the order of results.
type position struct {
	Group, Resource, Namespace, Name string
}

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.Group, q.Group), cmp.Compare(p.Resource, q.Resource), cmp.Compare(p.Namespace, q.Namespace), cmp.Compare(p.Name, q.Name))
}

func (p position) token() string {
	data, _ := json.Marshal(p) // strings
	return base64.RawURLEncoding.EncodeToString(data)
}

func parseToken(token string) (p position, err error) {
	if token == "" {
		return p, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return p, errors.New("query all kinds: invalid Continue (pass Page.Continue of the previous page)")
	}
	return p, nil
}

// compareEntries compares entries in the order of results.
func compareEntries(a, b Entry) int {
	switch {
	case a.kind != b.kind:
		return cmp.Compare(a.kind.order, b.kind.order)
	case a.Namespace != b.Namespace:
		return strings.Compare(a.Namespace, b.Namespace)
	default:
		return strings.Compare(a.Name, b.Name)
	}
}

// inOrder sorts entries and yields them.
func inOrder(entries []Entry) iter.Seq[Entry] {
	slices.SortFunc(entries, compareEntries)
	return slices.Values(entries)
}

// firstInOrder yields entries in the order of results. The first of many entries cost less than sorting all.
func firstInOrder(entries []Entry) iter.Seq[Entry] {
	h := entryHeap(entries)
	heap.Init(&h)
	return func(yield func(Entry) bool) {
		for len(h) > 0 {
			if !yield(heap.Pop(&h).(Entry)) { //nolint:forcetypeassert // of entryHeap
				return
			}
		}
	}
}

// entryHeap implements heap.Interface.
type entryHeap []Entry

func (h entryHeap) Len() int           { return len(h) }
func (h entryHeap) Less(i, j int) bool { return compareEntries(h[i], h[j]) < 0 }
func (h entryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push appends an entry.
func (h *entryHeap) Push(e any) { *h = append(*h, e.(Entry)) } //nolint:forcetypeassert // of Pop

// Pop removes the last entry.
func (h *entryHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
