package storagemigration_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/storagemigration"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) {
	*storagemigration.PropagationDelay = 0 // setStorage waits for the only API server
	goleak.VerifyTestMain(m)
}

// environment is a definition Gear with the served versions v1, v2 and v3 in a group of its own. v1 is the storage version.
type environment struct {
	client      *dynamic.Client
	definitions *dynamic.Resource
	group       string
	name        string // of the definition
	namespace   string
}

const gearVersion = `{"name": %q, "served": true, "storage": %t, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
	"spec": {"type": "object", "properties": {"written": {"type": "string"}, "count": {"type": "integer"}, "values": {"type": "object", "additionalProperties": {"type": "string"}}}}}}}}`

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	c := client.Connect(t, "admin")
	e := &environment{
		client: c, definitions: client.Resource(t, c, "customresourcedefinitions"),
		group: fmt.Sprintf("g%d.migration.example.com", rand.Uint32()), namespace: client.NewNamespace(t, c),
	}
	e.name = "gears." + e.group
	versions := make([]any, 3)
	for i := range versions {
		require.NoError(t, json.Unmarshal(fmt.Appendf(nil, gearVersion, fmt.Sprintf("v%d", i+1), i == 0), &versions[i]))
	}
	_, err := e.definitions.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": e.name},
		"spec": map[string]any{
			"group": e.group, "scope": "Namespaced", "names": map[string]any{"plural": "gears", "singular": "gear", "kind": "Gear"}, "versions": versions,
		},
	}}, nil)
	require.NoError(t, err)
	client.DeleteAtEnd(t, e.definitions, e.name)
	_, err = e.definitions.Wait(t.Context(), e.name, dynamic.Condition("Established"))
	require.NoError(t, err)
	e.awaitStorage(t, "v1")
	return e
}

// gears returns a handle on the objects in a version.
func (e *environment) gears(version string) *dynamic.Resource { return e.gearsWith(e.client, version) }

func (e *environment) gearsWith(c *dynamic.Client, version string) *dynamic.Resource {
	gv := schema.GroupVersion{Group: e.group, Version: version}
	return c.ForAPIResource(&discovery.Resource{GVR: gv.WithResource("gears"), GVK: gv.WithKind("Gear"), Namespaced: true}).Namespace(e.namespace)
}

// gear returns an object of a version.
func (e *environment) gear(name, version string) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": name, "namespace": e.namespace},
		"spec":     map[string]any{"written": version},
	}}
}

// changeDefinition changes the versions of the definition.
func (e *environment) changeDefinition(t *testing.T, change func(versions []any) []any) {
	t.Helper()
	_, _, err := e.definitions.Upsert(t.Context(), e.name, func(obj *unstructured.Object) error {
		versions, _, err := unstructured.Get[[]any](obj, "spec", "versions")
		if err != nil {
			return err
		}
		return unstructured.Set(obj, change(versions), "spec", "versions")
	}, nil)
	require.NoError(t, err)
}

// setStorage changes the storage version and waits until the API server uses it.
func (e *environment) setStorage(t *testing.T, version string) {
	t.Helper()
	e.changeDefinition(t, func(versions []any) []any {
		for _, v := range versions {
			v := v.(map[string]any)
			v["storage"] = v["name"] == version
		}
		return versions
	})
	e.awaitStorage(t, version)
}

// stopServing stops serving a version.
func (e *environment) stopServing(t *testing.T, version string) {
	t.Helper()
	e.changeDefinition(t, func(versions []any) []any {
		for _, v := range versions {
			if v := v.(map[string]any); v["name"] == version {
				v["served"] = false
			}
		}
		return versions
	})
}

// removeVersions removes all versions but one.
func (e *environment) removeVersions(t *testing.T, except string) {
	t.Helper()
	e.changeDefinition(t, func(versions []any) (left []any) {
		for _, v := range versions {
			if v.(map[string]any)["name"] == except {
				left = append(left, v)
			}
		}
		return left
	})
}

// awaitStorage waits until the API server stores objects in a version.
func (e *environment) awaitStorage(t *testing.T, version string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		name := fmt.Sprintf("probe-%d", rand.Uint32())
		_, err := e.gears(version).Create(t.Context(), e.gear(name, version), nil)
		require.NoError(c, err)
		assert.Equal(c, version, e.stored(t)[name])
		_, err = e.gears(version).Delete(t.Context(), name, nil)
		require.NoError(c, err)
	}, time.Minute, 20*time.Millisecond)
}

// stored returns the versions of the objects in etcd.
func (e *environment) stored(t *testing.T) map[string]string {
	t.Helper()
	prefix := fmt.Sprintf("/registry/%s/gears/%s/", e.group, e.namespace)
	versions := map[string]string{}
	for key, value := range cluster.StoredValues(t, prefix) {
		var obj struct{ APIVersion string }
		require.NoError(t, json.Unmarshal(value, &obj))
		versions[strings.TrimPrefix(key, prefix)] = strings.TrimPrefix(obj.APIVersion, e.group+"/")
	}
	return versions
}

// uid returns the UID of the definition.
func (e *environment) uid(t *testing.T) string {
	t.Helper()
	obj, err := e.definitions.Get(t.Context(), e.name, nil)
	require.NoError(t, err)
	return string(obj.GetUID())
}

// storedVersions returns status.storedVersions.
func (e *environment) storedVersions(t *testing.T) []string {
	t.Helper()
	obj, err := e.definitions.Get(t.Context(), e.name, nil)
	require.NoError(t, err)
	versions, _, err := unstructured.Get[[]string](obj, "status", "storedVersions")
	require.NoError(t, err)
	return versions
}

// create creates objects of the storage version, named VERSION-NUMBER.
func (e *environment) create(t *testing.T, version string, count int) {
	t.Helper()
	for i := range count {
		_, err := e.gears(version).Create(t.Context(), e.gear(fmt.Sprintf("%s-%d", version, i), version), nil)
		require.NoError(t, err)
	}
}

// count returns the number of objects in each version.
func count(versions map[string]string) map[string]int {
	counts := map[string]int{}
	for _, version := range versions {
		counts[version]++
	}
	return counts
}

func (e *environment) apply(t *testing.T, version, spec string) error {
	t.Helper()
	patch := fmt.Sprintf(`{"apiVersion": "%s/%s", "kind": "Gear", "metadata": {"name": "applied"}, "spec": %s}`, e.group, version, spec)
	_, err := e.gears(version).Patch(t.Context(), "applied", types.ApplyYAMLPatchType, []byte(patch), &metav1.PatchOptions{FieldManager: "applier"})
	return err
}
