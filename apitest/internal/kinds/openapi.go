package kinds

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/recorded"
	"github.com/anykind/anykind/apitest/internal/structural"
)

// openapi has the OpenAPI definitions of a resource in all its versions, built at first use.
type openapi struct {
	definitions func() (map[string]string, error) // of the kind and its references, as JSON
	decoded     func() (map[string]*spec.Schema, error)
	converter   func() (managedfields.TypeConverter, error)
	inlined     func() (map[string]map[string]any, error)
}

func newOpenAPI(definitions func() (map[string]string, error)) *openapi {
	o := &openapi{definitions: sync.OnceValues(definitions)}
	o.decoded = sync.OnceValues(o.decode)
	o.converter = sync.OnceValues(func() (managedfields.TypeConverter, error) {
		decoded, err := o.decoded()
		if err != nil {
			return nil, err
		}
		return managedfields.NewTypeConverter(decoded, false)
	})
	o.inlined = sync.OnceValues(o.inline)
	return o
}

// builtinOpenAPI returns the definitions of a built-in kind in all versions of its group.
func builtinOpenAPI(kind schema.GroupKind) *openapi {
	return newOpenAPI(func() (map[string]string, error) {
		all, err := recorded.ReadOpenAPI()
		if err != nil {
			return nil, err
		}
		names := []string{all.Kinds["autoscaling/v1/Scale"]} // of the scale subresource
		for key, name := range all.Kinds {
			if strings.HasPrefix(key, kind.Group+"/") && strings.HasSuffix(key, "/"+kind.Kind) {
				names = append(names, name)
			}
		}
		return all.Closure(names, nil)
	})
}

// OpenAPI returns the OpenAPI v3 schema of the resource's objects without references. Equal definitions are shared maps. A
// recursive reference becomes an object with x-kubernetes-preserve-unknown-fields. For a CRD it is the schema in /openapi/v3. The
// result is read-only.
func (r *Resource) OpenAPI() (map[string]any, error) {
	inlined, err := r.openapi.inlined()
	if err != nil {
		return nil, err
	}
	name, err := r.definitionName()
	return inlined[name], err
}

// Definitions returns the definition of the resource's objects and all definitions referenced by it, in the form of
// strategicpatch.PatchMetaFromOpenAPIV3. The result is read-only.
func (r *Resource) Definitions() (definitions map[string]*spec.Schema, object *spec.Schema, err error) {
	decoded, err := r.openapi.decoded()
	if err != nil {
		return nil, nil, err
	}
	name, err := r.definitionName()
	return decoded, decoded[name], err
}

// TypeConverter returns the server-side apply converter for the resource's objects in any of its versions. It is compiled once,
// at first use.
func (r *Resource) TypeConverter() (managedfields.TypeConverter, error) {
	return r.openapi.converter()
}

// Schema returns the structural schema of a CRD's version. It is nil for a built-in kind, and for a version without a schema,
// which keeps all fields. It is compiled once, at first use.
func (r *Resource) Schema() *structural.Schema {
	if r.schema == nil {
		return nil
	}
	return r.schema()
}

// definitionName returns the name of the definition of the resource's objects.
func (r *Resource) definitionName() (string, error) {
	if r.Definition != nil {
		return modelName(r.Group, r.Version, r.Kind), nil
	}
	all, err := recorded.ReadOpenAPI()
	if err != nil {
		return "", err
	}
	name, known := all.Kinds[r.Group+"/"+r.Version+"/"+r.Kind]
	if !known {
		return "", fmt.Errorf("OpenAPI of %s: no definition of %s is recorded", r.Plural, r.Kind)
	}
	return name, nil
}

// modelName returns the name of a CRD's definition, such as "com.example.v1.Widget".
func modelName(group, version, kind string) string {
	parts := strings.Split(group, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".") + "." + version + "." + kind
}

func (o *openapi) decode() (map[string]*spec.Schema, error) {
	texts, err := o.definitions()
	if err != nil {
		return nil, err
	}
	decoded := make(map[string]*spec.Schema, len(texts))
	for name, text := range texts {
		one := &spec.Schema{}
		if err := json.Unmarshal([]byte(text), one); err != nil {
			return nil, fmt.Errorf("decode the definition %s: %w", name, err)
		}
		decoded[name] = one
	}
	return decoded, nil
}

// inline returns the definitions with all references replaced.
func (o *openapi) inline() (map[string]map[string]any, error) {
	texts, err := o.definitions()
	if err != nil {
		return nil, err
	}
	i := &inliner{definitions: map[string]map[string]any{}, done: map[string]map[string]any{}, open: map[string]bool{}}
	for name, text := range texts {
		one := map[string]any{}
		if err := utiljson.Unmarshal([]byte(text), &one); err != nil {
			return nil, fmt.Errorf("decode the definition %s: %w", name, err)
		}
		i.definitions[name] = one
	}
	for name := range texts {
		i.definition(name)
	}
	return i.done, nil
}

// inliner replaces references by their definitions.
type inliner struct {
	definitions, done map[string]map[string]any
	open              map[string]bool // definitions enclosing the current definition
}

func (i *inliner) definition(name string) map[string]any {
	if done, is := i.done[name]; is {
		return done
	}
	if i.open[name] || i.definitions[name] == nil {
		return map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	}
	i.open[name] = true
	i.done[name] = i.schema(i.definitions[name])
	delete(i.open, name)
	return i.done[name]
}

func (i *inliner) schema(s map[string]any) map[string]any {
	ref := nested.String(s, "$ref")
	if all := nested.Slice(s, "allOf"); len(all) == 1 {
		if only, _ := all[0].(map[string]any); only["$ref"] != nil {
			ref = nested.String(only, "$ref")
		}
	}
	if name, refers := strings.CutPrefix(ref, recorded.ReferenceV3); refers {
		inlined := maps.Clone(i.definition(name))
		for _, key := range []string{"description", "default"} {
			if value, has := s[key]; has {
				inlined[key] = value
			}
		}
		return inlined
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if inner, is := s[key].(map[string]any); is {
			s[key] = i.schema(inner)
		}
	}
	properties := nested.Map(s, "properties")
	for name, property := range properties {
		if inner, is := property.(map[string]any); is {
			properties[name] = i.schema(inner)
		}
	}
	return s
}
