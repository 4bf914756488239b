package builtin

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// HorizontalPodAutoscalers are stored in version v2. v1 has a field for the CPU utilization only. Other fields of v2 are in
// annotations of v1, as JSON of v1-specific types.

const (
	autoscalingGroup    = "autoscaling"
	autoscalerPrefix    = "autoscaling.alpha.kubernetes.io/"
	metricsAnnotation   = autoscalerPrefix + "metrics"
	currentAnnotation   = autoscalerPrefix + "current-metrics"
	conditionAnnotation = autoscalerPrefix + "conditions"
	behaviorAnnotation  = autoscalerPrefix + "behavior"
	defaultUtilization  = int64(80)
)

// Normalize has the effect of converting a defaulted object to the server's internal version and back.
func Normalize(kind schema.GroupVersionKind, obj map[string]any) {
	switch kind {
	case schema.GroupVersionKind{Group: autoscalingGroup, Version: "v1", Kind: "HorizontalPodAutoscaler"}:
		autoscalerToV2(obj)
		autoscalerToV1(obj)
	case schema.GroupVersionKind{Group: autoscalingGroup, Version: "v2", Kind: "HorizontalPodAutoscaler"}:
		dropAutoscalerAnnotations(obj)
	}
}

// dropAutoscalerAnnotations removes the conversion annotations of v1.
func dropAutoscalerAnnotations(obj object) {
	metadata := nested.Map(obj, "metadata")
	annotations := nested.Map(metadata, "annotations")
	for _, name := range []string{"metrics", "behavior", "scale-down-tolerance", "scale-up-tolerance", "current-metrics", "conditions"} {
		delete(annotations, autoscalerPrefix+name)
	}
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

func autoscalerToV1(obj object) {
	dropAutoscalerAnnotations(obj)
	annotate := func(name string, value any) {
		if content, err := json.Marshal(value); err == nil {
			nested.EnsureMap(obj, "metadata", "annotations")[name] = string(content)
		}
	}
	spec := nested.Map(obj, "spec")
	status := nested.Map(obj, "status")
	var others []metricV1
	for _, metric := range nested.Maps(spec, "metrics") {
		utilization := nested.Map(metric, "resource", "target")["averageUtilization"]
		switch {
		case metric["type"] != "Resource" || nested.Map(metric, "resource")["name"] != "cpu" || utilization == nil:
			others = append(others, metricToV1(metric, sourceToV1))
		case spec["targetCPUUtilizationPercentage"] == nil:
			spec["targetCPUUtilizationPercentage"] = utilization
		}
	}
	if len(others) > 0 {
		annotate(metricsAnnotation, others)
	}
	var current []metricV1
	for _, metric := range nested.Maps(status, "currentMetrics") {
		current = append(current, metricToV1(metric, statusToV1))
		if utilization := nested.Map(metric, "resource", "current")["averageUtilization"]; utilization != nil && nested.Map(metric, "resource")["name"] == "cpu" {
			status["currentCPUUtilizationPercentage"] = utilization
		}
	}
	if len(current) > 0 {
		annotate(currentAnnotation, current)
	}
	if behavior := nested.Map(spec, "behavior"); behavior != nil {
		annotate(behaviorAnnotation, behaviorV1{rulesToV1(nested.Map(behavior, "scaleUp")), rulesToV1(nested.Map(behavior, "scaleDown"))})
	}
	if conditions := conditionsToV1(nested.Maps(status, "conditions")); len(conditions) > 0 {
		annotate(conditionAnnotation, conditions)
	}
	delete(spec, "metrics")
	delete(spec, "behavior")
	if status != nil {
		delete(status, "currentMetrics")
		delete(status, "conditions")
		setIfAbsent(status, "currentReplicas", int64(0))
		setIfAbsent(status, "desiredReplicas", int64(0))
	}
}

func autoscalerToV2(obj object) {
	annotations := nested.Map(obj, "metadata", "annotations")
	spec := nested.EnsureMap(obj, "spec")
	var metrics []any
	for _, metric := range decoded[[]object](annotations, metricsAnnotation) {
		metrics = append(metrics, metricToV2(metric, sourceToV2))
	}
	utilization := spec["targetCPUUtilizationPercentage"]
	if utilization == nil && len(metrics) == 0 {
		utilization = defaultUtilization
	}
	if utilization != nil {
		metrics = append(metrics, object{"type": "Resource", "resource": object{
			"name": "cpu", "target": object{"type": "Utilization", "averageUtilization": utilization},
		}})
	}
	spec["metrics"] = metrics
	delete(spec, "targetCPUUtilizationPercentage")
	if behavior, _ := lowered(decoded[object](annotations, behaviorAnnotation)).(object); len(behavior) > 0 {
		spec["behavior"] = behavior
	}
	if status := nested.Map(obj, "status"); status != nil {
		autoscalerStatusToV2(status, annotations)
	}
	dropAutoscalerAnnotations(obj)
}

func autoscalerStatusToV2(status, annotations object) {
	var metrics []any
	if utilization := status["currentCPUUtilizationPercentage"]; utilization != nil {
		metrics = []any{object{"type": "Resource", "resource": object{"name": "cpu", "current": object{"averageUtilization": utilization}}}}
	}
	if current := decoded[[]object](annotations, currentAnnotation); current != nil {
		metrics = nil
		for _, metric := range current {
			metrics = append(metrics, metricToV2(metric, statusToV2))
		}
	}
	delete(status, "currentCPUUtilizationPercentage")
	status["currentMetrics"] = nil
	if metrics != nil {
		status["currentMetrics"] = metrics
	}
	var conditions []any
	for _, condition := range decoded[[]object](annotations, conditionAnnotation) {
		conditions = append(conditions, condition)
	}
	if conditions != nil {
		status["conditions"] = conditions
	}
	if status["currentReplicas"] == int64(0) {
		delete(status, "currentReplicas")
	}
	setIfAbsent(status, "desiredReplicas", int64(0))
}

// decoded decodes the JSON of an annotation. It returns the zero value if the annotation is absent or malformed.
func decoded[T any](annotations object, name string) (value T) {
	if content := nested.String(annotations, name); content != "" {
		_ = utiljson.Unmarshal([]byte(content), &value)
	}
	return value
}

// lowered returns a value without nulls and with field names that begin in lower case. The annotation has Go field names.
func lowered(value any) any {
	switch value := value.(type) {
	case object:
		out := object{}
		for name, field := range value {
			if field != nil && name != "" {
				out[strings.ToLower(name[:1])+name[1:]] = lowered(field)
			}
		}
		return out
	case []any:
		out := slices.Clone(value)
		for i := range out {
			out[i] = lowered(out[i])
		}
		return out
	}
	return value
}

// orZero returns quantity, or "0" for nil: v1 cannot omit it.
func orZero(quantity any) any {
	if quantity == nil {
		return "0"
	}
	return quantity
}

// withoutNil returns an object without its null fields.
func withoutNil(obj object) object {
	for name, value := range obj {
		if value == nil {
			delete(obj, name)
		}
	}
	return runtime.DeepCopyJSON(obj)
}
