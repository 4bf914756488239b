package applyset

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/anykind/anykind/internal/builtingroup"
	"github.com/anykind/anykind/internal/managedfields"
	"github.com/anykind/anykind/unstructured"
)

// Difference says how a field of a live object differs from the applied field.
type Difference string

const (
	// Changed fields have a different value, or list items a different order.
	Changed Difference = "changed"
	// Missing fields do not exist.
	Missing Difference = "missing"
	// NotOwned fields have the value, but the set's manager does not own them: it has not applied them, or a manager that took the
	// field over wrote the same value.
	NotOwned Difference = "not owned"
	// Removed fields are owned by the set's manager and left the applied object. The next Apply removes them.
	Removed Difference = "removed"
)

// FieldDrift is a field with a [Difference].
type FieldDrift struct {
	// Field is the path of the field: .spec.template.spec.containers[name="web"].image
	Field      string
	Difference Difference
	// Manager owns the field now, by a write to Subresource ("" is the object itself) at Time. Manager is empty if nobody or only
	// the set's manager owns it.
	Manager, Subresource string
	Time                 time.Time
	// Want and Have are the values as JSON, empty for a missing field. Of a Secret's data they are empty, too, and of the annotation
	// of kubectl's client-side apply with the data.
	Want, Have string
}

// compare returns the differences between an object to apply and the live object. Without a difference, the apply would change
// nothing. It may report a difference for an equal object, for example if a default of the server is part of a list's key or the
// server stores a value in a different notation; the apply then finds nothing to change.
//
// Lists, keys of list items and atomic fields are recognized by the FieldsV1 of the manager, without a schema: see
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy.
func compare(want, live *unstructured.Object, manager string, hasStatus bool) []FieldDrift {
	c := &comparison{isSecret: isSecret(want), isBuiltin: builtingroup.Is(want.GroupVersionKind().Group)}
	owned := c.readManagers(live, manager, want.GetAPIVersion())
	c.fields(nil, owned, withoutServerFields(want.Object, hasStatus), withoutServerFields(live.Object, hasStatus))
	return c.drifts
}

type comparison struct {
	managers  []managedfields.Entry // all but the set's
	isSecret  bool
	isBuiltin bool
	drifts    []FieldDrift
}

// readManagers reads managedFields and returns the FieldsV1 that manager applied in a version, nil if it did not. Malformed
// managedFields have no managers, so that the object is applied.
func (c *comparison) readManagers(live *unstructured.Object, manager, apiVersion string) (owned map[string]any) {
	entries, err := managedfields.Read(live.Object)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		switch {
		case entry.Manager != manager || entry.Operation != managedfields.Apply || entry.Subresource != "":
			c.managers = append(c.managers, entry)
		case entry.APIVersion == apiVersion:
			owned = entry.Fields
		}
	}
	return owned
}

// withoutServerFields returns the fields of an object that an apply can set.
func withoutServerFields(obj map[string]any, hasStatus bool) map[string]any {
	fields := maps.Clone(obj)
	delete(fields, "apiVersion")
	delete(fields, "kind")
	if hasStatus {
		delete(fields, "status")
	}
	metadata, _ := obj["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, name := range []string{
		"name", "namespace", "creationTimestamp", "uid", "resourceVersion", "generation", "managedFields", "selfLink",
	} {
		delete(metadata, name)
	}
	fields["metadata"] = metadata
	return fields
}

// fields compares maps. path and owned are in the notation of FieldsV1.
func (c *comparison) fields(path []string, owned, want, have map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		step := "f:" + name
		child, isOwned := owned[step].(map[string]any)
		value, exists := have[name]
		c.value(join(path, step), child, isOwned, want[name], value, exists)
	}
	for _, step := range slices.Sorted(maps.Keys(owned)) {
		name, isField := strings.CutPrefix(step, "f:")
		if _, isWanted := want[name]; isField && !isWanted && (len(path) > 0 || name != "metadata") {
			c.add(join(path, step), Removed, nil, have[name])
		}
	}
}

func join(path []string, step string) []string { return append(slices.Clip(path), step) }

func (c *comparison) value(path []string, owned map[string]any, isOwned bool, want, have any, exists bool) {
	isGranular := managedfields.HasElements(owned) || c.isGranular(path) || isMetadata(path)
	wantMap, isMap := want.(map[string]any)
	haveMap, hasMap := have.(map[string]any)
	wantList, isList := want.([]any)
	haveList, hasList := have.([]any)
	switch {
	case want == nil && !exists, isEmpty(want) && !exists && path[0] == "f:metadata":
	case !exists:
		c.add(path, Missing, want, nil)
	case !isOwned && want != nil && isEmpty(want) && !isMetadata(path):
		c.add(path, NotOwned, want, have) // of an empty map or list, a manager owns the field itself
	case isMap && hasMap && isGranular:
		c.fields(path, owned, wantMap, haveMap)
	case isList && hasList && isGranular:
		c.items(path, owned, wantList, haveList)
	case !isOwned && equal(want, have):
		c.add(path, NotOwned, want, have)
	case !isOwned:
		c.add(path, Changed, want, have)
	case isMap && hasMap && len(wantMap) == 0 && c.isBuiltin && !isAtomic(path[len(path)-1]):
		// A struct whose fields have defaults, such as a strategy.
	case !c.isEqual(path, want, have):
		c.add(path, Changed, want, have)
	}
}

// isAtomic reports whether a map in a built-in kind is owned as a whole. Without a schema it knows maps by the name of their field.
func isAtomic(step string) bool {
	switch name := strings.TrimPrefix(step, "f:"); name {
	case "data", "dataSource", "involvedObject", "matchConstraints", "matchResources", "nodeTopology", "paramKind", "parameters", "port",
		"preference", "regarding", "related", "required", "requiredDuringSchedulingIgnoredDuringExecution", "resource":
		return true
	default:
		return strings.HasSuffix(name, "Ref") || strings.HasSuffix(strings.ToLower(name), "selector")
	}
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	default:
		return value == nil
	}
}

// isGranular reports whether a different manager owns a part of the field.
func (c *comparison) isGranular(path []string) bool {
	return slices.ContainsFunc(c.managers, func(entry managedfields.Entry) bool {
		fields, _ := descend(entry.Fields, path)
		return managedfields.HasElements(fields)
	})
}

func descend(fields map[string]any, path []string) (_ map[string]any, found bool) {
	for _, step := range path {
		if fields, found = fields[step].(map[string]any); !found {
			return nil, false
		}
	}
	return fields, true
}

// items compares lists of type map or set, whose owned items have a key or value in FieldsV1.
func (c *comparison) items(path []string, owned map[string]any, want, have []any) {
	remaining := map[string]map[string]any{}
	for step := range owned {
		if key := itemKey(step); key != nil {
			remaining[step] = key
		}
	}
	last := -1
	inOrder := true
	for _, item := range want {
		step := findStep(remaining, item)
		if step == "" {
			c.unownedItem(path, owned, item, have)
			continue
		}
		index := slices.IndexFunc(have, func(candidate any) bool { return hasKey(candidate, remaining[step], false) })
		delete(remaining, step)
		if index < 0 {
			c.add(join(path, step), Missing, item, nil)
			continue
		}
		inOrder = inOrder && index > last
		last = index
		if child, _ := owned[step].(map[string]any); !isSetStep(step) {
			c.value(join(path, step), child, true, item, have[index], true)
		}
	}
	for _, step := range slices.Sorted(maps.Keys(remaining)) {
		c.add(join(path, step), Removed, nil, nil)
	}
	if !inOrder {
		c.add(path, Changed, want, have)
	}
}

// unownedItem adds the difference of an item that the set's manager does not own.
func (c *comparison) unownedItem(path []string, owned map[string]any, item any, have []any) {
	step := "v:" + encode(item)
	key := map[string]any{setValue: item}
	if fields, isMap := item.(map[string]any); isMap {
		key = map[string]any{}
		for sibling := range c.siblings(path, owned) {
			for name := range itemKey(sibling) {
				if value, found := fields[name]; found {
					key[name] = value
				}
			}
		}
		step = "k:" + encode(key)
	}
	index := slices.IndexFunc(have, func(candidate any) bool { return hasKey(candidate, key, false) })
	switch {
	case index < 0 || len(key) == 0:
		c.add(join(path, step), Missing, item, nil)
	case equal(item, have[index]):
		c.add(join(path, step), NotOwned, item, have[index])
	default:
		c.add(join(path, step), Changed, item, have[index])
	}
}

// siblings returns the owned items of a list, by any manager.
func (c *comparison) siblings(path []string, owned map[string]any) map[string]any {
	all := maps.Clone(owned)
	if all == nil {
		all = map[string]any{}
	}
	for _, entry := range c.managers {
		fields, _ := descend(entry.Fields, path)
		maps.Copy(all, fields)
	}
	return all
}

// setValue is the name in a key for the value of a set's item.
const setValue = ""

func isSetStep(step string) bool { return strings.HasPrefix(step, "v:") }

// itemKey decodes the step of a list item: k:{"name":"web"} or v:"web". It returns nil for any other step.
func itemKey(step string) map[string]any {
	kind, text, _ := strings.Cut(step, ":")
	if kind != "k" && kind != "v" {
		return nil
	}
	decoded := managedfields.Decode(text)
	if kind == "v" && decoded != nil {
		return map[string]any{setValue: decoded}
	}
	key, _ := decoded.(map[string]any)
	return key
}

// findStep returns the only step whose key an item has, or "". A field of the key that the item lacks may have a default.
func findStep(keys map[string]map[string]any, item any) (found string) {
	for step, key := range keys {
		switch {
		case hasKey(item, key, false):
			return step
		case !hasKey(item, key, true):
		case found != "":
			return ""
		default:
			found = step
		}
	}
	return found
}

func hasKey(item any, key map[string]any, allowDefaults bool) bool {
	if value, isSet := key[setValue]; isSet {
		return equal(item, value)
	}
	fields, isMap := item.(map[string]any)
	present := 0
	for name, value := range key {
		field, found := fields[name]
		switch {
		case found && equal(field, value):
			present++
		case found || !allowDefaults:
			return false
		}
	}
	return isMap && present > 0
}

// isEqual compares values of an owned field as a whole. In built-in kinds, have may have defaults of the API server in addition, and
// quantities in a different notation.
func (c *comparison) isEqual(path []string, want, have any) bool {
	if equal(want, have) || !c.isBuiltin {
		return equal(want, have)
	}
	var names []string
	for _, step := range path {
		if name, isField := strings.CutPrefix(step, "f:"); isField {
			names = append(names, name)
		}
	}
	return equalWithDefaults(names, want, have)
}

func equalWithDefaults(path []string, want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, isMap := have.(map[string]any)
		for name, value := range want {
			current, exists := have[name]
			if !exists || !equalWithDefaults(join(path, name), value, current) {
				return false
			}
		}
		for name, value := range have {
			if _, isWanted := want[name]; !isWanted && !isDefault(name, value, want) {
				return false
			}
		}
		return isMap
	case []any:
		have, isList := have.([]any)
		return isList && slices.EqualFunc(want, have, func(a, b any) bool { return equalWithDefaults(path, a, b) })
	default:
		return equal(want, have) || isQuantity(path) && equalQuantities(want, have)
	}
}

// isDefault reports whether the API server sets a field to value if it is missing. It lists the defaults within fields that are owned
// as a whole: ports, subjects and roleRef of RBAC, volumeClaimTemplates, fieldRef, resourceFieldRef and serviceAccountToken.
func isDefault(name string, value any, siblings map[string]any) bool {
	switch name {
	case "protocol":
		return value == "TCP"
	case "apiGroup":
		return value == "rbac.authorization.k8s.io" && siblings["kind"] != "ServiceAccount"
	case "apiVersion":
		return value == "v1"
	case "kind":
		return value == "PersistentVolumeClaim"
	case "volumeMode":
		return value == "Filesystem"
	case "status":
		return equal(value, map[string]any{"phase": "Pending"})
	case "divisor":
		return value == "0"
	case "expirationSeconds":
		return value == int64(3600)
	default:
		return false
	}
}

// isQuantity reports whether a field of a built-in kind is a resource.Quantity.
func isQuantity(path []string) bool {
	if len(path) < 2 || path[0] == "data" {
		return false
	}
	switch path[len(path)-2] { // maps with names of users
	case "annotations", "data", "labels", "matchLabels", "nodeSelector", "options", "parameters", "selector", "volumeAttributes":
		return false
	}
	switch path[len(path)-1] {
	case "sizeLimit", "divisor", "averageValue":
		return true
	}
	switch path[len(path)-2] {
	case "limits", "requests", "hard", "capacity", "default", "defaultRequest", "min", "max", "podFixed", "overhead":
		return true
	default:
		return false
	}
}

func equalQuantities(want, have any) bool {
	a, errA := resource.ParseQuantity(strings.Trim(encode(want), `"`))
	b, errB := resource.ParseQuantity(strings.Trim(encode(have), `"`))
	return errA == nil && errB == nil && a.Cmp(b) == 0
}

func isMetadata(path []string) bool { return len(path) == 1 && path[0] == "f:metadata" }

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

// add records a difference. The owner is the newest other manager of the field, or of the next field above it with an owner.
func (c *comparison) add(path []string, difference Difference, want, have any) {
	drift := FieldDrift{Field: fieldPath(path), Difference: difference}
	if !c.isSecret || path[0] == "f:metadata" {
		drift.Want = encode(want)
		drift.Have = encode(have)
	}
	if c.isSecret && strings.Contains(drift.Field+drift.Want+drift.Have, lastAppliedAnnotation) { // it has the data, too
		drift.Want = ""
		drift.Have = ""
	}
	for _, entry := range c.managers {
		at, _ := time.Parse(time.RFC3339, entry.Time) // zero if unknown
		if _, owns := descend(entry.Fields, path); owns && !at.Before(drift.Time) {
			drift.Manager = entry.Manager
			drift.Subresource = entry.Subresource
			drift.Time = at
		}
	}
	c.drifts = append(c.drifts, drift)
}

// encode returns a value as JSON with unescaped <, > and &, like the server's field paths, and "" for nil.
func encode(value any) string {
	if value == nil {
		return ""
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return "" // not a value of an object
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func isSecret(obj *unstructured.Object) bool {
	return obj.GetAPIVersion() == "v1" && obj.GetKind() == "Secret"
}
