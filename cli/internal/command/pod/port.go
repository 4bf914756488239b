package pod

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anykind/anykind/unstructured"
)

// parsePort parses LOCAL:REMOTE, :REMOTE or REMOTE. A remote port is the number or name of a service port or container port.
func (f *found) parsePort(text string) (forwardedPort, error) {
	local, remote, hasLocal := strings.Cut(text, ":")
	if !hasLocal {
		remote = local
	}
	if strings.Contains(remote, ":") {
		return forwardedPort{}, fmt.Errorf("invalid port format '%s'", text)
	}
	if remote == "" {
		return forwardedPort{}, errors.New("remote port cannot be empty")
	}
	port := forwardedPort{remote: remote}
	own, target, err := f.resolvePort(remote)
	if err != nil {
		return port, err
	}
	port.target = target
	switch {
	case !hasLocal:
		port.local = own
	case local != "":
		number, err := parseNumber(local)
		if err != nil {
			return port, fmt.Errorf("error parsing local port '%s': %w", local, err)
		}
		port.local = number
	}
	return port, nil
}

func parseNumber(text string) (uint16, error) {
	number, err := strconv.ParseUint(text, 10, 16)
	return uint16(number), err
}

// resolvePort returns a port of the object and its target port in the pod.
func (f *found) resolvePort(remote string) (own, target uint16, err error) {
	if f.isService() {
		return f.servicePort(remote)
	}
	if isNumber(remote) {
		number, err := parseNumber(remote)
		if err == nil && number == 0 {
			err = errors.New("remote port must be > 0")
		}
		if err != nil {
			return 0, 0, fmt.Errorf("error parsing remote port '%s': %w", remote, err)
		}
		return number, number, f.checkProtocol(number)
	}
	target, err = f.containerPort(remote)
	return target, target, err
}

func isNumber(text string) bool {
	return strings.Trim(text, "-0123456789") == ""
}

func (f *found) isService() bool {
	return f.resource.APIResource().GVR.GroupResource().String() == "services"
}

// declaredPort is a port of a service or container.
type declaredPort struct {
	Name          string `json:"name"`
	Protocol      string `json:"protocol"`
	Port          uint16 `json:"port"`
	ContainerPort uint16 `json:"containerPort"`
	TargetPort    any    `json:"targetPort"`
}

// declaredPorts returns the ports at a path of an object.
func declaredPorts(obj *unstructured.Object, path ...string) ([]declaredPort, error) {
	var ports []declaredPort
	lists, err := unstructured.GetAll[[]any](obj, path...)
	if err != nil {
		return nil, err
	}
	for _, list := range lists {
		holder := &unstructured.Object{Object: map[string]any{"ports": list}}
		decoded, err := unstructured.As[struct {
			Ports []declaredPort `json:"ports"`
		}](holder)
		if err != nil {
			return nil, err
		}
		ports = append(ports, decoded.Ports...)
	}
	return ports, nil
}

// containerPort returns the containerPort with a name.
func (f *found) containerPort(name string) (uint16, error) {
	for _, field := range []string{"containers", "initContainers"} {
		ports, err := declaredPorts(f.pod, "spec", field, "[*]", "ports")
		if err != nil {
			return 0, err
		}
		for _, port := range ports {
			if port.Name == name {
				return port.ContainerPort, protocolError(port.Protocol, name)
			}
		}
	}
	return 0, fmt.Errorf("Pod '%s' does not have a named port '%s'", f.pod.GetName(), name)
}

// checkProtocol returns an error for a port declared only with protocols other than TCP.
func (f *found) checkProtocol(number uint16) error {
	ports, err := declaredPorts(f.pod, "spec", "containers", "[*]", "ports")
	if err != nil {
		return err
	}
	ports = slices.DeleteFunc(ports, func(p declaredPort) bool { return p.ContainerPort != number })
	if len(ports) == 0 || slices.ContainsFunc(ports, func(p declaredPort) bool { return p.Protocol == "" || p.Protocol == "TCP" }) {
		return nil
	}
	return protocolError(ports[0].Protocol, strconv.Itoa(int(number)))
}

func protocolError(protocol, port string) error {
	if protocol == "" || protocol == "TCP" {
		return nil
	}
	return fmt.Errorf("%s protocol is not supported for %s", protocol, port)
}

// servicePort returns a port of the service and its target port in the pod.
func (f *found) servicePort(remote string) (own, target uint16, err error) {
	ports, err := declaredPorts(f.object, "spec", "ports")
	if err != nil {
		return 0, 0, err
	}
	number, numberErr := parseNumber(remote)
	matches := func(p declaredPort) bool {
		return numberErr == nil && p.Port == number || numberErr != nil && p.Name == remote
	}
	matching := slices.DeleteFunc(slices.Clone(ports), func(p declaredPort) bool { return !matches(p) })
	if len(matching) == 0 {
		if numberErr != nil && !isNumber(remote) {
			return 0, 0, fmt.Errorf("Service '%s' does not have a named port '%s'", f.object.GetName(), remote)
		}
		return 0, 0, fmt.Errorf("Service %s does not have a service port %s", f.object.GetName(), remote)
	}
	port := matching[0]
	if i := slices.IndexFunc(matching, func(p declaredPort) bool { return p.Protocol == "" || p.Protocol == "TCP" }); i >= 0 {
		port = matching[i]
	}
	if err := protocolError(port.Protocol, remote); err != nil {
		return 0, 0, err
	}
	clusterIP, _, err := unstructured.Get[string](f.object, "spec", "clusterIP")
	if err != nil {
		return 0, 0, err
	}
	target, err = f.targetPort(port, clusterIP == "None")
	return port.Port, target, err
}

// targetPort returns the target port of a service port. A headless service has no port mapping.
func (f *found) targetPort(port declaredPort, isHeadless bool) (uint16, error) {
	switch to := port.TargetPort.(type) {
	case string:
		if !isHeadless {
			return f.containerPort(to)
		}
	case int64:
		if !isHeadless && to > 0 && to < 1<<16 {
			return uint16(to), nil
		}
	}
	return port.Port, nil
}
