package stream

import (
	"context"
	"fmt"
	"strings"

	"github.com/anykind/anykind/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// inContainer makes a call for a container. Where none is named the server takes a pod's only one, which costs no
// request; of several it takes none, and we choose as kubectl does. Pod is the pod's path.
func inContainer(ctx context.Context, conn *transport.Conn, pod, container string, call func(container string) error) error {
	err := call(container)
	if container != "" || !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "a container name must be specified") {
		return err
	}
	container, chooseErr := chooseContainer(ctx, conn, pod)
	if chooseErr != nil {
		return fmt.Errorf("%w; choosing one failed: %w", err, chooseErr)
	}
	return call(container)
}

func chooseContainer(ctx context.Context, conn *transport.Conn, pod string) (string, error) {
	var found podParts
	if err := get(ctx, conn, pod, &found); err != nil {
		return "", err
	}
	return found.defaultContainer()
}
