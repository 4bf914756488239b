package definitioncheck

import (
	"reflect"
	"slices"
	"strings"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/structural"
)

// definition has the compiled schemas of a CustomResourceDefinition.
type definition struct {
	content             map[string]any
	group, plural, kind string
	isNamespaced        bool
	hasWebhook          bool
	// preservesUnknown is spec.preserveUnknownFields: no version is pruned.
	preservesUnknown bool
	storage          string
	names            []string // of all versions, in order
	versions         map[string]*version
}

type version struct {
	isServed bool
	// schema is nil if it is missing or not structural.
	schema   *structural.Schema
	hasScale bool
}

func newDefinition(content map[string]any, rules structural.RuleCompiler) *definition {
	d := &definition{
		content: content,
		group:   nested.String(content, "spec", "group"), plural: nested.String(content, "spec", "names", "plural"),
		kind:             nested.String(content, "spec", "names", "kind"),
		isNamespaced:     nested.String(content, "spec", "scope") == "Namespaced",
		hasWebhook:       nested.String(content, "spec", "conversion", "strategy") == "Webhook",
		preservesUnknown: nested.Bool(content, "spec", "preserveUnknownFields"),
		versions:         map[string]*version{},
	}
	for _, v := range nested.Maps(content, "spec", "versions") {
		name := nested.String(v, "name")
		d.names = append(d.names, name)
		if nested.Bool(v, "storage") {
			d.storage = name
		}
		one := &version{isServed: nested.Bool(v, "served"), hasScale: nested.Map(v, "subresources", "scale") != nil}
		if schema := nested.Map(v, "schema", "openAPIV3Schema"); schema != nil && len(structural.ValidateSchema(schema, nil)) == 0 {
			one.schema = structural.Compile(schema, rules)
		}
		d.versions[name] = one
	}
	return d
}

// setDefaults sets the API server's defaults of a definition that it has not returned.
func setDefaults(definition map[string]any) {
	names := nested.EnsureMap(definition, "spec", "names")
	kind := nested.String(names, "kind")
	for name, value := range map[string]string{"singular": strings.ToLower(kind), "listKind": kind + "List"} {
		if names[name] == nil {
			names[name] = value
		}
	}
	if nested.Map(definition, "spec", "conversion") == nil {
		nested.EnsureMap(definition, "spec")["conversion"] = map[string]any{"strategy": "None"}
	}
}

// served returns the served versions, the storage version first.
func (d *definition) served() []string {
	var served []string
	for _, name := range d.names {
		switch {
		case !d.versions[name].isServed:
		case name == d.storage:
			served = slices.Insert(served, 0, name)
		default:
			served = append(served, name)
		}
	}
	return served
}

// compareDefinitions adds the findings of the definition.
func (c *checker) compareDefinitions() {
	c.compareField(ScopeChanged, "spec", "scope")
	for _, name := range []string{"plural", "singular", "kind", "listKind", "shortNames", "categories"} {
		c.compareField(NamesChanged, "spec", "names", name)
	}
	stored := nested.Strings(c.old.content, "status", "storedVersions")
	for _, name := range c.old.names {
		isServed := c.old.versions[name].isServed
		now := c.new.versions[name]
		switch {
		case now == nil && slices.Contains(stored, name):
			c.definitionFinding(VersionRemoved, name, "spec.versions", "status.storedVersions has it: objects may be stored in it (migrate them first)")
		case now == nil && isServed:
			c.definitionFinding(VersionRemoved, name, "spec.versions", "it is served now: its clients will fail with 404 (stop serving it first)")
		case now == nil:
			c.definitionFinding(VersionRemoved, name, "spec.versions", "it is not served now")
		case isServed && !now.isServed:
			c.definitionFinding(VersionNotServed, name, "spec.versions", "its clients will fail with 404")
		}
	}
	if c.old.storage != c.new.storage {
		c.definitionFinding(StorageVersionChanged, c.new.storage, "spec.versions", "%s → %s: objects move with their next write (or with a migration)", c.old.storage, c.new.storage)
	}
	c.compareField(ConversionChanged, "spec", "conversion")
	c.compareField(PruningChanged, "spec", "preserveUnknownFields")
}

func (c *checker) compareField(kind Type, path ...string) {
	before := nested.Get[any](c.old.content, path...)
	after := nested.Get[any](c.new.content, path...)
	if !reflect.DeepEqual(before, after) && (!isAbsent(before) || !isAbsent(after)) {
		c.definitionFinding(kind, "", strings.Join(path, "."), "%s → %s", jsonText(before), jsonText(after))
	}
}

// isAbsent reports a value that equals an absent field.
func isAbsent(value any) bool { return value == nil || value == false }

// addNotChecked names what Check cannot find out.
func (c *checker) addNotChecked() {
	c.notChecked("admission webhooks, admission policies and quotas")
	if stored := nested.Strings(c.old.content, "status", "storedVersions"); len(stored) > 1 {
		c.notChecked("the schemas of the versions in which objects are stored (%s): all objects are checked as stored in %s (migrate them first)",
			strings.Join(stored, ", "), c.old.storage)
	}
	if len(c.old.served()) == 0 {
		c.notChecked("objects: no version is served now")
	} else if base := c.old.served()[0]; base != c.old.storage {
		c.notChecked("fields of the storage version %s that %s lacks: the storage version is not served", c.old.storage, base)
	}
	if c.new.hasWebhook {
		c.notChecked("the conversion webhook: it is not run, every version is checked as the server converts it now")
	}
	for _, name := range c.new.names {
		v := c.new.versions[name]
		if v.schema == nil {
			c.notChecked("objects in %s: its schema is not structural", name)
			continue
		}
		if !v.isServed {
			continue
		}
		if missing := v.schema.NotValidated(); missing != "" {
			c.notChecked("CEL rules of %s: %s", name, missing)
		}
		if v.hasScale {
			c.notChecked("the fields of the subresource scale of %s", name)
		}
		if c.hasWebhook() && (c.old.versions[name] == nil || !c.old.versions[name].isServed) {
			c.notChecked("objects in %s: it is not served now", name)
		}
	}
	for _, name := range c.old.names {
		if name == c.old.storage && c.new.versions[name] == nil {
			c.notChecked("pruning and defaults of stored objects: their version %s is removed", name)
		}
	}
}
