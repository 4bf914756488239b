package definitioncheck_test

// scenario is a change of a definition with live objects.
type scenario struct {
	name     string
	old, new definition
	// objects are values of spec, as YAML.
	objects []string
	// want are the findings of the definition and of its objects, without examples.
	want []string
	// isRandom leaves out want.
	isRandom bool
}

type definition struct {
	scope, kind, shortName string
	versions               []version
}

// version has the schema of spec as YAML. The first version of a definition is its storage version unless another one is.
type version struct {
	name, spec string
	isUnserved bool
	isStorage  bool
}

// one returns a definition with a single version v1.
func one(spec string) definition { return definition{versions: []version{{name: "v1", spec: spec}}} }

// two returns a definition with the versions v1, stored, and v2.
func two(v1, v2 string) definition {
	return definition{versions: []version{{name: "v1", spec: v1}, {name: "v2", spec: v2}}}
}

const (
	sizeAndColor = `{type: object, properties: {size: {type: integer}, color: {type: string}}}`
	size         = `{type: object, properties: {size: {type: integer}}}`
	items        = `{type: object, properties: {items: {type: array, items: {type: object, properties: {name: {type: string}, port: {type: integer}}}}}}`
	names        = `{type: object, properties: {names: {type: array, items: {type: string}}}}`
	labels       = `{type: object, properties: {labels: {type: object, additionalProperties: {type: string}}}}`
	unknown      = `{type: object, x-kubernetes-preserve-unknown-fields: true}`
)

var scenarios = []scenario{
	{name: "unchanged", old: one(size), new: one(size), objects: []string{"{size: 1}", "{}"}},
	{name: "optional field added", old: one(size), new: one(sizeAndColor), objects: []string{"{size: 1}"}},
	{
		name: "field with default added", old: one(size), objects: []string{"{size: 1}", "{}"},
		new:  one(`{type: object, properties: {size: {type: integer}, color: {type: string, default: red}}}`),
		want: []string{`v1: FieldDefaulted spec.color: "red"`},
	},
	{
		name: "default of an object", old: one(size), objects: []string{"{size: 1}"},
		new:  one(`{type: object, properties: {size: {type: integer}, paint: {type: object, default: {}, properties: {color: {type: string, default: red}}}}}`),
		want: []string{`v1: FieldDefaulted spec.paint: {"color":"red"}`},
	},
	{name: "field removed", old: one(sizeAndColor), new: one(size), objects: []string{"{size: 1, color: red}", "{size: 2}"}, want: []string{"v1: FieldLost spec.color"}},
	{
		name: "field of list items removed", old: one(items), objects: []string{"{items: [{name: a}, {name: b, port: 1}, {name: c, port: 2}]}"},
		new:  one(`{type: object, properties: {items: {type: array, items: {type: object, properties: {name: {type: string}}}}}}`),
		want: []string{"v1: FieldLost spec.items[*].port"},
	},
	{
		name: "field removed from one version", old: two(sizeAndColor, sizeAndColor), new: two(sizeAndColor, size), objects: []string{"{size: 1, color: red}"},
		want: []string{"v2: FieldLost spec.color", "v2: FieldLostOnUpdate spec.color"},
	},
	{
		name: "field removed from the storage version", old: two(sizeAndColor, sizeAndColor), new: two(size, sizeAndColor), objects: []string{"{size: 1, color: red}"},
		want: []string{"v1: FieldLost spec.color", "v2: FieldLost spec.color"},
	},
	{
		name: "storage version without a field", old: two(sizeAndColor, size), objects: []string{"{size: 1, color: red}", "{size: 2}"},
		new:  definition{versions: []version{{name: "v1", spec: sizeAndColor}, {name: "v2", spec: size, isStorage: true}}},
		want: []string{"v2: StorageVersionChanged spec.versions: v1 → v2: objects move with their next write (or with a migration)", "v1: FieldLostOnUpdate spec.color"},
	},
	{
		name: "storage version with the same fields", old: two(size, size), objects: []string{"{size: 1}"},
		new:  definition{versions: []version{{name: "v1", spec: size}, {name: "v2", spec: size, isStorage: true}}},
		want: []string{"v2: StorageVersionChanged spec.versions: v1 → v2: objects move with their next write (or with a migration)"},
	},
	{
		name: "maximum lowered", old: one(size), new: one(`{type: object, properties: {size: {type: integer, maximum: 3}}}`), objects: []string{"{size: 5}", "{size: 2}"},
		want: []string{"v1: Invalid spec.size: Invalid value: spec.size in body should be less than or equal to 3"},
	},
	{
		name: "enum narrowed", old: one(sizeAndColor), objects: []string{"{color: red}", "{color: blue}"},
		new:  one(`{type: object, properties: {size: {type: integer}, color: {type: string, enum: [blue, green]}}}`),
		want: []string{`v1: Invalid spec.color: Unsupported value: supported values: "blue", "green"`},
	},
	{
		name: "pattern added", old: one(sizeAndColor), objects: []string{"{color: red}"},
		new:  one(`{type: object, properties: {color: {type: string, pattern: "^b"}}}`),
		want: []string{`v1: Invalid spec.color: Invalid value: spec.color in body should match '^b'`},
	},
	{
		name: "length limited", old: one(sizeAndColor), objects: []string{"{color: crimson}"},
		new:  one(`{type: object, properties: {color: {type: string, maxLength: 3}}}`),
		want: []string{"v1: Invalid spec.color: Too long: may not be more than 3 bytes"},
	},
	{
		name: "required field added", old: one(size), objects: []string{"{size: 1}", "{}"},
		new:  one(`{type: object, required: [color], properties: {size: {type: integer}, color: {type: string}}}`),
		want: []string{"v1: Invalid spec.color: Required value"},
	},
	{
		name: "required field with default added", old: one(size), objects: []string{"{size: 1}"},
		new:  one(`{type: object, required: [color], properties: {size: {type: integer}, color: {type: string, default: red}}}`),
		want: []string{`v1: FieldDefaulted spec.color: "red"`},
	},
	{
		name: "type changed", old: one(sizeAndColor), objects: []string{"{size: 1, color: red}"},
		new:  one(`{type: object, properties: {size: {type: string}, color: {type: string}}}`),
		want: []string{`v1: Invalid spec.size: Invalid value: spec.size in body must be of type string: "integer"`},
	},
	{
		name: "field of items becomes an integer or a string", old: one(items), objects: []string{"{items: [{name: a, port: 1}]}"},
		new: one(`{type: object, properties: {items: {type: array, items: {type: object, properties: {name: {type: string}, port: {x-kubernetes-int-or-string: true}}}}}}`),
	},
	{
		name: "list becomes a set", old: one(names), objects: []string{"{names: [a, b, a]}", "{names: [a]}"},
		new:  one(`{type: object, properties: {names: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}`),
		want: []string{"v1: Invalid spec.names[*]: Duplicate value"},
	},
	{
		name: "items limited", old: one(names), objects: []string{"{names: [a, b, c]}"},
		new:  one(`{type: object, properties: {names: {type: array, maxItems: 2, items: {type: string}}}}`),
		want: []string{"v1: Invalid spec.names: Too many: must have at most 2 items"},
	},
	{
		name: "values of a map limited", old: one(labels), objects: []string{"{labels: {a: long, b: c}}"},
		new:  one(`{type: object, properties: {labels: {type: object, additionalProperties: {type: string, pattern: "^.$"}}}}`),
		want: []string{"v1: Invalid spec.labels.a: Invalid value: spec.labels.a in body should match '^.$'"},
	},
	{
		name: "map becomes an object", old: one(labels), objects: []string{"{labels: {a: b, c: d}}"},
		new:  one(`{type: object, properties: {labels: {type: object, properties: {a: {type: string}}}}}`),
		want: []string{"v1: FieldLost spec.labels.c"},
	},
	{
		name: "unknown fields pruned", old: one(unknown), new: one(size), objects: []string{"{size: 1, more: {a: b}}"},
		want: []string{"v1: FieldLost spec.more"},
	},
	{
		name: "null no longer permitted", old: one(`{type: object, properties: {color: {type: string, nullable: true}}}`), new: one(`{type: object, properties: {color: {type: string}}}`),
		objects: []string{"{color: null}"}, want: []string{"v1: FieldLost spec.color"},
	},
	{
		name: "null replaced by a default", old: one(`{type: object, properties: {color: {type: string, nullable: true}}}`),
		new:     one(`{type: object, properties: {color: {type: string, default: red}}}`),
		objects: []string{"{color: null}"},
	},
	{
		name: "default in a version that is not stored", old: two(size, size), objects: []string{"{size: 1}"},
		new: two(size, `{type: object, properties: {size: {type: integer}, color: {type: string, default: red}}}`),
	},
	{
		name: "default makes an update invalid", old: two(unknown, unknown), objects: []string{"{size: 1}"},
		new: two(unknown, `{type: object, maxProperties: 1, x-kubernetes-preserve-unknown-fields: true, properties: {color: {type: string, default: red}}}`),
		want: []string{
			"v2: Invalid spec: Too many: must have at most 1 item", "v2: NotUpdatable spec: Too many: must have at most 1 item",
		},
	},
	{
		name: "version added without a field", old: one(sizeAndColor), new: two(sizeAndColor, size), objects: []string{"{size: 1, color: red}"},
		want: []string{"v2: FieldLost spec.color", "v2: FieldLostOnUpdate spec.color"},
	},
	{
		name: "version no longer served", old: two(size, size), objects: []string{"{size: 1}"},
		new:  definition{versions: []version{{name: "v1", spec: size}, {name: "v2", spec: size, isUnserved: true}}},
		want: []string{"v2: VersionNotServed spec.versions: its clients will fail with 404"},
	},
	{
		name: "served version removed", old: two(size, size), new: one(size), objects: []string{"{size: 1}"},
		want: []string{"v2: VersionRemoved spec.versions: it is served now: its clients will fail with 404 (stop serving it first)"},
	},
	{
		name: "stored version removed", old: two(size, size), objects: []string{"{size: 1}"},
		new: definition{versions: []version{{name: "v2", spec: size}}},
		want: []string{
			`Rejected status.storedVersions[0]: Invalid value: "v1": missing from spec.versions`,
			"v1: VersionRemoved spec.versions: status.storedVersions has it: objects may be stored in it (migrate them first)",
			"v2: StorageVersionChanged spec.versions: v1 → v2: objects move with their next write (or with a migration)",
		},
	},
	{
		name: "scope changed", old: one(size), new: definition{scope: "Cluster", versions: []version{{name: "v1", spec: size}}}, objects: []string{"{size: 1}"},
		want: []string{`Rejected spec.scope: Invalid value: "Cluster": field is immutable`, `ScopeChanged spec.scope: "Namespaced" → "Cluster"`},
	},
	{
		name: "kind changed", old: one(size), new: definition{kind: "Cog", versions: []version{{name: "v1", spec: size}}}, objects: []string{"{size: 1}"},
		want: []string{`Rejected spec.names.kind: Invalid value: "Cog": field is immutable`, `NamesChanged spec.names.kind: "Gear" → "Cog"`},
	},
	{
		name: "short name added", old: one(size), new: definition{shortName: "gr", versions: []version{{name: "v1", spec: size}}}, objects: []string{"{size: 1}"},
		want: []string{`NamesChanged spec.names.shortNames: null → ["gr"]`},
	},
	{
		name: "invalid default", old: one(size), new: one(`{type: object, properties: {size: {type: integer, default: text}}}`), objects: []string{"{size: 1}"},
		want: []string{`Rejected spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].default: Invalid value: "string": in body must be of type integer: "string"`},
	},
}
