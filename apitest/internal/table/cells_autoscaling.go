package table

import (
	"encoding/json"
	"fmt"
	"strings"
)

func printHorizontalPodAutoscaler(o object) []any {
	minimum := "<unset>"
	if o.has("spec", "minReplicas") {
		minimum = fmt.Sprint(o.number("spec", "minReplicas"))
	}
	return []any{
		o.name(), o.text("spec", "scaleTargetRef", "kind") + "/" + o.text("spec", "scaleTargetRef", "name"), scalingMetrics(o), minimum,
		o.number("spec", "maxReplicas"), o.number("status", "currentReplicas"), o.age(),
	}
}

func scalingMetrics(o object) string {
	const limit = 2
	if o.text("apiVersion") == "autoscaling/v1" {
		o = withMetrics(o)
	}
	metrics := o.list("spec", "metrics")
	current := o.list("status", "currentMetrics")
	var all []string
	for i, metric := range metrics {
		status := object{}
		if i < len(current) {
			status = current[i]
		}
		all = append(all, scalingMetric(metric, status))
	}
	switch {
	case len(all) == 0:
		return "<none>"
	case len(all) > limit:
		return fmt.Sprintf("%s + %d more...", strings.Join(all[:limit], ", "), len(all)-limit)
	}
	return strings.Join(all, ", ")
}

func scalingMetric(metric, status object) string {
	var field string
	isResource := false
	switch metric.text("type") {
	case "External":
		field = "external"
	case "Pods":
		field = "pods"
	case "Object":
		field = "object"
	case "Resource":
		field = "resource"
		isResource = true
	case "ContainerResource":
		field = "containerResource"
		isResource = true
	default:
		return "<unknown type>"
	}
	target := metric.at(field, "target")
	current := status.at(field, "current")
	has := status.has(field)
	switch {
	case isResource && target.has("averageValue"):
		return metric.text(field, "name") + ": " + quantityIf(has, current, "averageValue") + "/" + target.quantity("averageValue")
	case isResource:
		return metric.text(field, "name") + ": " + utilization("<unknown>", current) + "/" + utilization("<auto>", target)
	case field == "pods":
		return quantityIf(has, current, "averageValue") + "/" + target.quantity("averageValue")
	case target.has("averageValue"):
		return quantityIf(current.has("averageValue"), current, "averageValue") + "/" + target.quantity("averageValue") + " (avg)"
	}
	return quantityIf(has, current, "value") + "/" + target.quantity("value")
}

func quantityIf(known bool, o object, field string) string {
	if !known {
		return "<unknown>"
	}
	return o.quantity(field)
}

func utilization(missing string, o object) string {
	if !o.has("averageUtilization") {
		return missing
	}
	return fmt.Sprintf("%d%%", o.number("averageUtilization"))
}

// Annotations of autoscaling/v1 for fields of autoscaling/v2.
const (
	metricsAnnotation         = "autoscaling.alpha.kubernetes.io/metrics"
	currentMetricsAnnotation  = "autoscaling.alpha.kubernetes.io/current-metrics"
	scalingConditions         = "autoscaling.alpha.kubernetes.io/conditions"
	scalingBehaviorAnnotation = "autoscaling.alpha.kubernetes.io/behavior"
	defaultCPUUtilization     = 80
)

// withMetrics converts the metrics of an autoscaling/v1 object to autoscaling/v2.
func withMetrics(o object) object {
	cpu := func(field string, value any) map[string]any {
		return map[string]any{"type": "Resource", "resource": map[string]any{"name": "cpu", field: map[string]any{"averageUtilization": value}}}
	}
	metrics := o.annotatedMetrics(metricsAnnotation)
	current := o.annotatedMetrics(currentMetricsAnnotation)
	if target := o.value("spec", "targetCPUUtilizationPercentage"); target != nil {
		metrics = append(metrics, cpu("target", target))
	}
	if len(metrics) == 0 {
		metrics = append(metrics, cpu("target", int64(defaultCPUUtilization)))
	}
	if value := o.value("status", "currentCPUUtilizationPercentage"); value != nil && current == nil {
		current = append(current, cpu("current", value))
	}
	return object{map[string]any{
		"spec": map[string]any{"metrics": metrics}, "status": map[string]any{"currentMetrics": current},
	}, o.now}
}

// annotatedMetrics decodes the metrics of an annotation. Its field names differ from autoscaling/v2.
func (o object) annotatedMetrics(annotation string) []any {
	var old []struct {
		Type                                                string
		Resource, ContainerResource, Pods, Object, External map[string]any
	}
	if json.Unmarshal([]byte(o.text("metadata", "annotations", annotation)), &old) != nil {
		return nil
	}
	var metrics []any
	for _, metric := range old {
		converted := map[string]any{"type": metric.Type}
		for field, source := range map[string]map[string]any{
			"resource": metric.Resource, "containerResource": metric.ContainerResource, "pods": metric.Pods, "object": metric.Object,
			"external": metric.External,
		} {
			if source != nil {
				converted[field] = convertMetric(source)
			}
		}
		metrics = append(metrics, converted)
	}
	return metrics
}

func convertMetric(source map[string]any) map[string]any {
	target := map[string]any{}
	current := map[string]any{}
	for from, to := range map[string]string{
		"AverageUtilization": "averageUtilization", "AverageValue": "averageValue", "Value": "value",
	} {
		if value, has := source["target"+from]; has {
			target[to] = value
		}
		if value, has := source["current"+from]; has {
			current[to] = value
		}
	}
	if value, has := source["averageValue"]; has { // of an Object metric
		target["averageValue"] = value
	}
	return map[string]any{"name": source["name"], "target": target, "current": current}
}
