package discovery

import "k8s.io/apimachinery/pkg/runtime/schema"

// aggregatedDecoder decodes apidiscovery.k8s.io's APIGroupDiscoveryList, v2 and v2beta1. The resources still lack group and
// version, see [Group.complete].
type aggregatedDecoder struct {
	valueReader
	memory int64 // remaining memory for separately decoded parts
	// resources and subresources are buffers for the current version and resource. They are copied at their final length.
	resources    []Resource
	subresources []Subresource
}

func (d *aggregatedDecoder) document() (kind string, groups []Group, hasItems bool, err error) {
	err = d.object(func(field string) (err error) {
		switch field {
		case "kind":
			kind, err = d.text()
		case "items":
			hasItems = true
			groups = []Group{}
			err = d.list(func() error {
				group, err := d.group()
				groups = append(groups, group)
				return err
			})
		default:
			err = d.skip()
		}
		return err
	})
	if err == nil {
		err = d.reader.End()
	}
	return kind, groups, hasItems, err
}

func (d *aggregatedDecoder) group() (group Group, err error) {
	if err := d.reader.Charge(groupSize); err != nil {
		return group, err
	}
	err = d.object(func(field string) error {
		switch field {
		case "metadata":
			return d.object(func(field string) (err error) {
				if field != "name" {
					return d.skip()
				}
				group.Name, err = d.text()
				return err
			})
		case "versions":
			return d.list(func() error {
				version, err := d.version()
				group.Versions = append(group.Versions, version)
				return err
			})
		default:
			return d.skip()
		}
	})
	return group, err
}

func (d *aggregatedDecoder) version() (version Version, err error) {
	d.resources = d.resources[:0]
	if err := d.reader.Charge(versionSize); err != nil {
		return version, err
	}
	err = d.object(func(field string) (err error) {
		var text string
		switch field {
		case "version":
			version.Name, err = d.text()
		case "freshness":
			text, err = d.text()
			version.Stale = text == "Stale"
		case "resources":
			err = d.list(func() error {
				resource, err := d.resource()
				d.resources = append(d.resources, resource)
				return err
			})
		default:
			err = d.skip()
		}
		return err
	})
	if len(d.resources) == 0 {
		return version, err
	}
	// One allocation for all resources of a version, since their lifetime is the same.
	resources := append([]Resource(nil), d.resources...)
	version.Resources = make([]*Resource, len(resources))
	for i := range resources {
		version.Resources[i] = &resources[i]
	}
	return version, err
}

func (d *aggregatedDecoder) resource() (r Resource, err error) {
	d.subresources = d.subresources[:0]
	if err := d.reader.Charge(resourceSize); err != nil {
		return r, err
	}
	err = d.object(func(field string) (err error) {
		var scope string
		switch field {
		case "resource":
			r.GVR.Resource, err = d.text()
		case "responseKind":
			r.GVK, err = d.kind()
		case "scope":
			scope, err = d.text()
			r.Namespaced = scope == "Namespaced"
		case "singularResource":
			r.Singular, err = d.text()
		case "verbs":
			r.Verbs, err = d.texts((*interner).listInKey)
		case "shortNames":
			r.ShortNames, err = d.texts((*interner).newList)
		case "categories":
			r.Categories, err = d.texts((*interner).listInKey)
		case "subresources":
			err = d.list(func() error {
				sub, err := d.subresource()
				d.subresources = append(d.subresources, sub)
				return err
			})
		default:
			err = d.skip()
		}
		return err
	})
	r.Subresources = append([]Subresource(nil), d.subresources...)
	return r, err
}

func (d *aggregatedDecoder) subresource() (sub Subresource, err error) {
	if err := d.reader.Charge(subresourceSize); err != nil {
		return sub, err
	}
	err = d.object(func(field string) (err error) {
		switch field {
		case "subresource":
			sub.Name, err = d.text()
		case "responseKind":
			sub.GVK, err = d.kind()
		case "verbs":
			sub.Verbs, err = d.texts((*interner).listInKey)
		default:
			err = d.skip()
		}
		return err
	})
	return sub, err
}

func (d *aggregatedDecoder) kind() (gvk schema.GroupVersionKind, err error) {
	err = d.object(func(field string) (err error) {
		switch field {
		case "group":
			gvk.Group, err = d.text()
		case "version":
			gvk.Version, err = d.text()
		case "kind":
			gvk.Kind, err = d.text()
		default:
			err = d.skip()
		}
		return err
	})
	return gvk, err
}
