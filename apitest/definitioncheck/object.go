package definitioncheck

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkObject checks an object that was listed in a version.
func (c *checker) checkObject(ctx context.Context, listed string, obj map[string]any) {
	isStored := !c.hasWebhook() || listed == c.old.storage
	stored := obj
	if v := c.new.versions[listed]; isStored && v != nil && v.schema != nil {
		stored = runtime.DeepCopyJSON(obj)
		c.new.decodeStored(listed, stored)
	}
	for _, name := range c.new.names {
		v := c.new.versions[name]
		if !v.isServed || v.schema == nil || c.hasWebhook() && name != listed {
			continue
		}
		before := c.new.in(name, obj)
		if old := c.old.versions[name]; name != listed && old != nil && old.schema != nil {
			c.old.prune(name, before)
		}
		view := c.new.in(name, stored)
		if name != listed || !isStored {
			c.new.prune(name, view)
		}
		c.compare(name, before, view)
		if c.checkWrites(ctx, name, view) {
			c.compareUpdates(name, objectForms{obj, stored, before, view})
		}
	}
}

// compare adds the lost and the new fields of an object.
func (c *checker) compare(version string, before, view map[string]any) {
	eachMissing("", content(before), content(view), func(path string, _ any) { c.findings.add(FieldLost, version, path, "") })
	eachMissing("", content(view), content(before), func(path string, value any) {
		c.findings.add(FieldDefaulted, version, path, jsonText(value))
	})
}

// checkWrites checks a creation of the object and an update without a change.
func (c *checker) checkWrites(ctx context.Context, version string, view map[string]any) (isUpdatable bool) {
	written := c.new.decode(version, view)
	c.addErrors(ctx, Invalid, version, written, nil)
	return !c.addErrors(ctx, NotUpdatable, version, written, view)
}

// objectForms are the forms of an object: as listed, as stored under the new definition, and in a version under both definitions.
type objectForms struct{ listed, stored, before, view map[string]any }

// compareUpdates adds the fields of the stored object that an update in a version removes, unless the live definition removes them,
// too.
func (c *checker) compareUpdates(version string, s objectForms) {
	if c.hasWebhook() && version != c.new.storage {
		return
	}
	lost := map[string]bool{}
	if c.old.canUpdate(version) {
		eachMissing("", content(s.listed), content(c.old.update(version, s.before)), func(path string, _ any) { lost[path] = true })
	}
	if !c.new.canUpdate(version) {
		return
	}
	eachMissing("", content(s.stored), content(c.new.update(version, s.view)), func(path string, _ any) {
		if !lost[path] {
			c.findings.add(FieldLostOnUpdate, version, path, "")
		}
	})
}

// addErrors adds the errors of a write, and reports whether it is rejected. old is nil for a creation.
func (c *checker) addErrors(ctx context.Context, kind Type, version string, obj, old map[string]any) (isRejected bool) {
	schema := c.new.versions[version].schema
	errs := schema.Validate(obj, old)
	errs = append(errs, schema.ValidateRules(ctx, errs, obj, old)...)
	for _, err := range errs {
		c.findings.add(kind, version, err.Field, errorText(err))
	}
	return len(errs) > 0
}

// errorText returns the type and the detail of an error, without the value.
func errorText(err *field.Error) string {
	if err.Detail == "" {
		return err.Type.String()
	}
	return err.Type.String() + ": " + err.Detail
}

// content returns the fields of an object besides its type and metadata.
func content(obj map[string]any) map[string]any {
	fields := make(map[string]any, len(obj))
	for name, value := range obj {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			fields[name] = value
		}
	}
	return fields
}

// eachMissing calls found for each field of a that b lacks, but not for fields below it.
func eachMissing(path string, a, b any, found func(path string, value any)) {
	switch a := a.(type) {
	case map[string]any:
		b, _ := b.(map[string]any)
		for name, value := range a {
			at := name
			if path != "" {
				at = path + "." + name
			}
			if other, exists := b[name]; exists {
				eachMissing(at, value, other, found)
			} else {
				found(at, value)
			}
		}
	case []any:
		b, _ := b.([]any)
		for i, value := range a {
			at := fmt.Sprintf("%s[%d]", path, i)
			if i < len(b) {
				eachMissing(at, value, b[i], found)
			} else {
				found(at, value)
			}
		}
	}
}

func jsonText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
