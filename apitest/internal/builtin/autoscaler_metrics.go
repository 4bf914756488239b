package builtin

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// metricV1 is a metric of v1 of an autoscaler spec or status. The order of the fields is their order in JSON.
type metricV1 struct {
	Type              any       `json:"type"`
	Object            *sourceV1 `json:"object,omitempty"`
	Pods              *sourceV1 `json:"pods,omitempty"`
	Resource          *sourceV1 `json:"resource,omitempty"`
	ContainerResource *sourceV1 `json:"containerResource,omitempty"`
	External          *sourceV1 `json:"external,omitempty"`
}

// sourceV1 has the fields of all metric sources. nil fields are omitted.
type sourceV1 struct {
	Target                    *referenceV1          `json:"target,omitempty"`
	Name                      any                   `json:"name,omitempty"`
	MetricName                any                   `json:"metricName,omitempty"`
	MetricSelector            *metav1.LabelSelector `json:"metricSelector,omitempty"`
	TargetValue               any                   `json:"targetValue,omitempty"`
	TargetAverageUtilization  any                   `json:"targetAverageUtilization,omitempty"`
	TargetAverageValue        any                   `json:"targetAverageValue,omitempty"`
	CurrentValue              any                   `json:"currentValue,omitempty"`
	CurrentAverageUtilization any                   `json:"currentAverageUtilization,omitempty"`
	CurrentAverageValue       any                   `json:"currentAverageValue,omitempty"`
	Container                 any                   `json:"container,omitempty"`
	Selector                  *metav1.LabelSelector `json:"selector,omitempty"`
	AverageValue              any                   `json:"averageValue,omitempty"`
}

type referenceV1 struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	APIVersion string `json:"apiVersion,omitempty"`
}

// conditionV1 is a condition in the annotation.
type conditionV1 struct {
	Type               any `json:"type"`
	Status             any `json:"status"`
	LastTransitionTime any `json:"lastTransitionTime"`
	Reason             any `json:"reason,omitempty"`
	Message            any `json:"message,omitempty"`
}

// behaviorV1 is a behavior in the annotation, encoded with Go field names.
type behaviorV1 struct{ ScaleUp, ScaleDown *rulesV1 }

type rulesV1 struct {
	StabilizationWindowSeconds, SelectPolicy any
	Policies                                 []policyV1
	Tolerance                                any
}

type policyV1 struct{ Type, Value, PeriodSeconds any }

func rulesToV1(rules object) *rulesV1 {
	if rules == nil {
		return nil
	}
	out := &rulesV1{
		StabilizationWindowSeconds: rules["stabilizationWindowSeconds"], SelectPolicy: rules["selectPolicy"], Tolerance: rules["tolerance"],
	}
	for _, policy := range nested.Maps(rules, "policies") {
		out.Policies = append(out.Policies, policyV1{policy["type"], policy["value"], policy["periodSeconds"]})
	}
	return out
}

func conditionsToV1(conditions []object) (out []conditionV1) {
	for _, c := range conditions {
		out = append(out, conditionV1{c["type"], c["status"], c["lastTransitionTime"], c["reason"], c["message"]})
	}
	return out
}

// metricToV1 converts a metric, and its source with convert.
func metricToV1(metric object, convert func(kind string, source object) *sourceV1) metricV1 {
	source := func(kind string) *sourceV1 {
		if source := nested.Map(metric, kind); source != nil {
			return convert(kind, source)
		}
		return nil
	}
	return metricV1{
		Type: metric["type"], Object: source("object"), Pods: source("pods"), Resource: source("resource"),
		ContainerResource: source("containerResource"), External: source("external"),
	}
}

// newSourceV1 returns a source with the common fields of its target and current value.
func newSourceV1(kind string, source object) *sourceV1 {
	out := &sourceV1{Name: source["name"], Container: source["container"], MetricName: nested.Map(source, "metric")["name"]}
	var selector *metav1.LabelSelector
	if given := nested.Map(source, "metric", "selector"); given != nil {
		selector = &metav1.LabelSelector{}
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(given, selector)
	}
	if kind == "external" {
		out.MetricSelector = selector
	} else {
		out.Selector = selector
	}
	if kind == "object" {
		described := nested.Map(source, "describedObject")
		out.Target = &referenceV1{nested.String(described, "kind"), nested.String(described, "name"), nested.String(described, "apiVersion")}
	}
	return out
}

func sourceToV1(kind string, source object) *sourceV1 {
	out := newSourceV1(kind, source)
	target := nested.Map(source, "target")
	switch kind {
	case "object":
		out.TargetValue = orZero(target["value"])
		out.AverageValue = target["averageValue"]
	case "pods":
		out.TargetAverageValue = orZero(target["averageValue"])
	case "external":
		out.TargetValue = target["value"]
		out.TargetAverageValue = target["averageValue"]
	default:
		out.TargetAverageUtilization = target["averageUtilization"]
		out.TargetAverageValue = target["averageValue"]
	}
	return out
}

func statusToV1(kind string, source object) *sourceV1 {
	out := newSourceV1(kind, source)
	current := nested.Map(source, "current")
	switch kind {
	case "object":
		out.CurrentValue = orZero(current["value"])
		out.AverageValue = current["averageValue"]
	case "pods":
		out.CurrentAverageValue = orZero(current["averageValue"])
	case "external":
		out.CurrentValue = orZero(current["value"])
		out.CurrentAverageValue = current["averageValue"]
	default:
		out.CurrentAverageUtilization = current["averageUtilization"]
		out.CurrentAverageValue = orZero(current["averageValue"])
	}
	return out
}

// metricToV2 converts a metric of v1, and its source with convert.
func metricToV2(metric object, convert func(kind string, source, out object)) object {
	converted := object{"type": metric["type"]}
	for _, kind := range []string{"object", "pods", "resource", "containerResource", "external"} {
		source := nested.Map(metric, kind)
		if source == nil {
			continue
		}
		out := object{"name": source["name"], "container": source["container"]}
		if kind == "object" || kind == "pods" || kind == "external" {
			selector := source["selector"]
			if kind == "external" {
				selector = source["metricSelector"]
			}
			out = object{"metric": withoutNil(object{"name": source["metricName"], "selector": selector})}
		}
		if kind == "object" {
			out["describedObject"] = source["target"]
		}
		convert(kind, source, out)
		converted[kind] = withoutNil(out)
	}
	return converted
}

func sourceToV2(kind string, source, out object) {
	var target object
	switch kind {
	case "object":
		target = object{"type": "Value", "value": source["targetValue"], "averageValue": source["averageValue"]}
		if source["averageValue"] != nil {
			target["type"] = "AverageValue"
			if target["value"] == "0" {
				target["value"] = nil
			}
		}
	case "pods":
		target = object{"type": "AverageValue", "averageValue": source["targetAverageValue"]}
	case "external":
		target = object{"type": "Value", "value": source["targetValue"], "averageValue": source["targetAverageValue"]}
		if source["targetValue"] == nil {
			target["type"] = "AverageValue"
		}
	default:
		target = object{"type": "Utilization", "averageUtilization": source["targetAverageUtilization"], "averageValue": source["targetAverageValue"]}
		if source["targetAverageUtilization"] == nil {
			target["type"] = "AverageValue"
		}
	}
	out["target"] = withoutNil(target)
}

func statusToV2(kind string, source, out object) {
	current := object{"averageValue": source["currentAverageValue"]}
	switch kind {
	case "object":
		current = object{"value": source["currentValue"], "averageValue": source["averageValue"]}
	case "external":
		current["value"] = source["currentValue"]
	case "resource", "containerResource":
		current["averageUtilization"] = source["currentAverageUtilization"]
	}
	out["current"] = withoutNil(current)
}
