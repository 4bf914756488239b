package restmapper

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindOf is the kind of a resource's objects as client-go's mapper has it: in the group version that serves it.
func kindOf(m *Mapping) schema.GroupVersionKind { return m.GVR.GroupVersion().WithKind(m.GVK.Kind) }

// resources lists all whose plural or singular is meant, or else those of the first resource with that short name. A
// group that nothing is in may be the beginning of one.
func (c *catalog) resources(q query) ([]*Mapping, error) {
	r := q.asked[0]
	for _, prefix := range []bool{false, true} {
		r.prefix = prefix
		if prefix && (r.group == "" || r.version != "") {
			break
		}
		if found := c.longNamed(&r); len(found) > 0 {
			return found, nil
		}
		if short := c.all(&r, byShortName); len(short) > 0 {
			// The core group's name is that of any group, here as in client-go.
			long := reading{name: short[0].GVR.Resource, group: short[0].GVR.Group, version: r.version, grouped: short[0].GVR.Group != ""}
			return c.longNamed(&long), nil
		}
	}
	return nil, errMissing
}

// longNamed lists the mappings of which the reading is the plural or the singular.
func (c *catalog) longNamed(r *reading) []*Mapping {
	return slices.DeleteFunc(c.all(r, byName), func(m *Mapping) bool {
		return m.GVK.Kind == "" || (m.GVR.Resource != r.name && singular(m) != r.name)
	})
}

// restMappings lists a kind's mappings, one a group version. The kind may be in lower case, or that of a list.
func (c *catalog) restMappings(q query) ([]*meta.RESTMapping, error) {
	found := c.kinds(&q, q.asked[0].name)
	if len(found) > 0 {
		all := make([]*meta.RESTMapping, 0, len(found))
		for _, mapping := range found {
			all = append(all, restMapping(mapping.GVR, kindOf(mapping), mapping.Namespaced))
		}
		return all, nil
	}
	if lists := c.listMappings(&q); len(lists) > 0 {
		return lists, nil
	}
	return nil, errMissing
}

// kinds lists the mappings whose kind has the name. Of two in one group version the later counts, as in client-go.
func (c *catalog) kinds(q *query, name string) []*Mapping {
	r := q.asked[0]
	r.kind = false
	var found []*Mapping
	for at := c.chains[name].first; at != 0; at = c.entries[at].next {
		mapping := c.entries[at].mapping
		kind := mapping.GVK.Kind
		switch last := len(found) - 1; {
		case kind == "" || (kind != name && strings.ToLower(kind) != name) || !r.admits(mapping) || !q.takes(mapping.GVR.Version):
		case last >= 0 && found[last].GVR.GroupVersion() == mapping.GVR.GroupVersion():
			found[last] = mapping
		default:
			found = append(found, mapping)
		}
	}
	return found
}

// listMappings are made up as client-go makes them up: kubectl and Helm map the kind of every file that they read, and
// such a file may be a List or a DeploymentList. No server serves their resources.
func (c *catalog) listMappings(q *query) []*meta.RESTMapping {
	of, isList := strings.CutSuffix(q.asked[0].name, "List")
	if !isList {
		return nil
	}
	var all []*meta.RESTMapping
	for _, mapping := range c.kinds(q, of) {
		list := mapping.GVR.GroupVersion().WithKind(q.asked[0].name)
		plural, _ := meta.UnsafeGuessKindToResource(list)
		all = append(all, restMapping(plural, list, mapping.Namespaced))
	}
	if of != "" {
		return all
	}
	for _, group := range c.snapshot.Groups {
		for _, version := range healthyFirst(group.Versions) {
			if gv := (schema.GroupVersion{Group: group.Name, Version: version.Name}); group.Name == q.asked[0].group && q.takes(version.Name) {
				all = append(all, restMapping(gv.WithResource("lists"), gv.WithKind("List"), false))
			}
		}
	}
	return all
}

func restMapping(gvr schema.GroupVersionResource, gvk schema.GroupVersionKind, namespaced bool) *meta.RESTMapping {
	var scope meta.RESTScope = meta.RESTScopeRoot
	if namespaced {
		scope = meta.RESTScopeNamespace
	}
	return &meta.RESTMapping{Resource: gvr, GroupVersionKind: gvk, Scope: scope}
}

// inTermsOf returns theirs for a missing name, and any other err as it is: kubectl and cli-runtime look for apimachinery's
// types themselves, not for what wraps them.
func inTermsOf(err, theirs error) error {
	var missing *NoMatchError
	if errors.As(err, &missing) {
		return theirs
	}
	return err
}
