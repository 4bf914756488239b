package generate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/unstructured"
)

// serviceOptions are the options of all service types.
type serviceOptions struct {
	serviceType             string
	tcp                     []string
	clusterIP, externalName string
	nodePort                int
}

func (o *serviceOptions) generator(name, arguments, short string, addFlags func(*pflag.FlagSet)) *Generator {
	return &Generator{
		Parent: "service", Use: name + " NAME " + arguments, Short: short,
		Failure: fmt.Sprintf("failed to create %s service: ", o.serviceType),
		AddFlags: func(fs *pflag.FlagSet) {
			fs.StringSliceVar(&o.tcp, "tcp", nil, "Port pairs can be specified as '<port>:<targetPort>'.")
			if addFlags != nil {
				addFlags(fs)
			}
		},
		Generate: simple(o.generate),
	}
}

func clusterIPService() *Generator {
	o := &serviceOptions{serviceType: "ClusterIP"}
	return o.generator("clusterip", "[--tcp=<port>:<targetPort>]", "Create a ClusterIP service", func(fs *pflag.FlagSet) {
		fs.StringVar(&o.clusterIP, "clusterip", "", "Assign your own ClusterIP or set to 'None' for a 'headless' service (no loadbalancing).")
	})
}

func nodePortService() *Generator {
	o := &serviceOptions{serviceType: "NodePort"}
	return o.generator("nodeport", "[--tcp=port:targetPort]", "Create a NodePort service", func(fs *pflag.FlagSet) {
		fs.IntVar(&o.nodePort, "node-port", 0, "Port used to expose the service on each node in a cluster.")
	})
}

func loadBalancerService() *Generator {
	o := &serviceOptions{serviceType: "LoadBalancer"}
	return o.generator("loadbalancer", "[--tcp=port:targetPort]", "Create a LoadBalancer service", nil)
}

func externalNameService() *Generator {
	o := &serviceOptions{serviceType: "ExternalName"}
	g := o.generator("externalname", "--external-name external.name", "Create an ExternalName service", func(fs *pflag.FlagSet) {
		fs.StringVar(&o.externalName, "external-name", "", "External name of service")
	})
	g.Required = []string{"external-name"}
	return g
}

func (o *serviceOptions) generate(name string) (*unstructured.Object, error) {
	isExternal := o.serviceType == "ExternalName"
	if o.clusterIP != "None" && len(o.tcp) == 0 && !isExternal {
		return nil, errors.New("at least one tcp port specifier must be provided")
	}
	if isExternal && len(validation.IsDNS1123Subdomain(o.externalName)) > 0 {
		return nil, fmt.Errorf("invalid service external name %s", o.externalName)
	}
	spec := object{"type": o.serviceType, "selector": object{"app": name}}
	var ports []any
	for _, pair := range o.tcp {
		port, err := o.port(pair)
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	if len(ports) > 0 {
		spec["ports"] = ports
	}
	if isExternal {
		spec["externalName"] = o.externalName
	}
	if o.clusterIP != "" {
		spec["clusterIP"] = o.clusterIP
	}
	obj := newObject("v1", "Service", name, object{"spec": spec, "status": object{"loadBalancer": object{}}})
	return obj, unstructured.Set(obj, object{"app": name}, "metadata", "labels")
}

// port parses PORT[:TARGET].
func (o *serviceOptions) port(pair string) (object, error) {
	from, to, hasTarget := strings.Cut(pair, ":")
	number, err := strconv.ParseUint(from, 10, 16)
	if err != nil {
		return nil, err
	}
	port := object{"name": strings.ReplaceAll(pair, ":", "-"), "port": int64(number), "protocol": "TCP", "targetPort": int64(number)}
	if hasTarget {
		if port["targetPort"], err = targetPort(to); err != nil {
			return nil, err
		}
	}
	if o.nodePort != 0 {
		port["nodePort"] = int64(o.nodePort)
	}
	return port, nil
}

func targetPort(text string) (any, error) {
	var target any = text
	var problems []string
	if number, err := strconv.Atoi(text); err == nil {
		target = int64(number)
		problems = validation.IsValidPortNum(number)
	} else {
		problems = validation.IsValidPortName(text)
	}
	if len(problems) > 0 {
		return nil, errors.New(strings.Join(problems, ","))
	}
	return target, nil
}
