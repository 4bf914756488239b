package stream

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

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

func chooseContainer(ctx context.Context, pods Target, pod string) (string, error) {
	path, err := pods.Path(pod)
	if err != nil {
		return "", err
	}
	var found podParts
	if err := get(ctx, pods.Conn(), path, &found); err != nil {
		return "", err
	}
	return found.defaultContainer()
}
