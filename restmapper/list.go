package restmapper

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resources resolves a list as a user types it after kubectl get: names, and categories such as all, with commas
// between them. As with kubectl, a category wins over a resource of the same name and means those of its resources that
// the server serves, in the version that is preferred; nothing is listed twice. Errors are those of [Mapper.Resource],
// for the first name that has one.
func (m *Mapper) Resources(ctx context.Context, list string) ([]*Mapping, error) {
	var all []*Mapping
	for name := range strings.SplitSeq(list, ",") {
		found, err := find(ctx, m, named(name), (*catalog).some)
		if err != nil {
			return nil, err
		}
		for _, mapping := range found {
			if !slices.Contains(all, mapping) {
				all = append(all, mapping)
			}
		}
	}
	return all, nil
}

// Pair resolves a resource and the name of an object, as in deploy/web. Errors are those of [Mapper.Resource], and a
// plain one where the pair has not two parts.
func (m *Mapper) Pair(ctx context.Context, pair string) (*Mapping, string, error) {
	resource, name, ok := strings.Cut(pair, "/")
	if !ok || resource == "" || name == "" || strings.Contains(name, "/") {
		return nil, "", fmt.Errorf("%q is no pair of a resource and a name, such as deploy/web", pair)
	}
	mapping, err := m.Resource(ctx, resource)
	if err != nil {
		return nil, "", err
	}
	return mapping, name, nil
}

// some is what one part of a list means: a category's resources, or a single one.
func (c *catalog) some(q query) ([]*Mapping, error) {
	if q.isBare() && c.isCategory(q.text) {
		return c.category(q.text), nil
	}
	one, err := c.one(q)
	if err != nil {
		return nil, err
	}
	return []*Mapping{one}, nil
}

// isCategory says whether any resource is in the category.
func (c *catalog) isCategory(name string) bool {
	for _, e := range c.entries[1:] {
		if slices.Contains(e.mapping.Categories, name) {
			return true
		}
	}
	return false
}

// category lists a category's resources, each in its preferred version, though only another may name the category. One
// that several versions name is listed as often.
func (c *catalog) category(name string) []*Mapping {
	var members []*Mapping
	preferred := map[schema.GroupResource]*Mapping{}
	for mapping := range c.mappings() {
		resource := mapping.GVR.GroupResource()
		if preferred[resource] == nil {
			preferred[resource] = mapping
		}
		if slices.Contains(mapping.Categories, name) {
			members = append(members, preferred[resource])
		}
	}
	return members
}
