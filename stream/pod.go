package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
)

// defaultContainer is the annotation by which kubectl chooses among a pod's containers:
// https://kubernetes.io/docs/reference/labels-annotations-taints/#kubectl-kubernetes-io-default-container.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// podParts are what we read of a pod.
type podParts struct {
	Metadata struct {
		Name, Namespace, UID, ResourceVersion string
		Annotations                           map[string]string
	}
	Spec struct {
		InitContainers, Containers, EphemeralContainers []struct{ Name string }
	}
	Status struct {
		InitContainerStatuses, ContainerStatuses, EphemeralContainerStatuses []containerParts
	}
}

// containerParts are what we read of a container's status.
type containerParts struct {
	Name             string
	RestartCount     int
	State, LastState struct {
		Running    *struct{}
		Terminated *struct{ FinishedAt time.Time }
	}
}

// hasLog says whether the container has begun to run, if only in vain.
func (c *containerParts) hasLog() bool {
	return c.State.Running != nil || c.State.Terminated != nil || c.LastState.Terminated != nil
}

// containers are the pod's containers of every sort, in the order in which they run.
func (p *podParts) containers() []containerParts {
	var all []containerParts
	all = append(all, p.Status.InitContainerStatuses...)
	all = append(all, p.Status.ContainerStatuses...)
	return append(all, p.Status.EphemeralContainerStatuses...)
}

// defaultContainer is the container that is meant where none is named.
func (p *podParts) defaultContainer() (string, error) {
	if name := p.Metadata.Annotations[defaultContainer]; name != "" {
		return name, nil
	}
	if len(p.Spec.Containers) == 0 {
		return "", errors.New("the pod has no containers")
	}
	return p.Spec.Containers[0].Name, nil
}

// containerNames returns the names of the pod's containers of every sort.
func (p *podParts) containerNames() []string {
	var names []string
	for _, container := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers, p.Spec.EphemeralContainers) {
		names = append(names, container.Name)
	}
	return names
}

// get reads one object.
func get(ctx context.Context, conn *transport.Conn, path string, into any) error {
	return getWithin(ctx, conn, path, maxObject, into)
}

// getWithin reads an answer of at most limit bytes.
func getWithin(ctx context.Context, conn *transport.Conn, path string, limit int, into any) error {
	response, err := conn.Do(ctx, &transport.Request{Path: path})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(newLimitedReader(response.Body, "the answer", limit)).Decode(into); err != nil {
		return fmt.Errorf("GET %s: %w", path, retry.WithContextError(ctx, err))
	}
	return nil
}
