package builtin

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// Convert converts an object of a built-in kind, in place, to another version of its group, or an Event to the other one of its groups.
// Only autoscalers and Events have different fields then.
func Convert(obj map[string]any, version schema.GroupVersion) {
	from := nested.String(obj, "apiVersion")
	obj["apiVersion"] = version.String()
	if from == version.String() {
		return
	}
	switch {
	case obj["kind"] == "HorizontalPodAutoscaler" && version.Version == "v1":
		autoscalerToV1(obj)
	case obj["kind"] == "HorizontalPodAutoscaler":
		autoscalerToV2(obj)
	case obj["kind"] == "Event" && version.Group == "":
		eventToCore(obj)
	case obj["kind"] == "Event":
		eventFromCore(obj)
	}
}

// otherEventFields are the fields of an Event in the core group with other names in events.k8s.io.
var otherEventFields = map[string]string{
	"involvedObject": "regarding", "source": "deprecatedSource", "message": "note", "reportingComponent": "reportingController",
	"firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp", "count": "deprecatedCount",
}

func eventToCore(event object) {
	for core, other := range otherEventFields {
		moveField(event, other, core)
	}
	setIfAbsent(event, "reportingComponent", "")
	setIfAbsent(event, "reportingInstance", "")
}

// eventFromCore leaves out empty texts, which are written in the core group only.
func eventFromCore(event object) {
	for core, other := range otherEventFields {
		moveField(event, core, other)
	}
	for _, name := range []string{"reportingController", "reportingInstance"} {
		if event[name] == "" {
			delete(event, name)
		}
	}
}

func moveField(obj object, from, to string) {
	if value, found := obj[from]; found {
		obj[to] = value
		delete(obj, from)
	}
}
