package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/anykind/anykind/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// defaultContainer is the annotation by which kubectl chooses among a pod's containers:
// https://kubernetes.io/docs/reference/labels-annotations-taints/#kubectl-kubernetes-io-default-container.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// inContainer makes a call for a container. Where none is named the server takes a pod's only one, which costs no
// request; of several it takes none, and we choose as kubectl does.
func inContainer(ctx context.Context, pods Target, pod, container string, call func(container string) error) error {
	err := call(container)
	if container != "" || !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "a container name must be specified") {
		return err
	}
	container, chooseErr := chooseContainer(ctx, pods, pod)
	if chooseErr != nil {
		return fmt.Errorf("%w; choosing one failed: %w", err, chooseErr)
	}
	return call(container)
}

// podParts are what we read of a pod.
type podParts struct {
	Metadata struct {
		Name, Namespace, UID string
		Annotations          map[string]string
	}
	Spec struct {
		InitContainers, Containers, EphemeralContainers []struct{ Name string }
	}
}

func chooseContainer(ctx context.Context, pods Target, pod string) (string, error) {
	path, err := pods.Path(pod)
	if err != nil {
		return "", err
	}
	var found podParts
	if err := get(ctx, pods.Conn(), path, &found); err != nil {
		return "", err
	}
	if name := found.Metadata.Annotations[defaultContainer]; name != "" {
		return name, nil
	}
	if len(found.Spec.Containers) == 0 {
		return "", fmt.Errorf("the pod has no containers")
	}
	return found.Spec.Containers[0].Name, nil
}

// get reads one object.
func get(ctx context.Context, conn *transport.Conn, path string, into any) error {
	response, err := conn.Do(ctx, &transport.Request{Path: path})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("GET %s: %w", path, ended(ctx, err))
	}
	return nil
}
