package managedfields_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/managedfields"
)

func entry(manager, operation, apiVersion, subresource, fields string) string {
	return fmt.Sprintf(`{"manager":%q,"operation":%q,"apiVersion":%q,"subresource":%q,"fieldsType":"FieldsV1","fieldsV1":%s}`,
		manager, operation, apiVersion, subresource, fields)
}

func entries(t *testing.T, texts ...string) []managedfields.Entry {
	t.Helper()
	list := ""
	for i, text := range texts {
		if i > 0 {
			list += ","
		}
		list += text
	}
	read, err := managedfields.Read(object(t, `{"metadata":{"managedFields":[`+list+`]}}`))
	require.NoError(t, err)
	return read
}

// migration moves the entries of a, b and c to "to", which applies in version "v".
func migration(t *testing.T, forms map[string]string) managedfields.Migration {
	return managedfields.Migration{
		Manager: "to", APIVersion: "v",
		Moves: func(e managedfields.Entry) bool { return slices.Contains([]string{"a", "b", "c"}, e.Manager) },
		Object: func(apiVersion string) (map[string]any, error) {
			if forms[apiVersion] == "" {
				return nil, nil
			}
			return object(t, forms[apiVersion]), nil
		},
	}
}

func TestMigration_OneVersion(t *testing.T) {
	for name, c := range map[string]struct{ before, after, moved []string }{
		"nothing": {},
		"no source": {
			before: []string{entry("x", "Update", "v", "", `{"f:x":{}}`)},
			after:  []string{entry("x", "Update", "v", "", `{"f:x":{}}`)},
		},
		"an empty source": {
			before: []string{entry("a", "Update", "v", "", `{}`)},
			after:  []string{entry("a", "Update", "v", "", `{}`)},
		},
		"several sources, one without last-applied-configuration": {
			before: []string{entry("a", "Update", "v", "", `{"f:a":{}}`), entry("x", "Update", "v", "", `{"f:x":{}}`), entry("b", "Update", "v", "", `{"f:b":{}}`)},
			after:  []string{entry("to", "Apply", "v", "", `{"f:a":{},"f:b":{}}`), entry("x", "Update", "v", "", `{"f:x":{}}`)},
			moved:  []string{"a", "b"},
		},
		"an existing target": {
			before: []string{entry("to", "Apply", "v", "", `{"f:t":{}}`), entry("a", "Update", "v", "", `{"f:a":{}}`)},
			after:  []string{entry("to", "Apply", "v", "", `{"f:a":{},"f:t":{}}`)},
			moved:  []string{"a"},
		},
		"an applier": {
			before: []string{entry("a", "Apply", "v", "", `{"f:a":{}}`)},
			after:  []string{entry("to", "Apply", "v", "", `{"f:a":{}}`)},
			moved:  []string{"a"},
		},
		"the target's own updates stay": {
			before: []string{entry("to", "Update", "v", "", `{"f:t":{}}`), entry("a", "Update", "v", "", `{"f:a":{}}`)},
			after:  []string{entry("to", "Apply", "v", "", `{"f:a":{}}`), entry("to", "Update", "v", "", `{"f:t":{}}`)},
			moved:  []string{"a"},
		},
		"subresources": {
			before: []string{
				entry("a", "Update", "v", "", `{"f:a":{}}`), entry("a", "Update", "v", "status", `{"f:status":{"f:a":{}}}`),
				entry("b", "Update", "v", "scale", `{"f:spec":{"f:replicas":{}}}`),
			},
			after: []string{
				entry("to", "Apply", "v", "status", `{"f:status":{"f:a":{}}}`),
				entry("to", "Apply", "v", "", `{"f:a":{},"f:spec":{"f:replicas":{}}}`),
			},
			moved: []string{"a", "b", "a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := entries(t, c.before...)
			result, err := migration(t, nil).Migrate(before)
			require.NoError(t, err)
			assert.Equal(t, managedfields.Encode(entries(t, c.after...)), managedfields.Encode(result.Entries))
			var moved []string
			for _, e := range result.Moved {
				moved = append(moved, e.Manager)
			}
			assert.Equal(t, c.moved, moved)
			assert.Empty(t, result.Left)
			again, err := migration(t, nil).Migrate(result.Entries)
			require.NoError(t, err)
			assert.Empty(t, again.Moved, "the second migration moves nothing")
		})
	}
}

func TestMigration_SeveralVersions(t *testing.T) {
	const list = `"f:items":{"k:{\"name\":\"x\",\"port\":1}":{".":{},"f:name":{},"f:old":{}},"v:\"s\"":{},"i:0":{}}`
	for name, c := range map[string]struct {
		before, after, left []string
		forms               map[string]string
	}{
		"the only version stays if its fields are elsewhere in the new version": {
			before: []string{entry("a", "Update", "old", "", `{"f:cpu":{}}`)},
			forms:  map[string]string{"old": `{"cpu":5}`, "v": `{"metrics":[5]}`},
			after:  []string{entry("to", "Apply", "old", "", `{"f:cpu":{}}`)},
		},
		"equal fields move to the new version": {
			before: []string{entry("a", "Update", "old", "", `{"f:a":{".":{},"f:b":{}},"f:gone":{}}`), entry("b", "Update", "v", "", `{"f:c":{}}`)},
			forms:  map[string]string{"old": `{"a":{"b":1},"c":2}`, "v": `{"a":{"b":1},"c":2}`},
			after:  []string{entry("to", "Apply", "v", "", `{"f:a":{".":{},"f:b":{}},"f:c":{}}`)},
		},
		"items of lists": {
			before: []string{entry("a", "Update", "old", "", `{`+list+`}`), entry("b", "Update", "v", "", `{"f:c":{},"f:d":{}}`)},
			forms: map[string]string{
				"old": `{"items":[{"name":"x","port":1,"old":1},"s"]}`, "v": `{"items":[{"name":"x","port":1,"new":1},"s"],"c":1,"d":1}`,
			},
			after: []string{
				entry("to", "Apply", "v", "", `{"f:items":{"k:{\"name\":\"x\",\"port\":1}":{".":{},"f:name":{}},"v:\"s\"":{}},"f:c":{},"f:d":{}}`),
				entry("a", "Update", "old", "", `{"f:items":{"k:{\"name\":\"x\",\"port\":1}":{"f:old":{}},"i:0":{}}}`),
			},
			left: []string{"a"},
		},
		"fields without an equal stay, fewest of all versions": {
			before: []string{entry("a", "Update", "old", "", `{"f:cpu":{},"f:min":{}}`), entry("b", "Update", "v", "", `{"f:metrics":{},"f:x":{},"f:max":{}}`)},
			forms:  map[string]string{"old": `{"cpu":5,"min":1,"max":2}`, "v": `{"metrics":[5],"min":1,"max":2,"x":1}`},
			after: []string{
				entry("to", "Apply", "v", "", `{"f:min":{},"f:metrics":{},"f:x":{},"f:max":{}}`),
				entry("a", "Update", "old", "", `{"f:cpu":{}}`),
			},
			left: []string{"a"},
		},
		"the target's fields all stay": {
			before: []string{entry("to", "Apply", "old", "", `{"f:cpu":{}}`), entry("a", "Update", "v", "", `{"f:metrics":{},"f:x":{},"f:max":{}}`)},
			forms:  map[string]string{"old": `{"cpu":5,"max":2}`, "v": `{"metrics":[5],"max":2,"x":1}`},
			after: []string{
				entry("to", "Apply", "old", "", `{"f:cpu":{},"f:max":{}}`), entry("a", "Update", "v", "", `{"f:metrics":{},"f:x":{}}`),
			},
			left: []string{"a"},
		},
		"a version that is not served": {
			before: []string{entry("a", "Update", "older", "", `{"f:a":{},"f:gone":{}}`)},
			forms:  map[string]string{"v": `{"a":1}`},
			after:  []string{entry("to", "Apply", "v", "", `{"f:a":{}}`)},
		},
		"no version is served": {
			before: []string{entry("a", "Update", "older", "", `{"f:a":{}}`)},
			after:  []string{entry("a", "Update", "older", "", `{"f:a":{}}`)},
			left:   []string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := migration(t, c.forms).Migrate(entries(t, c.before...))
			require.NoError(t, err)
			assert.Equal(t, managedfields.Encode(entries(t, c.after...)), managedfields.Encode(result.Entries))
			var left []string
			for _, e := range result.Left {
				left = append(left, e.Manager)
			}
			assert.Equal(t, c.left, left)
		})
	}
}

func TestMigration_ErrorOfReadingAVersion(t *testing.T) {
	m := migration(t, nil)
	errRead := errors.New("no connection")
	m.Object = func(string) (map[string]any, error) { return nil, errRead }
	_, err := m.Migrate(entries(t, entry("a", "Update", "old", "", `{"f:a":{}}`)))
	assert.ErrorIs(t, err, errRead)
}

func TestMigration_TimeOfTheNewestEntry(t *testing.T) {
	before := entries(t, entry("to", "Apply", "v", "", `{"f:t":{}}`), entry("a", "Update", "v", "", `{"f:a":{}}`), entry("b", "Update", "v", "", `{"f:b":{}}`))
	before[1].Time = "2026-01-02T03:04:05Z"
	before[2].Time = "2025-01-02T03:04:05Z"
	result, err := migration(t, nil).Migrate(before)
	require.NoError(t, err)
	require.Len(t, result.Entries, 1)
	assert.Equal(t, "2026-01-02T03:04:05Z", result.Entries[0].Time)
}

func TestRead_MalformedEntries(t *testing.T) {
	for _, text := range []string{
		`{"metadata":[]}`,
		`{"metadata":{"managedFields":{}}}`,
		`{"metadata":{"managedFields":[1]}}`,
		`{"metadata":{"managedFields":[{"manager":1}]}}`,
		`{"metadata":{"managedFields":[{}]}}`,
		`{"metadata":{"managedFields":[` + entry("a", "Patch", "v", "", `{}`) + `]}}`,
		`{"metadata":{"managedFields":[` + entry("a", "Apply", "", "", `{}`) + `]}}`,
		`{"metadata":{"managedFields":[{"operation":"Apply","apiVersion":"v"}]}}`,
		`{"metadata":{"managedFields":[` + entry("a", "Apply", "v", "", `[]`) + `]}}`,
		`{"metadata":{"managedFields":[` + entry("a", "Apply", "v", "", `{"f:a":1}`) + `]}}`,
		`{"metadata":{"managedFields":[` + entry("a", "Apply", "v", "", `{"f:a":{"f":{}}}`) + `]}}`,
	} {
		_, err := managedfields.Read(object(t, text))
		assert.ErrorContains(t, err, "malformed managedFields", "%s", text)
	}
	none, err := managedfields.Read(object(t, `{}`))
	require.NoError(t, err)
	assert.Empty(t, none)
}

// FuzzMigration migrates entries with any fields. The result is valid, and without a second version no field is lost.
func FuzzMigration(f *testing.F) {
	f.Add(`{"metadata":{"managedFields":[`+entry("a", "Update", "v", "", `{"f:a":{".":{},"k:{\"x\":1}":{}}}`)+`]}}`, `{"a":[{"x":1}]}`)
	f.Add(`{"metadata":{"managedFields":[`+entry("a", "Update", "old", "", `{"f:a":{"i:9":{},"v:{":{}}}`)+`,`+entry("to", "Apply", "v", "", `{"f:a":null}`)+`]}}`, `{"a":["x"]}`)
	f.Fuzz(func(t *testing.T, text, form string) {
		var obj, older map[string]any
		if decode(text, &obj) != nil || decode(form, &older) != nil {
			t.Skip()
		}
		before, err := managedfields.Read(obj)
		if err != nil {
			return
		}
		m := migration(t, nil)
		m.Object = func(apiVersion string) (map[string]any, error) {
			if apiVersion == "v" {
				return obj, nil
			}
			return older, nil
		}
		result, err := m.Migrate(before)
		require.NoError(t, err)
		read, err := managedfields.Read(map[string]any{"metadata": map[string]any{"managedFields": managedfields.Encode(result.Entries)}})
		require.NoError(t, err)
		require.Len(t, read, len(result.Entries))
		require.Equal(t, len(before) == 0, len(read) == 0)
		var all, kept map[string]any
		targets := 0
		for _, e := range before {
			if e.Manager == m.Manager && e.Operation == managedfields.Apply {
				targets++
			}
			if e.APIVersion == "v" {
				all = managedfields.Union(all, e.Fields)
			} else {
				targets = 2
			}
		}
		for _, e := range read {
			kept = managedfields.Union(kept, e.Fields)
		}
		require.True(t, targets > 1 || managedfields.Contains(kept, all))
	})
}
