package difftest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// kind is a kind that operations are drawn for.
type kind struct {
	class, definition, group, version, plural, name string
	namespaced, status, scale                       bool
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

// body returns an object without metadata: mostly a valid one, or one that is drawn from the schema.
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
