package discovery

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/jsonread"
)

// aggregatedDecoder decodes apidiscovery.k8s.io's APIGroupDiscoveryList, v2 and v2beta1. The resources still lack group and
// version, see [Group.complete].
type aggregatedDecoder struct {
	reader   *jsonread.Reader
	interner *interner
	memory   int64 // remaining memory for separately decoded parts
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

// object reads an object or null. It calls member for each field, to read the value.
func (d *aggregatedDecoder) object(member func(field string) error) error {
	if isNull, err := d.null(); isNull || err != nil {
		return err
	}
	if err := d.reader.ObjectStart(); err != nil {
		return err
	}
	field, more, err := d.reader.OpenObject()
	for more && err == nil {
		if err = member(field); err == nil {
			field, more, err = d.reader.NextMember()
		}
	}
	return err
}

// list reads a list or null. It calls element for each element, to read the element.
func (d *aggregatedDecoder) list(element func() error) error {
	if isNull, err := d.null(); isNull || err != nil {
		return err
	}
	if err := d.reader.Expect('[', "where a list should begin"); err != nil {
		return err
	}
	more, err := d.reader.OpenList()
	for more && err == nil {
		if err = element(); err == nil {
			more, err = d.reader.NextElement()
		}
	}
	return err
}

// texts reads a list of strings. makeList makes the result from the interner's key. null is nil.
func (d *aggregatedDecoder) texts(makeList func(*interner, int) []string) ([]string, error) {
	if isNull, err := d.null(); isNull || err != nil {
		return nil, err
	}
	n := 0
	d.interner.key = d.interner.key[:0]
	err := d.list(func() error {
		b, err := d.textBytes()
		d.interner.key = append(append(d.interner.key, b...), separator)
		n++
		return err
	})
	if err != nil {
		return nil, err
	}
	return makeList(d.interner, n), nil
}

// text reads a string. null is "".
func (d *aggregatedDecoder) text() (string, error) {
	b, err := d.textBytes()
	if err != nil {
		return "", err
	}
	return d.interner.bytes(b), nil
}

func (d *aggregatedDecoder) textBytes() ([]byte, error) {
	if isNull, err := d.null(); isNull || err != nil {
		return nil, err
	}
	return d.reader.StringBytes()
}

// null reads a null if it is next.
func (d *aggregatedDecoder) null() (bool, error) {
	if c, err := d.reader.Peek(); err != nil || c != 'n' {
		return false, err
	}
	return true, d.reader.Literal("null")
}

// skip reads the value of an unused field.
func (d *aggregatedDecoder) skip() error {
	_, _, err := d.reader.Skip()
	return err
}
