package pod

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/anykind/anykind/unstructured"
)

// defaultContainer is the annotation with the name of a pod's default container.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// containerNames are the names of a pod's containers.
type containerNames struct{ containers, ephemeral, init []string }

func namesOf(pod *unstructured.Object) containerNames {
	get := func(field string) []string {
		names, _ := unstructured.GetAll[string](pod, "spec", field, "[*]", "name") // a pod from the server has names
		return names
	}
	return containerNames{containers: get("containers"), ephemeral: get("ephemeralContainers"), init: get("initContainers")}
}

func (n *containerNames) contains(name string) bool {
	return slices.Contains(n.containers, name) || slices.Contains(n.ephemeral, name) || slices.Contains(n.init, name)
}

func (n *containerNames) count() int { return len(n.containers) + len(n.ephemeral) + len(n.init) }

// String returns the names in kubectl's format.
func (n *containerNames) String() string {
	all := slices.Clone(n.containers)
	for _, name := range n.ephemeral {
		all = append(all, name+" (ephem)")
	}
	for _, name := range n.init {
		all = append(all, name+" (init)")
	}
	return strings.Join(all, ", ")
}

// chooseContainer validates a container name. For "" it returns the container of the defaultContainer annotation, or the first
// container. If there are several containers, the choice of the first is reported with noticef.
func chooseContainer(pod *unstructured.Object, name string, noticef func(format string, args ...any)) (string, error) {
	names := namesOf(pod)
	if len(names.containers) == 0 {
		return "", errors.New("pod " + pod.GetNamespace() + "/" + pod.GetName() + " does not have any containers")
	}
	if name == "" {
		name = pod.GetAnnotations()[defaultContainer]
	}
	if name != "" {
		if !names.contains(name) {
			return "", fmt.Errorf("container %s is not valid for pod %s out of: %s", name, pod.GetName(), names.String())
		}
		return name, nil
	}
	if names.count() > 1 {
		noticef("Defaulted container %q out of: %s", names.containers[0], names.String())
	}
	return names.containers[0], nil
}

// hasTerminal reports whether tty is set for a container.
func hasTerminal(pod *unstructured.Object, container string) bool {
	for _, field := range []string{"containers", "initContainers", "ephemeralContainers"} {
		tty, _, _ := unstructured.Get[bool](pod, "spec", field, "[name="+container+"]", "tty")
		if tty {
			return true
		}
	}
	return false
}
