package stream

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/anykind/anykind/internal/sanitize"
)

// parsePort parses a port's number. It returns isNumber false for a name, and an error for a number out of range.
func parsePort(port string) (number uint16, isNumber bool, err error) {
	parsed, err := strconv.ParseInt(port, 10, 64)
	switch {
	case port == "":
		return 0, false, errors.New("the port is empty")
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, false, nil
	case err != nil || parsed < 1 || parsed > math.MaxUint16:
		return 0, true, fmt.Errorf("port %s is out of range: ports are numbers from 1 to %d", port, math.MaxUint16)
	}
	return uint16(parsed), true, nil //nolint:gosec // in range
}

// isTCP reports whether a protocol of the API is TCP, the default.
func isTCP(protocol string) bool { return protocol == "" || protocol == "TCP" }

func protocolError(port, owner, protocol string) error {
	return fmt.Errorf("port %s of %s is %s: only TCP can be forwarded", port, owner, sanitize.Text(protocol, maxListed))
}

func portList(ports []string) string {
	if len(ports) == 0 {
		return "it has none"
	}
	return "its ports are " + sanitize.Text(strings.Join(ports, ", "), maxListed)
}

// portText returns a port in the form used in errors, such as 53/UDP (dns).
func portText(number uint16, protocol, name string) string {
	text := strconv.Itoa(int(number))
	if !isTCP(protocol) {
		text += "/" + protocol
	}
	if name != "" {
		text += " (" + name + ")"
	}
	return text
}

// containerPorts returns the ports declared by the pod's containers.
func (p *pod) containerPorts() (ports []containerPort) {
	for _, container := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		ports = append(ports, container.Ports...)
	}
	return ports
}

// namedPort returns the first TCP port with a name. Several containers may have a port of the same name.
func (p *pod) namedPort(name string) (uint16, error) {
	var named []string
	var err error
	for _, port := range p.containerPorts() {
		switch {
		case port.Name == name && isTCP(port.Protocol):
			return port.ContainerPort, nil
		case port.Name == name:
			err = protocolError(name, "pod "+p.Metadata.Name, port.Protocol)
		case port.Name != "":
			named = append(named, portText(port.ContainerPort, port.Protocol, port.Name))
		}
	}
	if err != nil {
		return 0, err
	}
	list := portList(named)
	if len(named) == 0 {
		list = "none of its ports has a name"
	}
	return 0, fmt.Errorf("pod %s has no port named %q: %s", p.Metadata.Name, name, list)
}

// checkProtocol returns an error for a port declared by the pod, but not for TCP. Ports need not be declared.
func (p *pod) checkProtocol(number uint16) error {
	var err error
	for _, port := range p.containerPorts() {
		switch {
		case port.ContainerPort != number:
		case isTCP(port.Protocol):
			return nil
		default:
			err = protocolError(strconv.Itoa(int(number)), "pod "+p.Metadata.Name, port.Protocol)
		}
	}
	return err
}

// podPort returns the pod's port behind a service's port. The service's port is given by its name or number, or by the name or
// number of its target port. For a headless service the ports are equal, as in kubectl: its clients connect to pods directly.
func (o *podOwner) podPort(ref *objectRef, port string, chosen *pod) (uint16, error) {
	number, isNumber, _ := parsePort(port)
	service, err := o.findPort(ref, port, func(p *servicePort) bool {
		return p.Name == port || isNumber && p.Port == number
	})
	if err != nil {
		return 0, err
	}
	if service != nil {
		switch target := service.TargetPort; {
		case o.Spec.ClusterIP == "None", target.Type == intstr.Int && target.IntVal == 0:
			return service.Port, nil
		case target.Type == intstr.Int:
			return uint16(target.IntVal), nil //nolint:gosec // the server validates it
		default:
			return chosen.namedPort(target.StrVal)
		}
	}
	service, err = o.findPort(ref, port, func(p *servicePort) bool {
		return p.TargetPort.Type == intstr.String && p.TargetPort.StrVal == port ||
			p.TargetPort.Type == intstr.Int && isNumber && p.TargetPort.IntVal == int32(number)
	})
	switch {
	case err != nil:
		return 0, err
	case service == nil:
		return 0, fmt.Errorf("%s has no port %s: %s", ref, port, portList(o.portNames()))
	case isNumber:
		return number, nil
	default:
		return chosen.namedPort(port)
	}
}

// findPort returns the matching TCP port, or nil. It returns an error if only ports of different protocols match.
func (o *podOwner) findPort(ref *objectRef, port string, matches func(*servicePort) bool) (*servicePort, error) {
	var err error
	for i := range o.Spec.Ports {
		switch candidate := &o.Spec.Ports[i]; {
		case !matches(candidate):
		case isTCP(candidate.Protocol):
			return candidate, nil
		default:
			err = protocolError(port, ref.String(), candidate.Protocol)
		}
	}
	return nil, err
}

// portNames returns the service's ports in the form used in errors.
func (o *podOwner) portNames() (names []string) {
	for _, port := range o.Spec.Ports {
		text := portText(port.Port, port.Protocol, port.Name)
		if target := port.TargetPort.String(); target != "0" && target != strconv.Itoa(int(port.Port)) {
			text += " to " + target
		}
		names = append(names, text)
	}
	return names
}
