package structural

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// ValidateDefinition returns the API server's validation errors of a decoded and defaulted CustomResourceDefinition. CEL rules
// are validated by RuleCompiler.ValidateDefinition. old is nil for a creation.
func ValidateDefinition(definition, old map[string]any) field.ErrorList {
	spec := nested.Map(definition, "spec")
	at := field.NewPath("spec")
	var errs field.ErrorList
	if required := nested.String(spec, "names", "plural") + "." + nested.String(spec, "group"); nested.String(definition, "metadata", "name") != required {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), nested.String(definition, "metadata", "name"),
			`must be spec.names.plural+"."+spec.group`))
	}
	errs = append(errs, validateGroup(spec, at)...)
	errs = append(errs, validateVersions(spec, at)...)
	errs = append(errs, validateNames(nested.Map(spec, "names"), at.Child("names"))...)
	errs = append(errs, validateConversion(nested.Map(spec, "conversion"), at.Child("conversion"))...)
	errs = append(errs, validateStoredVersions(definition)...)
	errs = append(errs, validateApproval(definition, old)...)
	if old != nil {
		errs = append(errs, validateNamesUpdate(spec, nested.Map(old, "spec"), established(old), at)...)
	}
	return errs
}

func validateGroup(spec map[string]any, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	group := nested.String(spec, "group")
	if group == "" {
		errs = append(errs, field.Required(at.Child("group"), ""))
	} else if messages := validation.IsDNS1123Subdomain(group); len(messages) > 0 {
		errs = append(errs, field.Invalid(at.Child("group"), group, strings.Join(messages, ",")))
	} else if !strings.Contains(group, ".") {
		errs = append(errs, field.Invalid(at.Child("group"), group, "should be a domain with at least one dot"))
	}
	switch scope := nested.String(spec, "scope"); scope {
	case "Cluster", "Namespaced":
	case "":
		errs = append(errs, field.Required(at.Child("scope"), ""))
	default:
		errs = append(errs, field.NotSupported(at.Child("scope"), scope, []string{"Cluster", "Namespaced"}))
	}
	if nested.Bool(spec, "preserveUnknownFields") {
		hasDefault := false
		for _, version := range nested.Maps(spec, "versions") {
			walkSchemas(nested.Map(version, "schema", "openAPIV3Schema"), func(schema map[string]any) {
				hasDefault = hasDefault || schema["default"] != nil
			})
		}
		if hasDefault {
			errs = append(errs, field.Invalid(at.Child("preserveUnknownFields"), true, "must be false in order to use defaults in the schema"))
		}
		errs = append(errs, field.Invalid(at.Child("preserveUnknownFields"), true,
			"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"))
	}
	return errs
}

// maxDeprecationWarning is the API server's limit in bytes.
const maxDeprecationWarning = 256

func validateVersions(spec map[string]any, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	stored := 0
	seen := map[string]bool{}
	unique := true
	versions := nested.Slice(spec, "versions")
	for i, version := range versions {
		version, _ := version.(map[string]any)
		at := at.Child("versions").Index(i)
		name := nested.String(version, "name")
		if nested.Bool(version, "storage") {
			stored++
		}
		unique = unique && !seen[name]
		seen[name] = true
		if messages := validation.IsDNS1035Label(name); len(messages) > 0 {
			errs = append(errs, field.Invalid(at.Child("name"), name, strings.Join(messages, ",")))
			if i == 0 && name != "" {
				errs = append(errs, field.Invalid(field.NewPath("spec", "version"), name, strings.Join(messages, ",")))
			}
		}
		if warning, ok := version["deprecationWarning"].(string); ok {
			isUnprintable := func(r rune) bool { return !unicode.IsPrint(r) }
			isValid := warning != "" && len(warning) <= maxDeprecationWarning && !strings.ContainsFunc(warning, isUnprintable)
			if !isValid || !nested.Bool(version, "deprecated") {
				errs = append(errs, field.Invalid(at.Child("deprecationWarning"), warning, "must have 1 to 256 printable characters, and only for a deprecated version"))
			}
		}
		if nested.Map(version, "schema", "openAPIV3Schema") == nil {
			errs = append(errs, field.Required(at.Child("schema", "openAPIV3Schema"), ""))
		}
	}
	if !unique {
		errs = append(errs, field.Invalid(at.Child("versions"), versions, "must contain unique version names"))
	}
	if stored != 1 {
		errs = append(errs, field.Invalid(at.Child("versions"), versions, "must have exactly one version marked as storage version"))
	}
	return append(errs, validateParts(versions, at)...)
}

// validateParts checks the parts of versions, except for names. Before validation, the API server moves a part that is equal in
// all versions to the definition's spec. Errors then have that path.
func validateParts(versions []any, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	anyStatus := false
	for _, version := range versions {
		version, _ := version.(map[string]any)
		anyStatus = anyStatus || nested.Map(version, "subresources")["status"] != nil
	}
	for _, part := range []struct{ name, common string }{
		{"schema", "validation"}, {"subresources", "subresources"}, {"additionalPrinterColumns", "additionalPrinterColumns"}, {"selectableFields", "selectableFields"},
	} {
		common := isCommon(versions, part.name)
		for i, version := range versions {
			version, _ := version.(map[string]any)
			at := at.Child("versions").Index(i).Child(part.name)
			status := nested.Map(version, "subresources")["status"] != nil
			if common {
				at = field.NewPath("spec", part.common)
				status = anyStatus
			}
			isApart := common != isCommon(versions, "schema") // the fields and the schema are at different places
			if errs = append(errs, validatePart(part.name, version, status, isApart, at)...); common {
				break
			}
		}
	}
	return errs
}

// isCommon reports whether all versions have the same part. There may be no version.
func isCommon(versions []any, part string) bool {
	for _, version := range versions[min(1, len(versions)):] {
		first, _ := versions[0].(map[string]any)
		if version, _ := version.(map[string]any); !reflect.DeepEqual(version[part], first[part]) {
			return false
		}
	}
	return true
}

func validatePart(part string, version map[string]any, status, isApart bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	schema := nested.Map(version, "schema", "openAPIV3Schema")
	switch {
	case part == "schema" && schema != nil:
		if at = at.Child("openAPIV3Schema"); status {
			errs = validateRoot(schema, at)
		}
		return append(errs, ValidateSchema(schema, at)...)
	case part == "subresources":
		return validateScale(nested.Map(version, "subresources", "scale"), at)
	case part == "additionalPrinterColumns":
		for i, column := range nested.Slice(version, part) {
			column, _ := column.(map[string]any)
			errs = append(errs, validateColumn(column, at.Index(i))...)
		}
	case part == "selectableFields":
		fields := nested.Slice(version, part)
		if len(fields) > 0 && (isApart || schema == nil) {
			return field.ErrorList{field.Invalid(at, "", "may only be set beside a schema")}
		}
		return validateSelectable(fields, newNode(schema), at)
	}
	return errs
}

// fieldsAtRoot are the fields of a root schema that are allowed with a status subresource.
var fieldsAtRoot = []string{"description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern",
	"maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items", "properties", "externalDocs", "example", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"}

// validateRoot checks the root of a schema for fields forbidden with a status subresource. It returns the first error.
func validateRoot(schema map[string]any, at *field.Path) field.ErrorList {
	typ := nested.String(schema, "type")
	if typ != "" && typ != "object" && schema["id"] == nil && schema["$schema"] == nil && schema["$ref"] == nil {
		return field.ErrorList{field.Invalid(at.Child("type"), typ, `only "object" is allowed as the type at the root of the schema if the status subresource is enabled`)}
	}
	for name, value := range schema {
		if value != nil && !slices.Contains(fieldsAtRoot, name) {
			return field.ErrorList{field.Invalid(at, schema, fmt.Sprintf("only %v fields are allowed at the root of the schema if the status subresource is enabled", fieldsAtRoot))}
		}
	}
	return nil
}

func validateScale(scale map[string]any, at *field.Path) field.ErrorList {
	if scale == nil {
		return nil
	}
	var errs field.ErrorList
	for _, one := range []struct{ name, prefix, detail string }{
		{"specReplicasPath", ".spec.", "should be a json path under .spec"},
		{"statusReplicasPath", ".status.", "should be a json path under .status"},
	} {
		value := nested.String(scale, one.name)
		at := at.Child("scale." + one.name)
		switch {
		case value == "":
			errs = append(errs, field.Required(at, ""))
		case value[0] != '.':
			errs = append(errs, field.Invalid(at, value, "must be a simple json path starting with ."))
		case !strings.HasPrefix(value, one.prefix):
			errs = append(errs, field.Invalid(at, value, one.detail))
		}
	}
	if value, at := nested.String(scale, "labelSelectorPath"), at.Child("scale.labelSelectorPath"); value != "" {
		if value[0] != '.' {
			errs = append(errs, field.Invalid(at, value, "must be a simple json path starting with ."))
		} else if !strings.HasPrefix(value, ".spec.") && !strings.HasPrefix(value, ".status.") {
			errs = append(errs, field.Invalid(at, value, "should be a json path under either .spec or .status"))
		}
	}
	return errs
}

func validateColumn(column map[string]any, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	const types, formats = "boolean,date,integer,number,string", "byte,date,date-time,double,float,int32,int64,password"
	if nested.String(column, "name") == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	switch typ := nested.String(column, "type"); {
	case typ == "":
		errs = append(errs, field.Required(at.Child("type"), "must be one of "+types))
	case !slices.Contains(strings.Split(types, ","), typ):
		errs = append(errs, field.Invalid(at.Child("type"), typ, "must be one of "+types))
	}
	if format := nested.String(column, "format"); format != "" && !slices.Contains(strings.Split(formats, ","), format) {
		errs = append(errs, field.Invalid(at.Child("format"), format, "must be one of "+formats))
	}
	switch path := nested.String(column, "jsonPath"); {
	case path == "":
		errs = append(errs, field.Required(at.Child("JSONPath"), ""))
	case path[0] != '.':
		errs = append(errs, field.Invalid(at.Child("JSONPath"), path, "must be a simple json path starting with ."))
	}
	return errs
}

// maxSelectableFields is the API server's limit.
const maxSelectableFields = 8

func validateSelectable(selectable []any, root *node, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, one := range selectable {
		one, _ := one.(map[string]any)
		path := nested.String(one, "jsonPath")
		at := at.Index(i).Child("jsonPath")
		if path == "" {
			errs = append(errs, field.Required(at, ""))
			continue
		}
		n := root.atPath(path)
		if n == nil || strings.Contains(path, "[") {
			errs = append(errs, field.Invalid(at, path, "is an invalid path: does not refer to a valid field"))
			continue
		}
		if path == ".metadata" || strings.HasPrefix(path, ".metadata.") {
			errs = append(errs, field.Invalid(at, path, "must not point to fields in metadata"))
		}
		if !slices.Contains([]string{"string", "boolean", "integer"}, n.typ) {
			errs = append(errs, field.Invalid(at, path, "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."))
		}
		if seen[path] {
			errs = append(errs, field.Duplicate(at, path))
		}
		seen[path] = true
	}
	if len(seen) > maxSelectableFields {
		errs = append(errs, field.TooMany(at, len(seen), maxSelectableFields))
	}
	return errs
}

func validateNames(names map[string]any, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range []string{"plural", "singular", "kind", "listKind"} {
		value := nested.String(names, name)
		label := value
		prefix := ""
		if name == "kind" || name == "listKind" {
			label = strings.ToLower(value)
			prefix = "may have mixed case, but should otherwise match: "
		}
		if value == "" {
			errs = append(errs, field.Required(at.Child(name), ""))
		} else if messages := validation.IsDNS1035Label(label); len(messages) > 0 {
			errs = append(errs, field.Invalid(at.Child(name), value, prefix+strings.Join(messages, ",")))
		}
	}
	if kind := nested.String(names, "kind"); kind != "" && kind == nested.String(names, "listKind") {
		errs = append(errs, field.Invalid(at.Child("listKind"), kind, "kind and listKind may not be the same"))
	}
	for _, list := range []string{"shortNames", "categories"} {
		for i, name := range nested.Slice(names, list) {
			name, _ := name.(string)
			if messages := validation.IsDNS1035Label(name); len(messages) > 0 {
				errs = append(errs, field.Invalid(at.Child(list).Index(i), name, strings.Join(messages, ",")))
			}
		}
	}
	return errs
}

func established(definition map[string]any) bool {
	return nested.HasCondition(definition, "Established")
}

func validateNamesUpdate(spec, old map[string]any, established bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := nested.Map(spec, "names")
	oldNames := nested.Map(old, "names")
	if established {
		errs = append(errs, apivalidation.ValidateImmutableField(spec["scope"], old["scope"], at.Child("scope"))...)
		errs = append(errs, apivalidation.ValidateImmutableField(names["kind"], oldNames["kind"], at.Child("names", "kind"))...)
	}
	errs = append(errs, apivalidation.ValidateImmutableField(spec["group"], old["group"], at.Child("group"))...)
	return append(errs, apivalidation.ValidateImmutableField(names["plural"], oldNames["plural"], at.Child("names", "plural"))...)
}
