package applyset

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/unstructured"
)

const (
	// maxWarnings is the number of events for each object.
	maxWarnings = 3
	// warningsTimeout limits the requests for events.
	warningsTimeout = 5 * time.Second
)

// addWarnings adds the newest Warning events. Without the permission to list events or pods, there are fewer of them.
func (w *waiter) addWarnings(ctx context.Context, objects []NotReadyObject) {
	ctx, cancel := context.WithTimeout(ctx, warningsTimeout)
	defer cancel()
	warnings := map[string][]*warning{}
	for i := range objects {
		live := w.live[objects[i].Object]
		if live == nil {
			continue
		}
		namespace := cmp.Or(live.GetNamespace(), metav1.NamespaceDefault)
		if _, read := warnings[namespace]; !read {
			warnings[namespace] = w.readWarnings(ctx, namespace)
		}
		if len(warnings[namespace]) == 0 {
			continue
		}
		about := w.podsOf(ctx, live)
		about[live.GetUID()] = true
		for _, event := range warnings[namespace] {
			if about[event.uid] && len(objects[i].Warnings) < maxWarnings {
				objects[i].Warnings = append(objects[i].Warnings, event.text)
			}
		}
	}
}

type warning struct {
	uid  types.UID // of the object that the event is about
	time string
	text string
}

// readWarnings returns the Warning events of a namespace, the newest first.
func (s *Set) readWarnings(ctx context.Context, namespace string) (all []*warning) {
	events, err := s.client.ForKind(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Event"})
	if err != nil {
		return nil
	}
	for event, err := range events.Namespace(namespace).List(ctx, &metav1.ListOptions{FieldSelector: "type=Warning"}) {
		if err != nil {
			break
		}
		text := func(fields ...string) string {
			value, _, _ := unstructured.Get[string](event, fields...) // empty for another type
			return value
		}
		at := cmp.Or(text("series", "lastObservedTime"), text("lastTimestamp"), text("eventTime"), text("metadata", "creationTimestamp"))
		all = append(all, &warning{types.UID(text("involvedObject", "uid")), at, text("reason") + ": " + text("message")})
	}
	slices.SortStableFunc(all, func(a, b *warning) int { return -cmp.Compare(a.time, b.time) })
	return all
}

// podsOf returns the UIDs of the pods that a workload selects.
func (s *Set) podsOf(ctx context.Context, workload *unstructured.Object) map[types.UID]bool {
	uids := map[types.UID]bool{}
	selector := podSelector(workload)
	pods, err := s.client.ForKind(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	if err != nil || selector == "" {
		return uids
	}
	for pod, err := range pods.Namespace(workload.GetNamespace()).Metadata().List(ctx, &metav1.ListOptions{LabelSelector: selector}) {
		if err != nil {
			break
		}
		uids[pod.GetUID()] = true
		for _, owner := range pod.GetOwnerReferences() {
			uids[owner.UID] = true // a ReplicaSet, whose events tell why there are no pods
		}
	}
	return uids
}

// podSelector returns the selector of a workload, or "". A ReplicationController has labels as its selector.
func podSelector(workload *unstructured.Object) string {
	if labels, found, err := unstructured.Get[map[string]string](workload, "spec", "selector"); found && err == nil {
		return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: labels})
	}
	selector, found, err := unstructured.Get[metav1.LabelSelector](workload, "spec", "selector")
	if !found || err != nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return ""
	}
	return metav1.FormatLabelSelector(&selector)
}
