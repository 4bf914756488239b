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

// found is the object named by an argument, and its chosen pod.
type found struct {
	// resource is the handle on the object.
	resource *dynamic.Resource
	object   *unstructured.Object
	// pods is the handle on the pods of the object's namespace. pod is the object itself, or the object's best pod by compare.
	pods *dynamic.Resource
	pod  *unstructured.Object
	// count is the number of pods matching selector, or 1 for a pod.
	count    int
	selector string
}

// addTimeoutFlag defines --pod-running-timeout.
func addTimeoutFlag(cmd *cobra.Command, timeout *time.Duration, standard time.Duration) {
	cmd.Flags().DurationVar(timeout, "pod-running-timeout", standard,
		"The length of time (like 5s, 2m, or 3h, higher than zero) to wait until at least one pod is running")
}

// findPod resolves an argument, POD or TYPE/NAME, to a pod. It waits up to timeout for the first pod of a workload. compare
// orders pods, best first.
func findPod(ctx context.Context, s *command.State, argument string, timeout time.Duration, purpose string,
	compare func(a, b *unstructured.Object) int,
) (*found, error) {
	kind, name, hasKind := strings.Cut(argument, "/")
	if !hasKind {
		kind = "pods"
		name = argument
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
		f.pods = resource
		f.pod = f.object
		f.count = 1
		return f, nil
	}
	if f.selector, err = podSelector(f.object); err != nil {
		return nil, fmt.Errorf("cannot %s %s/%s: %w", purpose, resource.APIResource().GVR.Resource, name, err)
	}
	if f.pods, err = s.Connection.Handle(ctx, "pods"); err != nil {
		return nil, err
	}
	f.pods = f.pods.Namespace(f.object.GetNamespace())
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out waiting for a pod of %s/%s (--pod-running-timeout)", resource.APIResource().GVR.Resource, name))
	defer cancel()
	f.pod, f.count, err = firstPod(ctx, f.pods, f.selector, compare)
	return f, err
}

func isPods(resource *dynamic.Resource) bool {
	return resource.APIResource().GVR.GroupResource().String() == "pods"
}

// podSelector returns spec.selector of a service or workload: a map of labels, or a LabelSelector.
func podSelector(obj *unstructured.Object) (string, error) {
	fields, ok, err := unstructured.Get[map[string]any](obj, "spec", "selector")
	if err != nil {
		return "", err
	}
	if !ok || len(fields) == 0 {
		return "", errors.New("it selects no pods (name a pod, or a workload with pods)")
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

// firstPod returns the best pod matching selector in the order of compare, and the number of matching pods. Without a matching
// pod it waits for the first.
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

// The orders of pods begin with the best pod: scheduled, running, and ready for the longest time.

// compareForLogs orders pods for logs. Of equally ready pods, the pod with more restarts is first.
func compareForLogs(a, b *unstructured.Object) int {
	return cmp.Or(compareState(a, b), compareReadyTime(a, b), cmp.Compare(restarts(b), restarts(a)), compareAge(a, b))
}

// compareForStreams orders pods for streams. Terminating pods and pods with more restarts are last.
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

// compareBool orders true before false.
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

// phase returns status.phase of a pod.
func phase(pod *unstructured.Object) string {
	phase, _, _ := unstructured.Get[string](pod, "status", "phase")
	return phase
}

// readySince returns lastTransitionTime of the condition Ready, in RFC 3339: "" for an unready pod, "unknown" without a time.
func readySince(pod *unstructured.Object) string {
	status, _, _ := unstructured.Get[string](pod, "status", "conditions", "[type=Ready]", "status")
	if status != "True" {
		return ""
	}
	since, _, _ := unstructured.Get[string](pod, "status", "conditions", "[type=Ready]", "lastTransitionTime")
	return cmp.Or(since, "unknown")
}

// restarts returns the largest restartCount of a pod's containers.
func restarts(pod *unstructured.Object) int64 {
	counts, err := unstructured.GetAll[int64](pod, "status", "containerStatuses", "[*]", "restartCount")
	if err != nil || len(counts) == 0 {
		return 0
	}
	return slices.Max(counts)
}
