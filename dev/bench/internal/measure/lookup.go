//go:build unix

package measure

import (
	"fmt"
	"time"
)

// NodeCount is the number of nodes with pods.
const NodeCount = 200

// Nodes returns the names of the nodes.
func Nodes() []string {
	nodes := make([]string, NodeCount)
	for i := range nodes {
		nodes[i] = NodeName(i)
	}
	return nodes
}

// NodeName returns the name of a pod's node.
func NodeName(pod int) string { return fmt.Sprintf("node-%d", pod%NodeCount) }

// lookupRounds is the number of lookups of each node.
const lookupRounds = 200

// Lookups looks up the pods of every node repeatedly and adds the figure "lookup-wall", the average time of a lookup. find
// returns the number of found pods.
func (m *Meter) Lookups(find func(node string) (int, error)) error {
	nodes := Nodes()
	all := 0
	start := time.Now()
	for range lookupRounds {
		for _, node := range nodes {
			found, err := find(node)
			if err != nil {
				return err
			}
			all += found
		}
	}
	m.Figures["lookup-wall"] = time.Since(start).Seconds() / float64(lookupRounds*len(nodes))
	if want := lookupRounds * m.Count; all != want {
		return fmt.Errorf("lookups found %d pods, not %d", all, want)
	}
	return nil
}
