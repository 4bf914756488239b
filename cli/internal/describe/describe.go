// Package describe writes descriptions of objects of any kind: metadata, fields, conditions, owners and events. Pods,
// deployments, services and nodes have their own sections, followed by all other fields. The package sends no requests.
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
	// EndpointSlices are those of a service, or of the namespace of an ingress. Services are those of the namespace of an ingress.
	EndpointSlices, Services []*unstructured.Object
	// Pods are the pods on a node, of a workload, or with a claim. Lease is the lease of a node.
	Pods  []*unstructured.Object
	Lease *unstructured.Object
	// Quotas and LimitRanges are those of a namespace.
	Quotas, LimitRanges []*unstructured.Object
}

// Write writes the description of an object. It replaces the values of secrets by their sizes.
func Write(w io.Writer, obj *unstructured.Object, related *Related) error {
	left := obj.DeepCopy()
	var fields []field
	switch obj.GroupVersionKind().GroupKind().String() {
	case "Pod":
		fields = podFields(left, obj, related.Now)
	case "Deployment.apps":
		fields = deploymentFields(left, related)
	case "Service":
		fields = append(serviceFields(left, related.EndpointSlices), deletionFields(left, related.Now)...)
	case "Node":
		fields = nodeFields(left, related)
	default:
		fields = objectFields(left, related)
	}
	fields = append(fields, leftFields(left, obj)...)
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

// objectFields describes the metadata of an object of any kind, what is computed from related objects, and conditions. Its other
// fields are left.
func objectFields(obj *unstructured.Object, related *Related) []field {
	fields := append(nameFields(obj), labelFields(obj)...)
	fields = append(fields, text("API Version", obj.GetAPIVersion()), text("Kind", obj.GetKind()))
	if created := textAt(obj.Object, "metadata", "creationTimestamp"); created != "" {
		fields = append(fields, text("Created", timeText(created)+" ("+age(created, related.Now)+")"))
	}
	fields = append(fields, deletionFields(obj, related.Now)...)
	fields = append(fields, ownerFields(obj)...)
	if nested.Value(obj.Object, "status") != nil {
		fields = append(fields, text("Health", readiness.Compute(obj, nil).String()))
	}
	fields = append(fields, relatedFields(obj, related)...)
	if conditions := nested.List(obj.Object, "status", "conditions"); areConditions(conditions) {
		fields = append(fields, conditionsField(obj, conditions, related.Now))
	}
	return fields
}

// leftFields returns the fields, except metadata, that a layout has left of an object: spec first and status last.
func leftFields(left, obj *unstructured.Object) (fields []field) {
	order := func(name string) int {
		switch name {
		case "spec":
			return 0
		case "status":
			return 2
		}
		return 1
	}
	names := slices.DeleteFunc(sortedNames(left.Object), func(name string) bool {
		return name == "apiVersion" || name == "kind" || name == "metadata"
	})
	sort.SliceStable(names, func(i, j int) bool { return order(names[i]) < order(names[j]) })
	for _, name := range names {
		if value, isLeft := remaining(left.Object[name], obj.Object[name]); isLeft {
			fields = append(fields, contentField(obj, name, value)...)
		}
	}
	return fields
}

// contentField returns a field of an object. For data of a secret and binary data it returns only the sizes of the values.
func contentField(obj *unstructured.Object, name string, value any) []field {
	if obj.GetKind() == "ConfigMap" && obj.GroupVersionKind().Group == "" && name == "binaryData" {
		return sizes("BinaryData", nested.Map(value), decodedSize)
	}
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

// conditionsField returns a table of conditions. The age replaces their times, and a generation of its own is left only if it is not the
// object's.
func conditionsField(obj *unstructured.Object, conditions []any, now time.Time) field {
	var rows [][]string
	for _, c := range conditions {
		since := "<unknown>"
		if changed := popText(c, "lastTransitionTime"); changed != "" {
			since = age(changed, now)
		}
		rows = append(rows, []string{
			popText(c, "type"), popText(c, "status"), since, popText(c, "reason"), oneLine(popText(c, "message")),
		})
		popText(c, "lastProbeTime")
		popText(c, "lastUpdateTime")
		if nested.Int(c, "observedGeneration") == obj.GetGeneration() {
			popText(c, "observedGeneration")
		}
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
