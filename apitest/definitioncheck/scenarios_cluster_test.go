package definitioncheck_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/apitest/definitioncheck"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

// markerVersion is an additional version of each new definition. The server uses the new definition when it serves this version.
const markerVersion = "v9"

// upgrade changes the definition of a scenario on the sandbox.
type upgrade struct {
	scenario

	client           *dynamic.Client
	definitions      *dynamic.Resource
	namespace, group string

	before     map[string]map[string]any // objects under the old definition
	lostBefore map[string][]string       // fields lost by an update under the old definition
	report     *definitioncheck.Report
	isRejected bool
}

func TestCheck_EqualsServer(t *testing.T) {
	t.Parallel()
	compareWithServer(t, scenarios)
}

// compareWithServer checks each scenario, changes the definition on the sandbox, and reads, creates and updates every object. All
// scenarios wait for the server together.
func compareWithServer(t *testing.T, scenarios []scenario) {
	t.Helper()
	c := client.Connect(t, "admin")
	upgrades := make([]*upgrade, len(scenarios))
	for i, s := range scenarios {
		upgrades[i] = &upgrade{
			scenario: s, client: c, definitions: client.Resource(t, c, "customresourcedefinitions"), namespace: client.NewNamespace(t, c),
			group: fmt.Sprintf("g%d.check.example.com", rand.Uint32()), lostBefore: map[string][]string{},
		}
		_, err := upgrades[i].definitions.Create(t.Context(), upgrades[i].definition(t, s.old, false), nil)
		require.NoError(t, err)
		client.DeleteAtEnd(t, upgrades[i].definitions, "gears."+upgrades[i].group)
	}
	for _, u := range upgrades {
		t.Run(u.name+", checked", u.check)
	}
	var all sync.WaitGroup
	for _, u := range upgrades { // the first request under a changed definition waits about a second
		all.Go(func() { _, _ = u.gears(markerVersion).ListPage(t.Context(), nil) })
	}
	all.Wait()
	found := map[definitioncheck.Type]int{}
	for _, u := range upgrades {
		t.Run(u.name+", changed", u.compare)
		for _, f := range slices.Concat(u.report.Definition, u.report.Findings) {
			found[f.Type]++
		}
	}
	t.Logf("%d changes, findings: %v", len(upgrades), found)
	assert.NotEmpty(t, found)
}

// check checks the new definition and writes it.
func (u *upgrade) check(t *testing.T) {
	u.createObjects(t)
	u.before = u.views(t)
	report, err := definitioncheck.Check(t.Context(), u.client, u.definition(t, u.new, true), &definitioncheck.Options{MaxExamples: 1000})
	require.NoError(t, err)
	u.report = report
	assert.Equal(t, len(u.objects)*len(u.new.versions), report.Objects)
	if !u.isRandom {
		u.checkExpected(t, report)
	}

	definition := u.definition(t, u.new, true)
	live, err := u.definitions.Get(t.Context(), definition.GetName(), nil)
	require.NoError(t, err)
	definition.SetResourceVersion(live.GetResourceVersion())
	_, err = u.definitions.Update(t.Context(), definition, nil)
	u.isRejected = err != nil
	assert.Equal(t, slices.ContainsFunc(report.Definition, func(f *definitioncheck.Finding) bool { return f.Type == definitioncheck.Rejected }), u.isRejected, "%v", err)
}

// compare compares the report with the server's behavior under the new definition.
func (u *upgrade) compare(t *testing.T) {
	if u.isRejected || u.report == nil {
		return
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := u.gears(markerVersion).ListPage(t.Context(), nil)
		assert.NoError(c, err)
	}, time.Minute, 20*time.Millisecond)
	for i := range u.objects {
		for _, v := range u.new.versions {
			if !v.isUnserved {
				u.compareObject(t, u.report, name(i, v.name), v.name, u.before[name(i, v.name)])
			}
		}
	}
}

// checkExpected compares the findings with the scenario's.
func (u *upgrade) checkExpected(t *testing.T, report *definitioncheck.Report) {
	t.Helper()
	var got []string
	for _, f := range slices.Concat(report.Definition, report.Findings) {
		line, _, _ := strings.Cut(f.String(), " (")
		if f.Objects == 0 {
			line = f.String()
		}
		if f.Version != markerVersion {
			got = append(got, line)
		}
	}
	require.Len(t, got, len(u.want), "%q", got)
	for i := range got {
		assert.Contains(t, got[i], u.want[i])
	}
}

// definition returns the CustomResourceDefinition.
func (u *upgrade) definition(t *testing.T, d definition, withMarker bool) *unstructured.Object {
	t.Helper()
	hasStorage := slices.ContainsFunc(d.versions, func(v version) bool { return v.isStorage })
	var versions []any
	for i, v := range d.versions {
		var spec map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(v.spec), &spec))
		versions = append(versions, map[string]any{
			"name": v.name, "served": !v.isUnserved, "storage": v.isStorage || !hasStorage && i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": spec}}},
		})
	}
	if withMarker {
		versions = append(versions, map[string]any{
			"name": markerVersion, "served": true, "storage": false,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	kind := cmp.Or(d.kind, "Gear")
	names := map[string]any{"plural": "gears", "singular": "gear", "kind": kind, "listKind": "GearList"}
	if d.shortName != "" {
		names["shortNames"] = []any{d.shortName}
	}
	content, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "gears." + u.group},
		"spec": map[string]any{"group": u.group, "scope": cmp.Or(d.scope, "Namespaced"), "names": names, "versions": versions},
	})
	require.NoError(t, err)
	obj, err := unstructured.Decode(content)
	require.NoError(t, err)
	return obj
}

func (u *upgrade) gears(version string) *dynamic.Resource {
	gv := schema.GroupVersion{Group: u.group, Version: version}
	return u.client.ForAPIResource(&discovery.Resource{GVR: gv.WithResource("gears"), GVK: gv.WithKind("Gear"), Namespaced: true}).Namespace(u.namespace)
}

func name(i int, version string) string { return fmt.Sprintf("gear-%d-%s", i, version) }

// createObjects creates a copy of each object for each version, in the first version. Another copy is updated in the version under the
// old definition.
func (u *upgrade) createObjects(t *testing.T) {
	t.Helper()
	first := u.gears(u.old.versions[0].name)
	for i := range u.objects {
		for _, v := range u.new.versions {
			u.create(t, i, name(i, v.name))
			if !u.old.has(v.name) {
				continue
			}
			stored := u.create(t, i, "updated")
			_, err := u.gears(v.name).Update(t.Context(), u.read(t, "updated", v.name), nil)
			require.NoError(t, err)
			u.lostBefore[name(i, v.name)] = differences(t, stored.Object, u.read(t, "updated", u.old.versions[0].name).Object)
			_, err = first.Delete(t.Context(), "updated", nil)
			require.NoError(t, err)
		}
	}
}

func (u *upgrade) create(t *testing.T, i int, name string) (stored *unstructured.Object) {
	t.Helper()
	var spec map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(u.objects[i]), &spec))
	first := u.old.versions[0].name
	content, err := json.Marshal(map[string]any{
		"apiVersion": u.group + "/" + first, "kind": "Gear", "metadata": map[string]any{"name": name}, "spec": spec,
	})
	require.NoError(t, err)
	obj, err := unstructured.Decode(content)
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		stored, err = u.gears(first).Create(t.Context(), obj, nil)
		assert.NoError(c, err)
	}, time.Minute, 50*time.Millisecond)
	return stored
}

func (d *definition) has(name string) bool {
	return slices.ContainsFunc(d.versions, func(v version) bool { return v.name == name })
}

// views returns each object in its version, or in the first version if its version is new.
func (u *upgrade) views(t *testing.T) map[string]map[string]any {
	t.Helper()
	views := map[string]map[string]any{}
	for i := range u.objects {
		for _, v := range u.new.versions {
			readVersion := u.old.versions[0].name
			if u.old.has(v.name) {
				readVersion = v.name
			}
			views[name(i, v.name)] = u.read(t, name(i, v.name), readVersion).Object
		}
	}
	return views
}

func (u *upgrade) read(t *testing.T, name, version string) *unstructured.Object {
	t.Helper()
	obj, err := u.gears(version).Get(t.Context(), name, nil)
	require.NoError(t, err)
	return obj
}

// compareObject compares the findings about an object in a version with the server's behavior.
func (u *upgrade) compareObject(t *testing.T, report *definitioncheck.Report, name, version string, before map[string]any) {
	t.Helper()
	view := u.read(t, name, version)
	assert.Equal(t, differences(t, before, view.Object), u.found(report, definitioncheck.FieldLost, name, version), "lost of %s", name)
	assert.Equal(t, differences(t, view.Object, before), u.found(report, definitioncheck.FieldDefaulted, name, version), "defaulted of %s", name)

	created := &unstructured.Object{Object: runtime.DeepCopyJSON(view.Object)}
	created.Object["metadata"] = map[string]any{"name": "copy"}
	_, err := u.gears(version).Create(t.Context(), created, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	u.compareErrors(t, report, definitioncheck.Invalid, name, version, err)

	first := u.old.versions[0].name // served by every new definition that the server accepts
	stored := u.read(t, name, first)
	_, err = u.gears(version).Update(t.Context(), view, nil)
	u.compareErrors(t, report, definitioncheck.NotUpdatable, name, version, err)
	lost := slices.DeleteFunc(differences(t, stored.Object, u.read(t, name, first).Object), func(path string) bool {
		return slices.Contains(u.lostBefore[name], path)
	})
	assert.Equal(t, lost, u.found(report, definitioncheck.FieldLostOnUpdate, name, version), "lost by an update of %s", name)
}

// found returns the paths of findings about an object.
func (u *upgrade) found(report *definitioncheck.Report, kind definitioncheck.Type, name, version string) []string {
	paths := []string{}
	for _, f := range u.findings(report, kind, name, version) {
		paths = append(paths, f.Path)
	}
	return paths
}

func (u *upgrade) findings(report *definitioncheck.Report, kind definitioncheck.Type, name, version string) (found []*definitioncheck.Finding) {
	for _, f := range report.Findings {
		if f.Type == kind && f.Version == version && slices.Contains(f.Examples, types.NamespacedName{Namespace: u.namespace, Name: name}) {
			found = append(found, f)
		}
	}
	return found
}

// compareErrors compares the findings about an object with the causes of the server's error.
func (u *upgrade) compareErrors(t *testing.T, report *definitioncheck.Report, kind definitioncheck.Type, name, version string, err error) {
	t.Helper()
	findings := u.findings(report, kind, name, version)
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		require.NoError(t, err)
		assert.Empty(t, findings, "%s of %s in %s", kind, name, version)
		return
	}
	matched := map[*definitioncheck.Finding]bool{}
	for _, cause := range status.Status().Details.Causes {
		i := slices.IndexFunc(findings, func(f *definitioncheck.Finding) bool {
			kind, detail, _ := strings.Cut(f.Message, ": ")
			return f.Path == indexless(cause.Field) && strings.HasPrefix(cause.Message, kind) && strings.HasSuffix(indexless(cause.Message), detail)
		})
		if assert.NotEqual(t, -1, i, "%s of %s in %s: %v in %v", kind, name, version, cause, findings) {
			matched[findings[i]] = true
		}
	}
	assert.Len(t, findings, len(matched), "%s of %s in %s: %v: %v", kind, name, version, err, findings)
}

// differences returns the paths of fields below spec that b lacks. List items are compared as a whole.
func differences(t *testing.T, a, b map[string]any) []string {
	paths := map[string]bool{}
	lacking(t, "spec", a["spec"], b["spec"], paths)
	all := []string{}
	for path := range paths {
		all = append(all, path)
	}
	slices.Sort(all)
	return all
}

func lacking(t *testing.T, path string, a, b any, paths map[string]bool) {
	if reflect.DeepEqual(a, b) {
		return
	}
	if list, isList := a.([]any); isList {
		others, _ := b.([]any)
		for i := range list {
			if assert.Less(t, i, len(others), path) {
				lacking(t, path+"[*]", list[i], others[i], paths)
			}
		}
		return
	}
	fields, _ := a.(map[string]any)
	others, _ := b.(map[string]any)
	for field, value := range fields {
		if other, found := others[field]; found {
			lacking(t, path+"."+field, value, other, paths)
		} else {
			paths[path+"."+field] = true
		}
	}
}

// indexless replaces the indexes of up to ten items.
func indexless(text string) string {
	for i := range 10 {
		text = strings.ReplaceAll(text, fmt.Sprintf("[%d]", i), "[*]")
	}
	return text
}
