package restmapper

import "strings"

// reading is one way to understand what a user typed.
type reading struct {
	name, version, group string
	// grouped says that the group was typed: "" then means the core group, and else any.
	grouped bool
}

// readings are the ways to understand a name, in the order in which kubectl tries them: a.b.c is the resource a of
// version b and group c, or else the resource a of group b.c.
func readings(name string) []reading {
	first, rest, dotted := strings.Cut(name, ".")
	if !dotted {
		return []reading{{name: first}}
	}
	asGroup := reading{name: first, group: rest, grouped: true}
	if version, group, ok := strings.Cut(rest, "."); ok {
		return []reading{{name: first, version: version, group: group, grouped: true}, asGroup}
	}
	return []reading{asGroup}
}

// among lists what the reading means. Kinds are told from other names by their case.
func (r reading) among(index map[string][]*Mapping) []*Mapping {
	found := r.filter(index[r.name])
	if lower := strings.ToLower(r.name); lower != r.name && len(found) == 0 {
		found = r.filter(index[lower])
	}
	return found
}

func (r reading) filter(named []*Mapping) []*Mapping {
	var found []*Mapping
	for _, mapping := range named {
		if (!r.grouped || mapping.GVR.Group == r.group) && (r.version == "" || mapping.GVR.Version == r.version) {
			found = append(found, mapping)
		}
	}
	return found
}
