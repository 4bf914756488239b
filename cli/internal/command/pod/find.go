package pod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// found is the object that an argument names, and the pod to use.
type found struct {
	// resource is the handle on the object, name its name.
	resource *dynamic.Resource
	object   *unstructured.Object
	// pods is the handle on the pods of its namespace; pod is the object itself or the best of the pods that it selects.
	pods *dynamic.Resource
	pod  *unstructured.Object
	// count is the number of pods that it selects, by selector.
	count    int
	selector string
}

// addTimeoutFlag defines the flag for how long to wait for a pod.
func addTimeoutFlag(cmd *cobra.Command, timeout *time.Duration, standard time.Duration) {
	cmd.Flags().DurationVar(timeout, "pod-running-timeout", standard,
		"The length of time (like 5s, 2m, or 3h, higher than zero) to wait until at least one pod is running")
}

// findPod finds the pod that an argument, POD or TYPE/NAME, means. It waits until timeout for a pod of a workload. compare
// orders pods, the best first.
func findPod(ctx context.Context, s *command.State, argument string, timeout time.Duration, purpose string,
	compare func(a, b *unstructured.Object) int,
) (*found, error) {
	kind, name, hasKind := strings.Cut(argument, "/")
	if !hasKind {
		kind, name = "pods", argument
	}
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return nil, errors.New("arguments in resource/name form must have a single resource and name")
	}
	resource, err := s.Connection.Handle(ctx, kind)
	if err != nil {
		return nil, err
	}
	return findPodOf(ctx, s, resource, name, timeout, purpose, compare)
}

// findPodOf is findPod for an object of a resource.
func findPodOf(ctx context.Context, s *command.State, resource *dynamic.Resource, name string, timeout time.Duration, purpose string,
	compare func(a, b *unstructured.Object) int,
) (f *found, err error) {
	if timeout <= 0 {
		return nil, errors.New("--pod-running-timeout must be higher than zero")
	}
	f = &found{resource: resource}
	if f.object, err = resource.Get(ctx, name, nil); err != nil {
		return nil, err
	}
	if isPods(resource) {
		f.pods, f.pod, f.count = resource, f.object, 1
		return f, nil
	}
	if f.selector, err = podSelector(f.object); err != nil {
		return nil, fmt.Errorf("cannot %s %s/%s: %w", purpose, resource.Mapping().GVR.Resource, name, err)
	}
	if f.pods, err = s.Connection.Handle(ctx, "pods"); err != nil {
		return nil, err
	}
	f.pods = f.pods.Namespace(f.object.GetNamespace())
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out waiting for a pod of %s/%s (--pod-running-timeout)", resource.Mapping().GVR.Resource, name))
	defer cancel()
	f.pod, f.count, err = firstPod(ctx, f.pods, f.selector, compare)
	return f, err
}

func isPods(resource *dynamic.Resource) bool {
	return resource.Mapping().GVR.GroupResource().String() == "pods"
}

// podSelector returns the label selector of the pods of a service or workload, which has one of two forms.
func podSelector(obj *unstructured.Object) (string, error) {
	fields, ok, err := unstructured.Get[map[string]any](obj, "spec", "selector")
	if err != nil {
		return "", err
	}
	if !ok || len(fields) == 0 {
		return "", errors.New("it selects no pods: name a pod, or something that has pods")
	}
	_, hasLabels := fields["matchLabels"]
	_, hasExpressions := fields["matchExpressions"]
	if !hasLabels && !hasExpressions {
		equal, _, err := unstructured.Get[map[string]string](obj, "spec", "selector")
		return labels.SelectorFromSet(equal).String(), err
	}
	full, err := unstructured.As[metav1.LabelSelector](&unstructured.Object{Object: fields})
	if err != nil {
		return "", err
	}
	selector, err := metav1.LabelSelectorAsSelector(full)
	if err != nil {
		return "", err
	}
	return selector.String(), nil
}

// firstPod returns the best of the pods that a selector matches, and their number. Without any it waits for the first one.
func firstPod(ctx context.Context, pods *dynamic.Resource, selector string, compare func(a, b *unstructured.Object) int) (*unstructured.Object, int, error) {
	page, err := pods.ListPage(ctx, &metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, 0, err
	}
	if len(page.Items) > 0 {
		return slices.MinFunc(page.Items, compare), len(page.Items), nil
	}
	for change, err := range pods.Follow(ctx, &dynamic.FollowOptions{LabelSelector: selector}) {
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return nil, 0, err
		}
		if change.Type == watch.Added {
			return change.Object, 1, nil
		}
	}
	return nil, 0, context.Cause(ctx)
}

// Orders of pods, the best first: those on a node that run and are ready, for the longest time.

// compareForLogs orders pods by how likely their logs are wanted: of equal ones those that restarted most are first.
func compareForLogs(a, b *unstructured.Object) int {
	return cmp.Or(compareState(a, b), compareReadyTime(a, b), cmp.Compare(restarts(b), restarts(a)), compareAge(a, b))
}

// compareForStreams orders pods by how well they serve a stream: pods that are being deleted, and those that restarted most, are
// last.
func compareForStreams(a, b *unstructured.Object) int {
	return cmp.Or(compareState(a, b), compareBool(a.GetDeletionTimestamp() == nil, b.GetDeletionTimestamp() == nil),
		compareReadyTime(a, b), cmp.Compare(restarts(a), restarts(b)), compareAge(a, b))
}

func compareState(a, b *unstructured.Object) int {
	rank := func(pod *unstructured.Object) int {
		switch phase(pod) {
		case "Unknown":
			return 1
		case "Pending":
			return 2
		}
		return 0
	}
	node := func(pod *unstructured.Object) bool {
		name, _, _ := unstructured.Get[string](pod, "spec", "nodeName")
		return name != ""
	}
	return cmp.Or(compareBool(node(a), node(b)), cmp.Compare(rank(a), rank(b)), compareBool(readySince(a) != "", readySince(b) != ""))
}

// compareBool puts true first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func compareReadyTime(a, b *unstructured.Object) int {
	return strings.Compare(readySince(a), readySince(b))
}

func compareAge(a, b *unstructured.Object) int {
	return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
}

// phase returns a pod's phase.
func phase(pod *unstructured.Object) string {
	phase, _, _ := unstructured.Get[string](pod, "status", "phase")
	return phase
}

// readySince returns since when a pod is ready, in RFC 3339; "" if it is not.
func readySince(pod *unstructured.Object) string {
	status, _, _ := unstructured.Get[string](pod, "status", "conditions", "[type=Ready]", "status")
	if status != "True" {
		return ""
	}
	since, _, _ := unstructured.Get[string](pod, "status", "conditions", "[type=Ready]", "lastTransitionTime")
	return cmp.Or(since, "unknown")
}

// restarts returns how often the container of a pod was restarted that was restarted most.
func restarts(pod *unstructured.Object) int64 {
	counts, err := unstructured.GetAll[int64](pod, "status", "containerStatuses", "[*]", "restartCount")
	if err != nil || len(counts) == 0 {
		return 0
	}
	return slices.Max(counts)
}
