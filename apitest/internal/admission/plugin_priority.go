package admission

import (
	"fmt"

	"github.com/anykind/anykind/apitest/internal/nested"
)

const (
	schedulingGroup      = "scheduling.k8s.io"
	preemptLowerPriority = "PreemptLowerPriority"
)

// systemPriorities are the initial PriorityClasses of an API server. They are not stored here.
var systemPriorities = map[string]int64{"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}

// setPriority sets the priority and preemptionPolicy of a pod from its PriorityClass, or from the default class.
func (r *pluginRequest) setPriority() error {
	spec := nested.EnsureMap(r.Object, "spec")
	priority, policy, err := r.priorityOf(spec)
	if err != nil {
		return err
	}
	if given, ok := spec["priority"].(int64); ok && given != priority {
		return fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", given, priority)
	}
	spec["priority"] = priority
	if given, ok := spec["preemptionPolicy"].(string); ok && given != policy {
		return fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", given, policy)
	}
	spec["preemptionPolicy"] = policy
	return nil
}

func (r *pluginRequest) priorityOf(spec object) (value int64, policy string, err error) {
	name := nested.String(spec, "priorityClassName")
	class := r.find(schedulingGroup, "priorityclasses", name)
	switch {
	case name == "":
		if class = r.defaultPriority(); class == nil {
			return 0, preemptLowerPriority, nil
		}
		spec["priorityClassName"] = nested.String(class, "metadata", "name")
	case class == nil && systemPriorities[name] != 0:
		return systemPriorities[name], preemptLowerPriority, nil
	case class == nil:
		return 0, "", fmt.Errorf("no PriorityClass with name %v was found", name)
	}
	value = nested.Int64(class, "value")
	return value, nested.String(class, "preemptionPolicy"), nil
}

// defaultPriority returns the default class, the lowest if there are several.
func (r *pluginRequest) defaultPriority() (lowest object) {
	for _, class := range r.list(schedulingGroup, "priorityclasses", "") {
		if class["globalDefault"] != true {
			continue
		}
		value := nested.Int64(class, "value")
		if known := nested.Int64(lowest, "value"); lowest == nil || value < known {
			lowest = class
		}
	}
	return lowest
}

// checkDefaultPriority rejects a second default class.
func (r *pluginRequest) checkDefaultPriority() error {
	if r.Object["globalDefault"] != true {
		return nil
	}
	other := nested.String(r.defaultPriority(), "metadata", "name")
	if other != "" && (r.OldObject == nil || other != nested.String(r.Object, "metadata", "name")) {
		return fmt.Errorf("PriorityClass %v is already marked as default. Only one default can exist", other)
	}
	return nil
}
