package schema

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/unstructured"
)

// objectMetaDocument describes metadata as every API server does: the schemas of a server's document that ObjectMeta refers to.
//
//go:embed object_meta.json
var objectMetaDocument []byte

// metaDocument is the decoded objectMetaDocument.
var metaDocument = sync.OnceValues(func() (*Document, error) { return ParseDocument(objectMetaDocument) })

const objectMetaName = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// WithDefinitions returns a client that also knows the kinds of CustomResourceDefinitions (apiextensions.k8s.io/v1). They take
// precedence over the kinds of c. Objects of other kinds are an error. Both clients share their documents.
func (c *Client) WithDefinitions(definitions ...*unstructured.Object) (*Client, error) {
	kinds := maps.Clone(c.override)
	if kinds == nil {
		kinds = map[schema.GroupVersionKind]*Schema{}
	}
	for _, definition := range definitions {
		if err := addDefinition(kinds, definition); err != nil {
			return nil, fmt.Errorf("schemas of definition %q: %w", definition.GetName(), err)
		}
	}
	return &Client{shared: c.shared, override: kinds}, nil
}

// addDefinition adds the schemas of a definition's versions.
func addDefinition(kinds map[schema.GroupVersionKind]*Schema, definition *unstructured.Object) error {
	if gvk := definition.GroupVersionKind(); gvk.Kind != "CustomResourceDefinition" || gvk.GroupVersion().String() != "apiextensions.k8s.io/v1" {
		return fmt.Errorf("kind is %s, not CustomResourceDefinition of apiextensions.k8s.io/v1", kindText(gvk))
	}
	group, _, err := unstructured.Get[string](definition, "spec", "group")
	if err != nil {
		return err
	}
	kind, _, err := unstructured.Get[string](definition, "spec", "names", "kind")
	if err != nil {
		return err
	}
	versions, _, err := unstructured.Get[[]any](definition, "spec", "versions")
	if err != nil {
		return err
	}
	if group == "" || kind == "" || len(versions) == 0 {
		return errors.New("spec.group, spec.names.kind or spec.versions is missing")
	}
	for i, element := range versions {
		version, _ := element.(map[string]any)
		gvk := schema.GroupVersionKind{Group: group, Version: text(version["name"]), Kind: kind}
		s, err := definedSchema(gvk, version)
		if err != nil {
			return fmt.Errorf("spec.versions[%d]: %w", i, err)
		}
		kinds[gvk] = s
	}
	return nil
}

// definedSchema returns the schema of a definition's version, as the server would publish it, with the definition's rules for
// metadata, which a server does not publish.
func definedSchema(gvk schema.GroupVersionKind, version map[string]any) (*Schema, error) {
	document, err := metaDocument()
	if err != nil {
		return nil, err
	}
	validation, _ := version["schema"].(map[string]any)
	raw, err := json.Marshal(validation["openAPIV3Schema"])
	if err != nil {
		return nil, err
	}
	if string(raw) == "null" {
		raw = []byte(`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`)
	}
	s, err := decodeSchema(document, raw)
	if err != nil {
		return nil, err
	}
	s.GroupVersionKinds = []schema.GroupVersionKind{gvk}
	if s.properties == nil {
		s.properties = map[string]*Schema{}
	}
	s.addTypeMeta(document)
	s.kind = definedKind(gvk, version, raw)
	return s, nil
}

// addTypeMeta adds apiVersion, kind and metadata to the schema of an object. A schema of metadata is a restriction of ObjectMeta.
func (s *Schema) addTypeMeta(document *Document) {
	for _, name := range []string{"apiVersion", "kind"} {
		s.properties[name] = &Schema{Type: "string", Description: typeMetaDescriptions[name]}
	}
	restriction := s.properties["metadata"]
	metadata := &Schema{Description: "Standard object's metadata.", reference: &reference{document: document, name: objectMetaName}}
	if restriction != nil && len(restriction.properties) > 0 {
		merged := *metadata.resolve()
		merged.AllOf = []*Schema{restriction}
		metadata = &merged
	}
	s.properties["metadata"] = metadata
}

var typeMetaDescriptions = map[string]string{
	"apiVersion": "APIVersion defines the versioned schema of this representation of an object.",
	"kind":       "Kind is a string value representing the REST resource this object represents.",
}
