package difftest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// kind is a kind to draw operations for.
type kind struct {
	class, definition, group, version, plural, name string
	namespaced, status, scale                       bool
	// bodies are valid objects without metadata in JSON. schema is the version's schema, nil for a built-in kind.
	bodies []string
	schema map[string]any
	// broken are merge patches to an invalid or unusual body.
	broken []string
	// versions are the served versions except version.
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

// key returns the path of an object for references.
func (k *kind) key(version, name string) string {
	return strings.NewReplacer("${ns}", "<ns>", "${p}", "<p>").Replace(k.collection(version) + "/" + name)
}

// objectName returns the name of the kind's object number.
func (k *kind) objectName(number int) string {
	if k.namespaced {
		return fmt.Sprintf("object-%d", number)
	}
	return fmt.Sprintf("${p}-object-%d", number)
}

// body returns an object without metadata: usually a valid body, sometimes a body drawn from the schema.
func (k *kind) body(r *rand.Rand) map[string]any {
	object := map[string]any{}
	if k.schema == nil || len(k.bodies) > 0 && r.IntN(4) > 0 {
		_ = json.Unmarshal([]byte(k.bodies[r.IntN(len(k.bodies))]), &object)
	} else {
		if drawn, isMap := (&schemaSampler{r: r}).value(k.schema, 0).(map[string]any); isMap {
			object = drawn
		}
		delete(object, "metadata")
	}
	object["apiVersion"] = k.apiVersion(k.version)
	object["kind"] = k.name
	return object
}

// brokenPatch returns a merge patch to an invalid or unusual object of the kind.
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
