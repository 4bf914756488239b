package readiness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// condition is an entry of a list of conditions.
type condition struct {
	name, status, reason, message string
	observed                      int64 // generation
	hasObserved                   bool
	list                          string // the path of its list, "" for status.conditions
}

// conditions returns the entries of status.conditions.
func (o *object) conditions() []condition {
	if !o.hasConditions {
		o.hasConditions = true
		o.allConditions = o.parseConditions("status.conditions", o.list("status", "conditions"))
	}
	return o.allConditions
}

// parseConditions returns the readable entries of the list at a path.
func (o *object) parseConditions(list string, items []any) (all []condition) {
	for i, item := range items {
		entry, ok := item.(map[string]any)
		if !ok {
			o.fail(list, fmt.Errorf(".%s[%d]: is %T, not an object", list, i, item))
			continue
		}
		text := func(name string) string {
			value, ok := entry[name].(string)
			if !ok && entry[name] != nil {
				o.fail(list, fmt.Errorf(".%s[%d].%s: is %T, not string", list, i, name, entry[name]))
			}
			switch entry[name] {
			case true:
				return "True"
			case false:
				return "False"
			default:
				return value
			}
		}
		c := condition{name: text("type"), status: text("status"), reason: text("reason"), message: text("message"), list: list}
		c.observed, c.hasObserved = entry["observedGeneration"].(int64)
		all = append(all, c)
	}
	return all
}

// condition returns the first condition of the type in status.conditions.
func (o *object) condition(name string) (condition, bool) {
	return findCondition(o.conditions(), name)
}

func findCondition(conditions []condition, name string) (condition, bool) {
	for _, c := range conditions {
		if c.name == name {
			return c, true
		}
	}
	return condition{name: name}, false
}

// behind returns InProgress if c.observedGeneration < metadata.generation, or the zero Result.
func (o *object) behind(c condition) Result {
	if !c.hasObserved {
		return Result{}
	}
	generation := o.count(0, "metadata", "generation")
	if c.observed >= generation {
		return Result{}
	}
	message := fmt.Sprintf("condition %s is of generation %d, the object is at %d", c.name, c.observed, generation)
	return Result{InProgress, c.path("observedGeneration"), message}
}

// path returns the path of a field of the condition.
func (c condition) path(field string) string {
	return elementPath(cmp.Or(c.list, "status.conditions"), "type", c.name, field)
}

// result returns the status with the condition as its reason.
func (c condition) result(status Status) Result {
	return Result{status, c.path("status"), explained(fmt.Sprintf("condition %s is %s", c.name, cmp.Or(c.status, "empty")), c.reason, c.message)}
}

// explained joins the non-empty parts: a fact and its explanations.
func explained(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// kstatusConditions applies kstatus's conditions Reconciling and Stalled. It returns the zero Result if neither is True.
func (o *object) kstatusConditions() Result {
	for _, c := range o.conditions() {
		switch {
		case c.status != "True":
		case c.name == "Reconciling":
			return cmp.Or(o.behind(c), c.result(InProgress))
		case c.name == "Stalled":
			return cmp.Or(o.behind(c), c.result(Failed))
		}
	}
	return Result{}
}

// positiveTypes returns the types of conditions that are True in a current object of any kind. Causes are in front of their
// effects, and decide.
func positiveTypes() []string {
	return []string{
		"Accepted", "Valid", "ResolvedRefs", "Programmed", "Synced", "Reconciled", "Installed", "Established", "Healthy", "Available", "Ready",
	}
}

// positiveConditions returns the first positive condition that is not True, or Current with the last condition. Without positive
// conditions it returns the zero Result.
func (o *object) positiveConditions() Result {
	var current Result
	for _, conditions := range append(o.nestedConditions(), o.conditions()) {
		for _, name := range positiveTypes() {
			c, found := findCondition(conditions, name)
			if !found {
				continue
			}
			if unmet := o.behind(c); unmet != (Result{}) {
				return unmet
			}
			if c.status != "True" {
				return c.result(InProgress)
			}
			current = c.result(Current)
		}
	}
	return cmp.Or(o.noParent(), current)
}

// nestedConditions returns the conditions of each parent of a route, ancestor of a policy, and listener of a gateway, as the
// Gateway API has them.
func (o *object) nestedConditions() (all [][]condition) {
	for _, list := range []string{"parents", "ancestors", "listeners"} {
		value, _, _ := o.value("status", list) // of any type outside of the Gateway API
		items, _ := value.([]any)
		for i, item := range items {
			entry, _ := item.(map[string]any)
			if conditions, ok := entry["conditions"].([]any); ok {
				all = append(all, o.parseConditions(fmt.Sprintf("status.%s[%d].conditions", list, i), conditions))
			}
		}
	}
	return all
}

// noParent returns InProgress for a route of the Gateway API whose parents are all silent.
func (o *object) noParent() Result {
	value, _, _ := o.value("status", "parents")
	parents, ok := value.([]any)
	value, _, _ = o.value("spec", "parentRefs")
	refs, _ := value.([]any)
	if !ok || len(parents) > 0 || len(refs) == 0 {
		return Result{}
	}
	return Result{InProgress, "status.parents", "no parent has reported yet"}
}
