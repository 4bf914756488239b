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

	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// place is the place of an object in the API.
type place struct {
	group, namespace, resource, name string
	path                             string
}

// locate reads the path of an object that has pods.
func locate(target Target, name string) (*place, error) {
	if name == "" {
		return nil, errors.New("the name is empty")
	}
	path, err := target.Path(name)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	at := &place{name: name, path: path}
	switch {
	case len(parts) == 6 && parts[0] == "api" && parts[2] == "namespaces":
		at.namespace, at.resource = parts[3], parts[4]
	case len(parts) == 7 && parts[0] == "apis" && parts[3] == "namespaces":
		at.group, at.namespace, at.resource = parts[1], parts[4], parts[5]
	default:
		return nil, fmt.Errorf("%s is neither a pod nor has pods in its namespace: name a pod, a service or a workload", path)
	}
	return at, nil
}

// String returns the object as errors name it.
func (p *place) String() string { return p.resource + "/" + p.name }

func (p *place) isPod() bool     { return p.group == "" && p.resource == "pods" }
func (p *place) isService() bool { return p.group == "" && p.resource == "services" }

// pods returns the path of the pods in the object's namespace, or of one of them.
func (p *place) pods(name string) string {
	path := "/api/v1/namespaces/" + p.namespace + "/pods"
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	return path
}

// maxStates is how many states of pods an error names.
const maxStates = 8

// pod is the part of a pod that is read.
type pod struct {
	Metadata struct {
		Name, UID         string
		DeletionTimestamp *string
	}
	Spec   struct{ Containers, InitContainers []podContainer }
	Status struct {
		Phase      string
		Conditions []struct{ Type, Status string }
	}
}

type podContainer struct{ Ports []containerPort }

type containerPort struct {
	Name, Protocol string
	ContainerPort  uint16
}

// ready reports whether a service sends to the pod.
func (p *pod) ready() bool {
	if p.Metadata.DeletionTimestamp != nil || p.Status.Phase != "Running" {
		return false
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == "Ready" {
			return condition.Status == "True"
		}
	}
	return false
}

// state returns why the pod is not ready.
func (p *pod) state() string {
	if p.Metadata.DeletionTimestamp != nil {
		return "terminating"
	}
	if p.Status.Phase == "Running" {
		return "not ready"
	}
	return cmp.Or(p.Status.Phase, "without a phase")
}

// group is the part that is read of an object that has pods: a service or a workload.
type group struct {
	Kind string
	Spec struct {
		Selector  json.RawMessage
		ClusterIP string
		Ports     []servicePort
	}
}

// selector returns the selector of the group's pods, from either of the API's two forms.
func (g *group) selector(of *place) (string, error) {
	var plain map[string]string
	if len(g.Spec.Selector) == 0 || string(g.Spec.Selector) == "null" {
		return "", fmt.Errorf("%s selects no pods (it has no spec.selector): name a pod, or something that has pods", of)
	}
	if json.Unmarshal(g.Spec.Selector, &plain) == nil {
		if len(plain) == 0 {
			return "", fmt.Errorf("the selector of %s is empty: name one of its pods", of)
		}
		return labels.SelectorFromSet(plain).String(), nil
	}
	var full metav1.LabelSelector
	err := json.Unmarshal(g.Spec.Selector, &full)
	if err == nil {
		var selector labels.Selector
		if selector, err = metav1.LabelSelectorAsSelector(&full); err == nil && !selector.Empty() {
			return selector.String(), nil
		}
	}
	if err == nil {
		err = fmt.Errorf("it selects all pods")
	}
	return "", fmt.Errorf("the selector of %s cannot be used: %w: name one of its pods", of, err)
}

// readyPod returns a ready pod of those that a selector selects.
func readyPod(ctx context.Context, conn *transport.Conn, at *place, selector string) (*pod, error) {
	query := url.Values{"labelSelector": {selector}, "limit": {"100"}}
	states := map[string]int{} // how many pods are in each
	for {
		var page struct {
			Metadata struct{ Continue string }
			Items    []pod
		}
		if err := get(ctx, conn, at.pods("")+"?"+query.Encode(), &page); err != nil {
			return nil, fmt.Errorf("portforward: the pods of %s: %w", at, err)
		}
		for i := range page.Items {
			if page.Items[i].ready() {
				return &page.Items[i], nil
			}
			if state := page.Items[i].state(); len(states) < maxStates || states[state] > 0 {
				states[state]++
			}
		}
		if page.Metadata.Continue == "" {
			break
		}
		query.Set("continue", page.Metadata.Continue)
	}
	if len(states) == 0 {
		return nil, fmt.Errorf("portforward: %s has no pods (%s)", at, sanitize.Text(selector, maxListed))
	}
	var counts []string
	for _, state := range slices.Sorted(maps.Keys(states)) {
		counts = append(counts, fmt.Sprintf("%d %s", states[state], state))
	}
	return nil, fmt.Errorf("portforward: no pod of %s is ready: %s", at, sanitize.Text(strings.Join(counts, ", "), maxListed))
}
