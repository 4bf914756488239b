// Package describe writes descriptions of objects of any kind: metadata, fields, conditions, owners and events. Pods,
// deployments, services and nodes have their own sections. The package sends no requests.
package describe

import (
	"encoding/base64"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

// Related are objects mentioned in a description besides the described object. All fields are optional.
type Related struct {
	// Now is the current time, for ages.
	Now time.Time
	// ShowEvents adds the section of Events. MissingEvents is the error of reading them.
	ShowEvents    bool
	Events        []*unstructured.Object
	MissingEvents error
	// ReplicaSets are the ReplicaSets controlled by a deployment.
	ReplicaSets []*unstructured.Object
	// EndpointSlices are the EndpointSlices of a service.
	EndpointSlices []*unstructured.Object
	// Pods are the pods on a node, and Lease is its lease.
	Pods  []*unstructured.Object
	Lease *unstructured.Object
}

// Write writes the description of an object. It replaces the values of secrets by their sizes.
func Write(w io.Writer, obj *unstructured.Object, related *Related) error {
	var fields []field
	switch obj.GroupVersionKind().GroupKind().String() {
	case "Pod":
		fields = podFields(obj, related.Now)
	case "Deployment.apps":
		fields = deploymentFields(obj, related.ReplicaSets)
	case "Service":
		fields = serviceFields(obj, related.EndpointSlices)
	case "Node":
		fields = nodeFields(obj, related)
	default:
		fields = objectFields(obj, related.Now)
	}
	if related.ShowEvents {
		fields = append(fields, eventsField(related))
	}
	var b strings.Builder
	writeFields(&b, fields, "", "")
	_, err := io.WriteString(w, b.String())
	return err
}

// lastApplied is an annotation with a copy of the object, including values of secrets. It is not described.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// nameFields returns an object's name and namespace.
func nameFields(obj *unstructured.Object) []field {
	fields := []field{text("Name", obj.GetName())}
	if namespace := obj.GetNamespace(); namespace != "" {
		fields = append(fields, text("Namespace", namespace))
	}
	return fields
}

// labelFields returns an object's labels and annotations.
func labelFields(obj *unstructured.Object) []field {
	labels := nested.Map(obj.Object, "metadata", "labels")
	annotations := map[string]any{}
	for name, value := range nested.Map(obj.Object, "metadata", "annotations") {
		if name != lastApplied {
			annotations[name] = value
		}
	}
	var lines []string
	for _, line := range pairs(annotations, ": ") {
		lines = append(lines, strings.Split(strings.TrimSuffix(line, "\n"), "\n")...)
	}
	return []field{text("Labels", pairs(labels, "=")...), text("Annotations", lines...)}
}

// ownerFields returns an object's owners, the controller first.
func ownerFields(obj *unstructured.Object) []field {
	var fields []field
	var others []string
	for _, owner := range obj.GetOwnerReferences() {
		name := owner.Kind + "/" + owner.Name
		if owner.Controller != nil && *owner.Controller {
			fields = append(fields, text("Controlled By", name))
		} else {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		fields = append(fields, text("Owned By", others...))
	}
	return fields
}

// deletionFields returns metadata.deletionTimestamp and metadata.finalizers, if set.
func deletionFields(obj *unstructured.Object, now time.Time) []field {
	var fields []field
	if deleted := textAt(obj.Object, "metadata", "deletionTimestamp"); deleted != "" {
		fields = append(fields, text("Deletion", timeText(deleted)+" ("+age(deleted, now)+")"))
	}
	if finalizers := obj.GetFinalizers(); len(finalizers) > 0 {
		fields = append(fields, text("Finalizers", finalizers...))
	}
	return fields
}

// objectFields describes an object of any kind: its metadata, and its other fields under their own names.
func objectFields(obj *unstructured.Object, now time.Time) []field {
	fields := append(nameFields(obj), labelFields(obj)...)
	fields = append(fields, text("API Version", obj.GetAPIVersion()), text("Kind", obj.GetKind()))
	if created := textAt(obj.Object, "metadata", "creationTimestamp"); created != "" {
		fields = append(fields, text("Created", timeText(created)+" ("+age(created, now)+")"))
	}
	fields = append(fields, deletionFields(obj, now)...)
	fields = append(fields, ownerFields(obj)...)
	if nested.Value(obj.Object, "status") != nil {
		fields = append(fields, text("Health", readiness.Compute(obj, nil).String()))
	}
	rest, conditions := contentFields(obj)
	fields = append(fields, rest...)
	if len(conditions) > 0 {
		fields = append(fields, conditionsField(conditions, now))
	}
	return fields
}

// contentFields returns an object's fields except metadata, spec first and status last. It returns status.conditions separately.
func contentFields(obj *unstructured.Object) (fields []field, conditions []any) {
	order := func(name string) int {
		switch name {
		case "spec":
			return 0
		case "status":
			return 2
		}
		return 1
	}
	names := slices.DeleteFunc(sortedNames(obj.Object), func(name string) bool {
		return name == "apiVersion" || name == "kind" || name == "metadata"
	})
	sort.SliceStable(names, func(i, j int) bool { return order(names[i]) < order(names[j]) })
	for _, name := range names {
		value := obj.Object[name]
		if status, ok := value.(map[string]any); ok && name == "status" {
			if list, ok := status["conditions"].([]any); ok && areConditions(list) {
				conditions = list
				status = withoutField(status, "conditions")
			}
			if len(status) > 0 {
				fields = append(fields, field{label: title(name), fields: treeFields(status, 0)})
			}
			continue
		}
		fields = append(fields, contentField(obj, name, value)...)
	}
	return fields, conditions
}

// contentField returns a field of an object. For data of a secret it returns only the sizes of the values.
func contentField(obj *unstructured.Object, name string, value any) []field {
	if obj.GetKind() == "Secret" && obj.GroupVersionKind().Group == "" {
		values := nested.Map(value)
		switch name {
		case "data":
			return sizes("Data", values, decodedSize)
		case "stringData":
			return sizes("StringData", values, func(value string) int { return len(value) })
		}
	}
	f := treeField(name, value, 0)
	f.label = title(name)
	return []field{f}
}

// decodedSize returns the size of a base64-encoded value of a secret.
func decodedSize(value string) int {
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return len(value)
	}
	return len(decoded)
}

func withoutField(values map[string]any, name string) map[string]any {
	rest := make(map[string]any, len(values))
	for key, value := range values {
		if key != name {
			rest[key] = value
		}
	}
	return rest
}

// title returns a field name as the label of a section.
func title(name string) string {
	if name == "" {
		return name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// areConditions reports whether a list has the form of conditions: objects with a type and a status.
func areConditions(list []any) bool {
	for _, element := range list {
		if textAt(element, "type") == "" || textAt(element, "status") == "" {
			return false
		}
	}
	return len(list) > 0
}

// conditionsField returns a table of conditions.
func conditionsField(conditions []any, now time.Time) field {
	var rows [][]string
	for _, c := range conditions {
		since := "<unknown>"
		if changed := textAt(c, "lastTransitionTime"); changed != "" {
			since = age(changed, now)
		}
		rows = append(rows, []string{
			textAt(c, "type"), textAt(c, "status"), since, textAt(c, "reason"), oneLine(textAt(c, "message")),
		})
	}
	return table("Conditions", []string{"Type", "Status", "Age", "Reason", "Message"}, rows)
}

// oneLine joins the lines of a message.
func oneLine(message string) string { return strings.Join(strings.Fields(message), " ") }

// eventsField returns a table of events, oldest first.
func eventsField(related *Related) field {
	if related.MissingEvents != nil {
		return text("Events", "<unknown: "+oneLine(related.MissingEvents.Error())+">")
	}
	events := slices.Clone(related.Events)
	slices.SortStableFunc(events, func(a, b *unstructured.Object) int {
		return strings.Compare(lastSeen(a), lastSeen(b))
	})
	var rows [][]string
	for _, event := range events {
		rows = append(rows, []string{
			textAt(event.Object, "type"), textAt(event.Object, "reason"), eventAge(event, related.Now), eventSource(event),
			oneLine(textAt(event.Object, "message")),
		})
	}
	return table("Events", []string{"Type", "Reason", "Age", "From", "Message"}, rows)
}

// lastSeen returns the time of an event's last occurrence.
func lastSeen(event *unstructured.Object) string {
	for _, path := range [][]string{{"series", "lastObservedTime"}, {"lastTimestamp"}, {"eventTime"}, {"metadata", "creationTimestamp"}} {
		if seen := textAt(event.Object, path...); seen != "" {
			return seen
		}
	}
	return ""
}

// eventAge returns the time since an event. A repeated event has its count and the time since its first occurrence.
func eventAge(event *unstructured.Object, now time.Time) string {
	last := age(lastSeen(event), now)
	count := max(nested.Int(event.Object, "count"), nested.Int(event.Object, "series", "count"))
	if count < 2 {
		return last
	}
	first := or(textAt(event.Object, "firstTimestamp"), textAt(event.Object, "eventTime"))
	return last + " (x" + scalar(count) + " over " + age(first, now) + ")"
}

// eventSource returns the reporting component of an event.
func eventSource(event *unstructured.Object) string {
	source := textAt(event.Object, "source", "component")
	return or(source, textAt(event.Object, "reportingComponent"))
}

// selectorText formats a selector: a map of labels, or a LabelSelector.
func selectorText(selector map[string]any) string {
	_, hasLabels := selector["matchLabels"]
	_, hasExpressions := selector["matchExpressions"]
	if !hasLabels && !hasExpressions {
		return or(strings.Join(pairs(selector, "="), ","), none)
	}
	parsed, err := unstructured.As[metav1.LabelSelector](&unstructured.Object{Object: selector})
	if err != nil {
		return scalar(selector)
	}
	return metav1.FormatLabelSelector(parsed)
}
