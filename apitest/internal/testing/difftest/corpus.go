package difftest

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/testing/corpus"
)

// maxDefinition is the maximum size of a definition. Larger definitions take the server seconds.
const maxDefinition = 200_000

// definition has the fields of a CustomResourceDefinition used by the generator.
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

// pool has the definitions to draw kinds from.
type pool struct {
	definitions map[string]string   // JSON by name
	order       []string            // from the corpus
	own         []string            // from this package
	objects     map[string][]string // of the corpus, by group and kind
}

// readPool returns the definitions of this package, and the corpus definitions with objects in the corpus. withRules selects
// definitions with CEL rules, or without.
func readPool(t testing.TB, withRules bool) *pool {
	t.Helper()
	p := &pool{definitions: map[string]string{}, objects: map[string][]string{}}
	own := syntheticDefinitions
	if withRules {
		own = ruledDefinitions
	}
	for _, document := range strings.Split(own, "\n---\n") {
		text, err := yaml.YAMLToJSON([]byte(document))
		require.NoError(t, err)
		name := definitionName(t, text)
		p.definitions[name] = string(text)
		p.own = append(p.own, name)
	}
	for _, object := range corpus.Objects(t, 6000) {
		key := object.Group + "/" + object.Kind
		p.objects[key] = append(p.objects[key], string(object.JSON))
	}
	for _, candidate := range corpus.Definitions(t, 400) {
		hasRules := strings.Contains(string(candidate.JSON), `"x-kubernetes-validations"`)
		if len(candidate.JSON) < maxDefinition && hasRules == withRules && len(p.objects[candidate.Group+"/"+candidate.Kind]) > 0 {
			p.definitions[candidate.Name] = withoutConversion(t, candidate.JSON)
			p.order = append(p.order, candidate.Name)
		}
	}
	return p
}

func definitionName(t testing.TB, text []byte) string {
	t.Helper()
	var crd definition
	require.NoError(t, json.Unmarshal(text, &crd))
	return crd.Metadata.Name
}

// withoutConversion returns a definition without its conversion webhook, which is not running.
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

// kinds returns the kinds of this package's definitions and count kinds of the corpus. server, which is not compared, decides
// about valid bodies. Kinds without a valid body are left out. Up to three corpus kinds have a scale; they come first.
func (p *pool) kinds(t testing.TB, r *rand.Rand, server *Server, count int) (kinds []*kind) {
	t.Helper()
	names := slices.Clone(p.order)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	slices.SortStableFunc(names, func(a, b string) int { return p.scaled(b) - p.scaled(a) })
	scaled := 0
	for _, name := range slices.Concat(p.own, names) {
		if len(kinds) == count+len(p.own) {
			break
		}
		if p.scaled(name) > 0 && !slices.Contains(p.own, name) {
			if scaled++; scaled > 3 {
				continue
			}
		}
		k := p.kind(t, name)
		server.define(t, p.definitions[name])
		server.awaitServed(t, []*kind{k}, "default")
		if server.findValid(t, r, k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

func (p *pool) scaled(name string) int {
	return min(strings.Count(p.definitions[name], `"specReplicasPath"`), 1)
}

// kind returns the kind of a definition.
func (p *pool) kind(t testing.TB, name string) *kind {
	t.Helper()
	var crd definition
	require.NoError(t, json.Unmarshal([]byte(p.definitions[name]), &crd))
	k := &kind{
		class: "custom", definition: name, group: crd.Spec.Group, plural: crd.Spec.Names.Plural, name: crd.Spec.Names.Kind,
		namespaced: crd.Spec.Scope == "Namespaced",
	}
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		if k.version == "" || version.Storage {
			k.version = version.Name
			k.schema = version.Schema.OpenAPIV3Schema
			k.status = version.Subresources.Status != nil
			k.scale = version.Subresources.Scale != nil
		}
		k.versions = append(k.versions, version.Name)
	}
	k.versions = slices.DeleteFunc(k.versions, func(version string) bool { return version == k.version })
	for _, object := range p.objects[k.group+"/"+k.name] {
		var body map[string]any
		require.NoError(t, json.Unmarshal([]byte(object), &body))
		if body["apiVersion"] != k.apiVersion(k.version) {
			continue
		}
		delete(body, "metadata")
		k.bodies = append(k.bodies, encode(body))
	}
	return k
}

// findValid keeps up to six valid bodies of the kind, or draws a valid body. It reports whether there is any.
func (s *Server) findValid(t testing.TB, r *rand.Rand, k *kind) bool {
	t.Helper()
	isValid := func(body map[string]any) bool {
		body["metadata"] = map[string]any{"name": "valid"}
		path := strings.ReplaceAll(k.collection(k.version), "${ns}", "default") + "?dryRun=All&fieldValidation=Strict"
		response := s.do(t, http.MethodPost, path, "", jsonType, "", encode(body))
		delete(body, "metadata")
		return response.Status == http.StatusCreated
	}
	var valid []string
	for _, text := range k.bodies {
		var body map[string]any
		if json.Unmarshal([]byte(text), &body) == nil && len(valid) < 6 && isValid(body) {
			valid = append(valid, encode(body))
		}
	}
	k.bodies = nil
	for range 50 {
		if len(valid) > 0 {
			break
		}
		if body := k.body(r); isValid(body) {
			valid = append(valid, encode(body))
		}
	}
	k.bodies = valid
	return len(valid) > 0
}
