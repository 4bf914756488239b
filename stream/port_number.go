package stream

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/anykind/anykind/internal/sanitize"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// maxListed is how long a list of what there is may be in an error.
const maxListed = 300

// parsePort parses a port's number. It reports numeric false for what can only be a name, and an error for a number that is
// no port's.
func parsePort(port string) (number uint16, numeric bool, err error) {
	parsed, err := strconv.ParseInt(port, 10, 64)
	switch {
	case port == "":
		return 0, false, errors.New("portforward: the port is empty")
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, false, nil
	case err != nil || parsed < 1 || parsed > math.MaxUint16:
		return 0, true, fmt.Errorf("portforward: port %s is out of range: ports are numbers from 1 to %d", port, math.MaxUint16)
	}
	return uint16(parsed), true, nil //nolint:gosec // in range
}

// isTCP reports whether a protocol of the API is TCP, which is its default.
func isTCP(protocol string) bool { return protocol == "" || protocol == "TCP" }

// protocolError is the error of a port that is not a TCP port.
func protocolError(port, owner, protocol string) error {
	return fmt.Errorf("portforward: port %s of %s is %s: only TCP can be forwarded",
		port, owner, sanitize.Text(protocol, maxListed))
}

// portList lists ports for an error.
func portList(ports []string) string {
	if len(ports) == 0 {
		return "it has none"
	}
	return "its ports are " + sanitize.Text(strings.Join(ports, ", "), maxListed)
}

// named returns a port as an error lists it, such as 53/UDP (dns).
func named(number uint16, protocol, name string) string {
	text := strconv.Itoa(int(number))
	if !isTCP(protocol) {
		text += "/" + protocol
	}
	if name != "" {
		text += " (" + name + ")"
	}
	return text
}

// containerPorts returns the ports that the pod's containers declare.
func (p *pod) containerPorts() (ports []containerPort) {
	for _, container := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		ports = append(ports, container.Ports...)
	}
	return ports
}

// port returns the number of the port with a name.
func (p *pod) port(name string) (uint16, error) {
	var known []string
	for _, port := range p.containerPorts() {
		if port.Name == name {
			if !isTCP(port.Protocol) {
				return 0, protocolError(name, "pod "+p.Metadata.Name, port.Protocol)
			}
			return port.ContainerPort, nil
		}
		if port.Name != "" {
			known = append(known, named(port.ContainerPort, port.Protocol, port.Name))
		}
	}
	list := portList(known)
	if len(known) == 0 {
		list = "none of its ports has a name"
	}
	return 0, fmt.Errorf("portforward: pod %s has no port named %q: %s", p.Metadata.Name, name, list)
}

// checkProtocol returns an error if the pod declares a port, and not for TCP. Ports need not be declared.
func (p *pod) checkProtocol(number uint16) error {
	var other string
	for _, port := range p.containerPorts() {
		if port.ContainerPort != number {
			continue
		}
		if isTCP(port.Protocol) {
			return nil
		}
		other = port.Protocol
	}
	if other == "" {
		return nil
	}
	return protocolError(strconv.Itoa(int(number)), "pod "+p.Metadata.Name, other)
}

type servicePort struct {
	Name, Protocol string
	Port           uint16
	TargetPort     intstr.IntOrString
}

// podPort returns the port of a pod behind a service's port, which is given by its name or number, or else by the name or
// number of its target port. The port behind a headless service's is the port itself, as in kubectl: clients of such a
// service talk to the pods without the service between.
func (g *group) podPort(of *place, port string, chosen *pod) (uint16, error) {
	number, numeric, _ := parsePort(port)
	served, err := g.findPort(of, port, func(p *servicePort) bool {
		return p.Name == port || numeric && p.Port == number
	})
	if err != nil {
		return 0, err
	}
	if served != nil {
		switch target := served.TargetPort; {
		case g.Spec.ClusterIP == "None", target.Type == intstr.Int && target.IntVal == 0:
			return served.Port, nil
		case target.Type == intstr.Int:
			return uint16(target.IntVal), nil //nolint:gosec // the server checks that it is a port
		default:
			return chosen.port(target.StrVal)
		}
	}
	served, err = g.findPort(of, port, func(p *servicePort) bool {
		return p.TargetPort.Type == intstr.String && p.TargetPort.StrVal == port ||
			p.TargetPort.Type == intstr.Int && numeric && p.TargetPort.IntVal == int32(number)
	})
	switch {
	case err != nil:
		return 0, err
	case served == nil:
		return 0, fmt.Errorf("portforward: %s has no port %s: %s", of, port, portList(g.portNames()))
	case numeric:
		return number, nil
	default:
		return chosen.port(port)
	}
}

// findPort returns the TCP port that matches; nil if none does, and an error if that is because of its protocol.
func (g *group) findPort(of *place, port string, matches func(*servicePort) bool) (*servicePort, error) {
	var other *servicePort
	for i := range g.Spec.Ports {
		switch served := &g.Spec.Ports[i]; {
		case !matches(served):
		case isTCP(served.Protocol):
			return served, nil
		default:
			other = served
		}
	}
	if other != nil {
		return nil, protocolError(port, of.String(), other.Protocol)
	}
	return nil, nil
}

// portNames returns the service's ports as an error lists them.
func (g *group) portNames() (names []string) {
	for _, served := range g.Spec.Ports {
		text := named(served.Port, served.Protocol, served.Name)
		if target := served.TargetPort.String(); target != "0" && target != strconv.Itoa(int(served.Port)) {
			text += " to " + target
		}
		names = append(names, text)
	}
	return names
}
