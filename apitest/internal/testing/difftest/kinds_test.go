package difftest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/testing/corpus"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// kind is a kind that operations are drawn for.
type kind struct {
	class, group, version, plural, name string
	namespaced, status, scale           bool
	// bodies are valid objects without metadata, JSON; schema is that of the version, nil for a built-in kind.
	bodies []string
	schema map[string]any
	// broken are merge patches that make a body invalid or odd.
	broken []string
	// versions are the other served versions.
	versions []string
}

func (k *kind) apiVersion(version string) string {
	if k.group == "" {
		return version
	}
	return k.group + "/" + version
}

// collection returns the path of the kind's objects in the namespace of the run.
func (k *kind) collection(version string) string {
	path := "/apis/" + k.group + "/" + version
	if k.group == "" {
		path = "/api/" + version
	}
	if k.namespaced {
		path += "/namespaces/${ns}"
	}
	return path + "/" + k.plural
}

// key returns the path of an object as references have it.
func (k *kind) key(version, name string) string {
	return strings.NewReplacer("${ns}", "<ns>", "${p}", "<p>").Replace(k.collection(version) + "/" + name)
}

// objectName returns the name of the kind's object with that number.
func (k *kind) objectName(number int) string {
	if k.namespaced {
		return fmt.Sprintf("object-%d", number)
	}
	return fmt.Sprintf("${p}-object-%d", number)
}

// body returns an object without metadata.name: a valid one or, seldom, one that is changed by a broken patch.
func (k *kind) body(r *rand.Rand) map[string]any {
	var object map[string]any
	if len(k.bodies) > 0 && (k.schema == nil || r.IntN(3) > 0) {
		_ = json.Unmarshal([]byte(k.bodies[r.IntN(len(k.bodies))]), &object)
	} else {
		object = map[string]any{}
		if drawn, isMap := (&schemaSampler{r: r}).value(k.schema, 0).(map[string]any); isMap {
			object = drawn
		}
		delete(object, "metadata")
	}
	object["apiVersion"], object["kind"] = k.apiVersion(k.version), k.name
	return object
}

// brokenPatch returns a merge patch that makes an object of the kind wrong or odd.
func (k *kind) brokenPatch(r *rand.Rand) map[string]any {
	patch := map[string]any{}
	if len(k.broken) > 0 {
		_ = json.Unmarshal([]byte(k.broken[r.IntN(len(k.broken))]), &patch)
		return patch
	}
	s := &schemaSampler{r: r, wrong: 4}
	if drawn, isMap := s.value(k.schema, 0).(map[string]any); isMap {
		patch = drawn
	}
	delete(patch, "metadata")
	delete(patch, "apiVersion")
	delete(patch, "kind")
	return patch
}

// definition is the part of a CustomResourceDefinition that the generator needs.
type definition struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Plural string `json:"plural"`
			Kind   string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Name    string `json:"name"`
			Served  bool   `json:"served"`
			Storage bool   `json:"storage"`
			Schema  struct {
				OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
			} `json:"schema"`
			Subresources struct {
				Status map[string]any `json:"status"`
				Scale  map[string]any `json:"scale"`
			} `json:"subresources"`
		} `json:"versions"`
	} `json:"spec"`
}

// customKinds returns the kinds of definitions with the definitions themselves: some of our own and count of the corpus that
// have objects in it, drawn from the seed.
func customKinds(t testing.TB, r *rand.Rand, count int) (kinds []*kind, definitions []string) {
	t.Helper()
	for _, document := range strings.Split(syntheticDefinitions, "\n---\n") {
		text, err := yaml.YAMLToJSON([]byte(document))
		require.NoError(t, err)
		definitions = append(definitions, string(text))
	}
	objects := map[string][]string{}
	for _, object := range corpus.Objects(t, 3000) {
		objects[object.Group+"/"+object.Kind] = append(objects[object.Group+"/"+object.Kind], string(object.JSON))
	}
	candidates := corpus.Definitions(t, 300)
	r.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	for _, candidate := range candidates {
		if len(definitions) >= count {
			break
		}
		hasRules := strings.Contains(string(candidate.JSON), `"x-kubernetes-validations"`) // CEL, which package apitest does not evaluate
		if len(candidate.JSON) < 200_000 && !hasRules && len(objects[candidate.Group+"/"+candidate.Kind]) > 0 {
			definitions = append(definitions, withoutConversion(t, candidate.JSON))
		}
	}
	for _, text := range definitions {
		kinds = append(kinds, customKind(t, text, objects))
	}
	return kinds, definitions
}

func withoutConversion(t testing.TB, text []byte) string {
	t.Helper()
	var object map[string]any
	require.NoError(t, json.Unmarshal(text, &object))
	delete(object, "status")
	if spec, isMap := object["spec"].(map[string]any); isMap {
		delete(spec, "conversion")
	}
	encoded, err := json.Marshal(object)
	require.NoError(t, err)
	return string(encoded)
}

func customKind(t testing.TB, text string, objects map[string][]string) *kind {
	t.Helper()
	var crd definition
	require.NoError(t, json.Unmarshal([]byte(text), &crd))
	k := &kind{
		class: "custom", group: crd.Spec.Group, plural: crd.Spec.Names.Plural, name: crd.Spec.Names.Kind,
		namespaced: crd.Spec.Scope == "Namespaced",
	}
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		if k.version == "" || version.Storage {
			k.version, k.schema = version.Name, version.Schema.OpenAPIV3Schema
			k.status, k.scale = version.Subresources.Status != nil, version.Subresources.Scale != nil
		}
		k.versions = append(k.versions, version.Name)
	}
	k.versions = slices.DeleteFunc(k.versions, func(version string) bool { return version == k.version })
	for _, object := range objects[k.group+"/"+k.name] {
		var body map[string]any
		require.NoError(t, json.Unmarshal([]byte(object), &body))
		if body["apiVersion"] != k.apiVersion(k.version) {
			continue
		}
		delete(body, "metadata")
		encoded, err := json.Marshal(body)
		require.NoError(t, err)
		k.bodies = append(k.bodies, string(encoded))
	}
	return k
}

const syntheticDefinitions = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.diff.example}
spec:
  group: diff.example
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
    additionalPrinterColumns:
    - {name: Size, type: string, jsonPath: .spec.size}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    - {name: Parts, type: string, jsonPath: ".spec.parts[*].name", priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    selectableFields:
    - jsonPath: .spec.size
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: string, enum: [small, medium, large]}
              replicas: {type: integer, format: int32, minimum: 0, maximum: 10, default: 1}
              port: {x-kubernetes-int-or-string: true}
              weight: {type: number, minimum: 0, exclusiveMinimum: true}
              enabled: {type: boolean, default: true}
              note: {type: string, maxLength: 20, pattern: "^[a-z ]*$", nullable: true}
              when: {type: string, format: date-time}
              tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              options: {type: object, additionalProperties: {type: string, minLength: 1}}
              parts:
                type: array
                maxItems: 4
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    count: {type: integer, default: 2}
                    mode: {type: string, default: fast}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              atomic: {type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}, b: {type: integer}}}
          status:
            type: object
            properties:
              replicas: {type: integer}
              selector: {type: string}
              phase: {type: string}
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items: {type: object, required: [type, status], properties: {type: {type: string}, status: {type: string}}}
  - name: v1beta1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: zones.diff.example}
spec:
  group: diff.example
  scope: Cluster
  names: {plural: zones, singular: zone, kind: Zone, listKind: ZoneList}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              region: {type: string, default: north}
              nested: {type: object, properties: {deep: {type: array, items: {type: array, items: {type: integer}}}}}
              ratio: {type: number, multipleOf: 0.5}
              either: {type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}
              embedded: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`
