package kinds

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/recorded"
)

// openapiPath is a path of /openapi/v3 with the hash of its document.
type openapiPath struct {
	hash     string
	document func() (string, error)
}

// openapiPaths returns the paths listed by /openapi/v3.
func (s *snapshot) openapiPaths() (map[string]openapiPath, error) {
	all, err := recorded.ReadOpenAPI()
	if err != nil {
		return nil, err
	}
	paths := make(map[string]openapiPath, len(all.Hashes))
	for path, hash := range all.Hashes {
		paths[path] = openapiPath{hash, func() (string, error) { return all.Document(path) }}
	}
	for _, g := range s.groups {
		for _, v := range g.versions {
			resources := v.definitions()
			if len(resources) == 0 {
				continue
			}
			hash, err := hashOf(resources)
			if err != nil {
				return nil, err
			}
			paths["apis/"+v.name()] = openapiPath{hash, func() (string, error) { return versionDocument(resources) }}
		}
	}
	return paths, nil
}

// definitions returns the resources of CRDs.
func (v *groupVersion) definitions() []*Resource {
	if v.priority != definitionVersionPriority {
		return nil
	}
	return v.resources
}

// hashOf returns a hash of the CRD specs behind a document. The real server hashes the document itself. The index would then have
// to build every document.
func hashOf(resources []*Resource) (string, error) {
	hash := sha512.New()
	encoder := json.NewEncoder(hash)
	for _, r := range resources {
		if err := encoder.Encode(r.Definition["spec"]); err != nil {
			return "", fmt.Errorf("hash %s.%s: %w", r.Plural, r.Group, err)
		}
	}
	return fmt.Sprintf("%X", hash.Sum(nil)), nil
}

// versionDocument returns the OpenAPI v3 document of a group version of CRDs.
func versionDocument(resources []*Resource) (string, error) {
	all, err := recorded.ReadOpenAPI()
	if err != nil {
		return "", err
	}
	var document map[string]any
	paths := map[string]json.RawMessage{}
	own := map[string]string{}
	for _, r := range resources {
		one, err := r.template(all, "v3", own)
		if err != nil {
			return "", err
		}
		maps.Copy(paths, one)
		if document == nil {
			text, err := all.Template("crd/v3/cluster")
			if err != nil {
				return "", err
			}
			if err := json.Unmarshal([]byte(text), &document); err != nil {
				return "", err
			}
		}
		schemas, err := r.openapi.definitions()
		if err != nil {
			return "", err
		}
		name := modelName(r.Group, r.Version, r.Kind)
		own[name] = schemas[name]
	}
	document["paths"] = paths
	text, err := compactJSON(document)
	if err != nil {
		return "", err
	}
	definitions, err := all.Closure(append(recorded.References(text, recorded.ReferenceV3), slices.Collect(maps.Keys(own))...), own)
	if err != nil {
		return "", err
	}
	return recorded.InsertDefinitions(text, definitions), nil
}

// template returns the paths of a resource's recorded template, and adds the template's definitions to own.
func (r *Resource) template(all *recorded.OpenAPI, release string, own map[string]string) (map[string]json.RawMessage, error) {
	name := "crd/" + release + "/cluster"
	if r.Namespaced {
		name = "crd/" + release + "/namespaced"
	}
	text, err := all.Template(name)
	if err != nil {
		return nil, err
	}
	overrides, err := all.Overrides(name)
	if err != nil {
		return nil, err
	}
	replacer := r.templateReplacer()
	for key, definition := range overrides {
		key = replacer.Replace(key)
		definition = replacer.Replace(definition)
		if key == modelName(r.Group, r.Version, r.ListKind) {
			if definition, err = r.addSelectableFields(definition); err != nil {
				return nil, err
			}
		}
		own[key] = definition
	}
	var document struct{ Paths map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(replacer.Replace(text)), &document); err != nil {
		return nil, fmt.Errorf("OpenAPI of %s: %w", r.Plural, err)
	}
	maps.DeleteFunc(document.Paths, func(path string, _ json.RawMessage) bool {
		_, subresource, found := strings.Cut(path, "/{name}/")
		_, has := r.Subresources[subresource]
		return found && !has
	})
	return document.Paths, nil
}

// addSelectableFields adds the selectable fields to the definition of the list.
func (r *Resource) addSelectableFields(definition string) (string, error) {
	if len(r.SelectableFields) == 0 {
		return definition, nil
	}
	var list map[string]any
	if err := json.Unmarshal([]byte(definition), &list); err != nil {
		return "", err
	}
	var fields []any
	for _, field := range r.SelectableFields {
		fields = append(fields, map[string]any{"fieldPath": field})
	}
	list["x-kubernetes-selectable-fields"] = fields
	return compactJSON(list)
}

// openapiV2 returns the response to /openapi/v2.
func (s *snapshot) openapiV2() (string, error) {
	all, err := recorded.ReadOpenAPI()
	if err != nil {
		return "", err
	}
	text, err := all.Template("v2")
	if err != nil {
		return "", err
	}
	definitions, err := builtinV2()
	if err != nil {
		return "", err
	}
	paths := map[string]json.RawMessage{}
	own := maps.Clone(definitions)
	for _, r := range s.resources {
		if r.Definition == nil {
			continue
		}
		one, err := r.template(all, "v2", own)
		if err != nil {
			return "", err
		}
		maps.Copy(paths, one)
		if own[modelName(r.Group, r.Version, r.Kind)], err = publishSchema(r.Definition, r.versionEntry(), true); err != nil {
			return "", err
		}
	}
	if len(paths) > 0 {
		if text, err = addPaths(text, paths); err != nil {
			return "", err
		}
	}
	return recorded.InsertDefinitions(text, own), nil
}

func addPaths(text string, paths map[string]json.RawMessage) (string, error) {
	var document map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		return "", err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(document["paths"], &all); err != nil {
		return "", err
	}
	maps.Copy(all, paths)
	merged, err := compactJSON(all)
	if err != nil {
		return "", err
	}
	document["paths"] = json.RawMessage(merged)
	return compactJSON(document)
}

// versionEntry returns the version's entry in the CRD.
func (r *Resource) versionEntry() map[string]any {
	for _, v := range nested.Maps(r.Definition, "spec", "versions") {
		if nested.String(v, "name") == r.Version {
			return v
		}
	}
	return nil
}
