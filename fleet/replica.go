package fleet

import "github.com/anykind/anykind/shard"

// Replica returns the number of the replica, from 0 to replicas-1, that a cluster belongs to, for Options.Select. It is a function of
// the name by rendezvous hashing: names are spread evenly, and a change of replicas by one moves about 1/replicas of the clusters.
func Replica(cluster string, replicas int) int {
	name := shard.Hash(cluster)
	best := 0
	var highest uint64
	for i := range replicas {
		if score := mix(name ^ mix(uint64(i)+1)); i == 0 || score > highest { //nolint:gosec // not negative
			best = i
			highest = score
		}
	}
	return best
}

// mix is the finalizer of SplitMix64: FNV-1a alone spreads names that differ in the last characters badly.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
