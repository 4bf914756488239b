package discovery

import (
	"cmp"
	"errors"
	"fmt"

	jsoniter "github.com/json-iterator/go"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/sanitize"
)

const aggregatedListKind = "APIGroupDiscoveryList"

// decodeAggregated decodes the groups of an aggregated response. An invalid group or version fails alone: the error is
// Version.Err, or an element of rejected for an invalid group or an unnamed version. memory is the memory limit in bytes.
func decodeAggregated(body []byte, memory int64) (groups []Group, rejected []error, err error) {
	d := &aggregatedDecoder{valueReader: valueReader{jsonread.Borrow(body), newInterner()}}
	defer d.reader.Release()
	d.reader.Limit(memory, errTooLarge)
	kind, groups, hasItems, err := d.document()
	if errors.Is(err, errTooLarge) {
		return nil, nil, err
	}
	if err != nil {
		return decodeItems(body, memory, err)
	}
	if err := checkKind(kind, aggregatedListKind); err != nil {
		return nil, nil, err
	}
	if !hasItems { // missing or null
		return nil, nil, errors.New("decode " + aggregatedListKind + ": no items")
	}
	for i := range groups {
		groups[i].complete()
	}
	return groups, nil, nil
}

// decodeItems decodes each group separately, after decoding all groups has failed with the error whole.
func decodeItems(body []byte, memory int64, whole error) (groups []Group, rejected []error, err error) {
	var list struct {
		Kind  string                `json:"kind"`
		Items []jsoniter.RawMessage `json:"items"`
	}
	if codec.Unmarshal(body, &list) != nil || list.Kind != aggregatedListKind {
		return nil, nil, fmt.Errorf("decode %s: %w", aggregatedListKind, sanitize.Error(whole, maxText))
	}
	d := &aggregatedDecoder{valueReader: valueReader{interner: newInterner()}, memory: memory}
	for _, item := range list.Items {
		d.memory -= groupSize + failureSize
		group, errs := d.decodeItem(item)
		if d.memory < 0 {
			return nil, nil, errTooLarge
		}
		rejected = append(rejected, errs...)
		if group != nil {
			groups = append(groups, *group)
		}
	}
	return groups, rejected, nil
}

// decodeItem decodes a group, each version separately.
func (d *aggregatedDecoder) decodeItem(item []byte) (group *Group, rejected []error) {
	var head struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Versions []jsoniter.RawMessage `json:"versions"`
	}
	if err := codec.Unmarshal(item, &head); err != nil {
		return nil, []error{fmt.Errorf("group %s: %w", quoted(head.Metadata.Name), sanitize.Error(err, maxText))}
	}
	group = &Group{Name: head.Metadata.Name}
	for _, text := range head.Versions {
		if d.memory -= versionSize + failureSize; d.memory < 0 {
			return nil, nil
		}
		version, err := d.decodeVersion(text)
		if err == nil {
			group.Versions = append(group.Versions, version)
			continue
		}
		var named struct {
			Version string `json:"version"`
		}
		if codec.Unmarshal(text, &named) != nil {
			rejected = append(rejected, fmt.Errorf("group %s: %w", quoted(group.Name), sanitize.Error(err, maxText)))
			continue
		}
		group.Versions = append(group.Versions, Version{Name: named.Version, Err: sanitize.Error(err, maxText)})
	}
	group.complete()
	return group, rejected
}

func (d *aggregatedDecoder) decodeVersion(text []byte) (version Version, err error) {
	d.reader = jsonread.Borrow(text)
	defer d.reader.Release()
	d.reader.Limit(d.memory, errTooLarge)
	d.reader.BeginPart(d.memory)
	version, err = d.version()
	err = cmp.Or(err, d.reader.End())
	used, _ := d.reader.EndPart()
	d.memory -= used
	return version, err
}

// complete sets the group and version of every resource and validates the resources. In the document the resources precede both
// names.
func (g *Group) complete() {
	for v := range g.Versions {
		version := &g.Versions[v]
		gv := schema.GroupVersion{Group: g.Name, Version: version.Name}
		for _, r := range version.Resources {
			r.GVR = gv.WithResource(r.GVR.Resource)
			r.GVK = kindIn(gv, r.GVK)
			for i := range r.Subresources {
				r.Subresources[i].GVK = kindIn(gv, r.Subresources[i].GVK)
			}
		}
		if err := validateResources(version.Resources); err != nil {
			version.Resources = nil
			version.Err = err
		}
	}
}

// kindIn returns kind with the group and version of gv if kind.Version is empty. It returns an empty GVK if kind.Kind is empty.
func kindIn(gv schema.GroupVersion, kind schema.GroupVersionKind) schema.GroupVersionKind {
	switch {
	case kind.Kind == "":
		return schema.GroupVersionKind{}
	case kind.Version == "":
		return gv.WithKind(kind.Kind)
	default:
		return kind
	}
}
