package builtin

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/recorded"
)

// TestRules_MatchRecordedTypes requires the types and fields of rules.txt in the recorded types. A struct is either listed with its
// fields or accepts any.
func TestRules_MatchRecordedTypes(t *testing.T) {
	types := goTypes()
	groups, err := recorded.ReadGroups()
	require.NoError(t, err)
	minor := groups.Version["major"] + "." + groups.Version["minor"]
	for section, fields := range complete() {
		typ := types.types[section]
		if typ == nil && minor != RulesVersion && len(kindsOf(t, section)) == 0 {
			t.Logf("Kubernetes %s has no %s; the rules are of %s", minor, section, RulesVersion)
			continue
		}
		if typ == nil {
			assert.NotEmpty(t, kindsOf(t, section), "%s is neither a type nor a resource", section)
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			for _, r := range fields[name].rules {
				hasValues := r.name != "enum" && r.name != "keys" || len(r.withSchema(section, name).args) > 0
				assert.True(t, hasValues, "%s.%s: %s has no values in OpenAPI", section, name, r.name)
				assert.True(t, slices.Contains(ownRules, r.name) || textRules[r.name] != nil || fieldRuleTable[r.name].isBroken != nil, "%s.%s: no rule %s", section, name, r.name)
			}
			if name == wholeStruct {
				continue
			}
			if typ == nil {
				isKnown := func(kind string) bool { return fieldAt(types, kind, strings.Split(name, ".")) != nil }
				assert.True(t, slices.ContainsFunc(kindsOf(t, section), isKnown), "%s has no field %s", section, name)
				continue
			}
			known := typ.byName[name]
			if !assert.NotNil(t, known, "%s has no field %s", section, name) || fields[name].any || fields[name].unchecked {
				continue
			}
			if below := types.types[types.elementOf(known.typ)]; below != nil && below.underlying == "struct" {
				assert.NotEmpty(t, complete()[below.path], "%s.%s: %s is not listed", section, name, below.path)
			}
		}
	}
}

var ownRules = []string{
	"created", "min", "max", "maxItems", "port", "enum", "optionalEnum", "only", "onlyKeys", "like", "oneLike", "labels", "configKeys", "set", "keys", "distinct",
	"headerNames", "conditionTypes", "selector", "oneOf", "alone", "anyOf", "first", "exactlyOne", "exactlyOneInList", "atMostOne", "someOf", "onlyOne", "backendPort", "either",
}

// kindsOf returns the types of a resource or subresource in all served versions.
func kindsOf(t *testing.T, section string) (types []string) {
	name, subresource, _ := strings.Cut(section, "/")
	groups, err := recorded.ReadGroups()
	if !assert.NoError(t, err) {
		return nil
	}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				isKnown := subresource == "" || slices.ContainsFunc(resource.Subresources, func(s recorded.Subresource) bool { return s.Name == subresource })
				if isKnown && (schema.GroupResource{Group: group.Name, Resource: resource.Plural}).String() == name {
					kind := schema.GroupVersionKind{Group: group.Name, Version: version.Name, Kind: resource.Kind}
					types = append(types, goTypes().kinds[kind])
				}
			}
		}
	}
	return types
}

// fieldAt returns the field at a path without indexes.
func fieldAt(types *typeTable, typ string, path []string) (found *goField) {
	for _, name := range path {
		current := types.types[types.elementOf(typ)]
		if current == nil || current.byName[name] == nil {
			return nil
		}
		found = current.byName[name]
		typ = found.typ
	}
	return found
}
