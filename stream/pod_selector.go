package stream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport"
)

const (
	// maxListed limits a list in an error, in bytes.
	maxListed = 300
	// maxReasons limits the different not-ready reasons in an error.
	maxReasons = 8
	// listPage and firstPage are page sizes: for listing all pods, or until a pod is ready.
	listPage, firstPage = "500", "100"
)

// podRef is a pod to connect to.
type podRef struct{ path, name string }

// wrap adds the pod to an error about its service or workload.
func (p podRef) wrap(name string, err error) error {
	if err == nil || p.name == name {
		return err
	}
	return fmt.Errorf("pod %q: %w", p.name, err)
}

// resolvePod returns the pod of a name, or a pod of the service or workload of that name: see findPod.
func resolvePod(ctx context.Context, target Target, name string, accept func(*pod) bool) (podRef, error) {
	ref, err := newObjectRef(target, name)
	if err != nil {
		return podRef{}, err
	}
	if ref.isPod() {
		return podRef{ref.path, name}, nil
	}
	_, selector, err := readOwner(ctx, target.Conn(), ref)
	if err != nil {
		return podRef{}, err
	}
	found, err := findPod(ctx, target.Conn(), ref, selector, listPage, accept)
	if err != nil {
		return podRef{}, err
	}
	return podRef{podPath(ref.namespace, found.Metadata.Name), found.Metadata.Name}, nil
}

// maxSelector bounds the JSON of a label selector.
const maxSelector = 64 << 10

// podOwner has the decoded fields of a service or workload with pods.
type podOwner struct {
	Spec struct {
		Selector  json.RawMessage
		ClusterIP string
		Ports     []servicePort
	}
}

type servicePort struct {
	Name, Protocol string
	Port           uint16
	TargetPort     intstr.IntOrString
}

// readOwner returns a service or workload and the label selector of its pods.
func readOwner(ctx context.Context, conn *transport.Conn, ref *objectRef) (owner *podOwner, selector string, err error) {
	owner = new(podOwner)
	if err = getJSON(ctx, conn, ref.path, owner); err == nil {
		selector, err = owner.selector(ref)
	}
	return owner, selector, err
}

// selector returns the label selector. The API has two forms of it.
func (o *podOwner) selector(ref *objectRef) (string, error) {
	if len(o.Spec.Selector) == 0 || string(o.Spec.Selector) == "null" {
		return "", fmt.Errorf("%s selects no pods (it has no spec.selector): name a pod, or something that has pods", ref)
	}
	if len(o.Spec.Selector) > maxSelector {
		return "", fmt.Errorf("the selector of %s is longer than %d KiB: name one of its pods", ref, maxSelector>>10)
	}
	var full metav1.LabelSelector
	err := json.Unmarshal(o.Spec.Selector, &full.MatchLabels)
	if err != nil {
		full = metav1.LabelSelector{}
		err = json.Unmarshal(o.Spec.Selector, &full)
	}
	selector, selectorErr := metav1.LabelSelectorAsSelector(&full)
	if err = cmp.Or(err, selectorErr); err == nil && selector.Empty() {
		err = errors.New("it selects all pods")
	}
	if err != nil {
		return "", fmt.Errorf("the selector of %s cannot be used: %w: name one of its pods", ref, err)
	}
	return selector.String(), nil
}

// findPod returns the first ready pod matched by a selector. Without a ready pod it returns the best pod accepted by accept: a
// running pod if there is any. accept may be nil.
func findPod(ctx context.Context, conn *transport.Conn, ref *objectRef, selector, limit string, accept func(*pod) bool) (*pod, error) {
	reasons := map[string]int{}
	var best *pod
	for list, err := range listPods(ctx, conn, podPath(ref.namespace, ""), url.Values{"labelSelector": {selector}}, limit) {
		if err != nil {
			return nil, fmt.Errorf("the pods of %s: %w", ref, err)
		}
		for i := range list.Items {
			candidate := &list.Items[i]
			if candidate.isReady() {
				return candidate, nil
			}
			if reason := candidate.notReadyReason(); len(reasons) < maxReasons || reasons[reason] > 0 {
				reasons[reason]++
			}
			if accept != nil && accept(candidate) && (best == nil || isRunning(candidate) && !isRunning(best)) {
				best = candidate
			}
		}
	}
	if best != nil {
		return best, nil
	}
	if len(reasons) == 0 {
		return nil, fmt.Errorf("%s has no pods (%s)", ref, sanitize.Text(selector, maxListed))
	}
	var counts []string
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		counts = append(counts, fmt.Sprintf("%d %s", reasons[reason], reason))
	}
	state := "ready"
	if accept != nil {
		state = "running"
	}
	return nil, fmt.Errorf("no pod of %s is %s: %s", ref, state, sanitize.Text(strings.Join(counts, ", "), maxListed))
}
