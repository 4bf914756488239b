package web

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/inventory"
)

// node is an object with the objects that it owns.
type node struct {
	Object     inventory.Entry `json:"object"`
	Dependents []*node         `json:"dependents,omitempty"`
}

// newTree returns the tree of an object. It has each dependent once.
func newTree(root inventory.Entry, dependents []inventory.Entry) *node {
	byOwner := map[types.UID][]*node{}
	for _, e := range dependents {
		n := &node{Object: e}
		for _, owner := range e.Owners() {
			byOwner[owner] = append(byOwner[owner], n)
		}
	}
	all := []*node{{Object: root}}
	seen := map[*node]bool{}
	for i := 0; i < len(all); i++ {
		for _, n := range byOwner[all[i].Object.UID()] {
			if !seen[n] {
				seen[n] = true
				all[i].Dependents = append(all[i].Dependents, n)
				all = append(all, n)
			}
		}
	}
	return all[0]
}
