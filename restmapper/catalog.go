package restmapper

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/anykind/anykind/discovery"
)

// rank is how good a claim to a name is.
type rank uint8

const (
	// byName is the claim of plurals and singulars, in lower case, and of kinds as they are.
	byName rank = iota
	// byShortName is the claim of short names.
	byShortName
	// byLowerKind is the claim of kinds in lower case that are not their resource's singular.
	byLowerKind
)

// catalog is a snapshot with its resources indexed by all their names.
type catalog struct {
	snapshot *discovery.Snapshot
	number   uint64 // among those of its mapper
	// chains leads from a name to the entries that claim it, in the server's order. One map and one slice, rather
	// than a slice a name, keep the index of 2,000 resources at a few dozen allocations.
	chains  map[string]chain
	entries []entry
}

// chain is the first and the last of linked entries.
type chain struct{ first, last int32 }

type entry struct {
	mapping *Mapping
	// next is the index of the next entry of the same name; 0, where no entry stands, ends the chain.
	next int32
	rank rank
}

func newCatalog(snapshot *discovery.Snapshot) *catalog {
	names := 1
	for _, group := range snapshot.Groups {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				names += 3 + len(resource.ShortNames)
			}
		}
	}
	c := &catalog{snapshot: snapshot, chains: make(map[string]chain, names), entries: make([]entry, 1, names)}
	for mapping := range c.mappings() {
		c.add(mapping)
	}
	return c
}

// mappings yields every resource in the order of preference: the core group is the first of a snapshot.
func (c *catalog) mappings() iter.Seq[*Mapping] {
	return func(yield func(*Mapping) bool) {
		for _, group := range c.snapshot.Groups {
			for _, version := range healthyFirst(group.Versions) {
				for _, mapping := range version.Resources {
					if !yield(mapping) {
						return
					}
				}
			}
		}
	}
}

// healthyFirst puts versions that cannot be read now last: the preferred version is the first that is not stale.
func healthyFirst(versions []discovery.Version) []discovery.Version {
	sick := func(v *discovery.Version) int {
		if v.Healthy() {
			return 0
		}
		return 1
	}
	byHealth := func(a, b discovery.Version) int { return cmp.Compare(sick(&a), sick(&b)) }
	if slices.IsSortedFunc(versions, byHealth) {
		return versions
	}
	sorted := slices.Clone(versions)
	slices.SortStableFunc(sorted, byHealth)
	return sorted
}

// add indexes a resource, its best claims first.
func (c *catalog) add(mapping *Mapping) {
	c.claim(mapping.GVR.Resource, byName, mapping)
	c.claim(singular(mapping), byName, mapping)
	c.claim(mapping.GVK.Kind, byName, mapping)
	for _, short := range mapping.ShortNames {
		c.claim(short, byShortName, mapping)
	}
	if !strings.EqualFold(mapping.GVK.Kind, mapping.Singular) {
		c.claim(strings.ToLower(mapping.GVK.Kind), byLowerKind, mapping)
	}
}

// claim links a name to a resource, once: a resource's names may be alike.
func (c *catalog) claim(name string, by rank, mapping *Mapping) {
	if name == "" {
		return
	}
	linked, taken := c.chains[name]
	if taken && c.entries[linked.last].mapping == mapping {
		return
	}
	at := int32(len(c.entries))
	c.entries = append(c.entries, entry{mapping: mapping, rank: by})
	if taken {
		c.entries[linked.last].next = at
	} else {
		linked.first = at
	}
	linked.last = at
	c.chains[name] = linked
}
