// Package workload has the commands for objects of workloads: expose and autoscale.
package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/unstructured"
)

// Commands returns the package's commands.
func Commands(s *command.State) []*cobra.Command {
	return []*cobra.Command{exposeCommand(s), autoscaleCommand(s)}
}

type object = map[string]any

type exposeOptions struct {
	command.Creation
	command.Overrides

	objects resource.Finder

	name, selector, labels             string
	port, targetPort, protocol         string
	serviceType, externalIP, clusterIP string
	loadBalancerIP, sessionAffinity    string
}

func exposeCommand(s *command.State) *cobra.Command {
	o := &exposeOptions{}
	cmd := &cobra.Command{
		Use:     "expose (-f FILENAME | TYPE NAME) [--port=port] [--protocol=TCP|UDP|SCTP] [--target-port=number-or-name] [--name=name] [--external-ip=external-ip-of-service] [--type=type]",
		Short:   "Take a replication controller, service, deployment or pod and expose it as a new Kubernetes service",
		Long:    "Create a service for the pods of a deployment, replica set, replication controller, service or pod. Selector, ports and labels are those of the object unless flags have them.",
		Example: "  anyctl expose deployment web --port=80 --target-port=8000\n  anyctl expose pod web --port=444 --name=frontend",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	fs := cmd.Flags()
	o.objects.Connection = s.Connection
	o.objects.Files.In = s.In
	o.objects.Files.AddFlags(fs, "identifying the resource to expose a service")
	o.Creation.AddFlags(fs)
	o.Overrides.AddFlags(fs)
	fs.StringVar(&o.protocol, "protocol", "", "The network protocol for the service to be created. Default is 'TCP'.")
	fs.StringVar(&o.port, "port", "", "The port that the service should serve on. Copied from the resource being exposed, if unspecified")
	fs.StringVar(&o.serviceType, "type", "", "Type for this service: ClusterIP, NodePort, LoadBalancer, or ExternalName. Default is 'ClusterIP'.")
	fs.StringVar(&o.loadBalancerIP, "load-balancer-ip", "", "IP to assign to the LoadBalancer. If empty, an ephemeral IP will be created and used (cloud-provider specific).")
	fs.StringVar(&o.selector, "selector", "", "A label selector to use for this service. Only equality-based selector requirements are supported. If empty (the default) infer the selector from the resource being exposed.")
	fs.StringVarP(&o.labels, "labels", "l", "", "Labels to apply to the service created by this call.")
	fs.StringVar(&o.targetPort, "target-port", "", "Name or number for the port on the container that the service should direct traffic to. Optional.")
	fs.StringVar(&o.externalIP, "external-ip", "", "Additional external IP address (not managed by Kubernetes) to accept for the service. If this IP is routed to a node, the service can be accessed by this IP in addition to its generated service IP.")
	fs.StringVar(&o.name, "name", "", "The name for the newly created object.")
	fs.StringVar(&o.sessionAffinity, "session-affinity", "", "If non-empty, set the session affinity for the service to this; legal values: 'None', 'ClientIP'")
	fs.StringVar(&o.clusterIP, "cluster-ip", "", "ClusterIP to be assigned to the service. Leave empty to auto-allocate, or set to 'None' to create a headless service.")
	return cmd
}

func (o *exposeOptions) run(ctx context.Context, s *command.State, args []string) error {
	if err := o.Complete(s); err != nil {
		return err
	}
	var errs []error
	for info, err := range o.objects.Objects(ctx, args, true) {
		if err == nil {
			err = o.expose(ctx, s, info)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (o *exposeOptions) expose(ctx context.Context, s *command.State, info *resource.Info) error {
	service, err := o.service(info.Object)
	if err != nil {
		return err
	}
	if service, err = o.Apply(ctx, s, service); err != nil {
		return err
	}
	created, _, err := o.Create(ctx, s, service)
	if err != nil {
		return err
	}
	return o.Output.Object(created, "exposed")
}

// service returns the service for an object.
func (o *exposeOptions) service(obj *unstructured.Object) (*unstructured.Object, error) {
	kind := obj.GroupVersionKind().GroupKind().String()
	if !slices.Contains([]string{"ReplicationController", "Service", "Pod", "Deployment.apps", "ReplicaSet.apps"}, kind) {
		return nil, fmt.Errorf("cannot expose a %s", kind)
	}
	selector, err := o.selectorOf(obj)
	if err != nil {
		return nil, err
	}
	ports, err := o.ports(obj)
	if err != nil {
		return nil, err
	}
	labels := mapOf(obj.GetLabels())
	if o.labels != "" {
		if labels, err = command.ParseLabels(o.labels); err != nil {
			return nil, err
		}
	}
	name := o.name
	if name == "" {
		name = obj.GetName()
		name = name[:min(len(name), validation.DNS1035LabelMaxLength)]
	}
	metadata := object{"name": name}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	spec := object{"selector": selector}
	if len(ports) > 0 {
		spec["ports"] = ports
	}
	if err := o.addFields(spec); err != nil {
		return nil, err
	}
	return &unstructured.Object{Object: object{
		"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec, "status": object{"loadBalancer": object{}},
	}}, nil
}

// addFields adds the fields of the flags.
func (o *exposeOptions) addFields(spec object) error {
	if o.externalIP != "" {
		spec["externalIPs"] = []any{o.externalIP}
	}
	if o.serviceType != "" {
		spec["type"] = o.serviceType
	}
	if o.serviceType == "LoadBalancer" && o.loadBalancerIP != "" {
		spec["loadBalancerIP"] = o.loadBalancerIP
	}
	if o.clusterIP != "" {
		spec["clusterIP"] = o.clusterIP
	}
	switch o.sessionAffinity {
	case "":
	case "None", "ClientIP":
		spec["sessionAffinity"] = o.sessionAffinity
	default:
		return fmt.Errorf("unknown session affinity: %s", o.sessionAffinity)
	}
	return nil
}

// selectorOf returns the labels of the object's pods.
func (o *exposeOptions) selectorOf(obj *unstructured.Object) (object, error) {
	if o.selector != "" {
		return command.ParseLabels(o.selector)
	}
	fail := func(format string, args ...any) (object, error) {
		return nil, fmt.Errorf("couldn't retrieve selectors via --selector flag or introspection: %w", fmt.Errorf(format, args...))
	}
	switch kind := obj.GetKind(); kind {
	case "Pod":
		if len(obj.GetLabels()) == 0 {
			return fail("the pod has no labels and cannot be exposed")
		}
		return mapOf(obj.GetLabels()), nil
	case "Service", "ReplicationController":
		selector := nested.Map(obj.Object, "spec", "selector")
		if len(selector) == 0 && kind == "Service" {
			return fail("the service has no pod selector set")
		}
		return selector, nil
	default:
		name := map[string]string{"Deployment": "deployment", "ReplicaSet": "replicaset"}[kind]
		selector := nested.Map(obj.Object, "spec", "selector", "matchLabels")
		if len(selector) == 0 {
			return fail("invalid %s: no selectors, therefore cannot be exposed", name)
		}
		if len(nested.List(obj.Object, "spec", "selector", "matchExpressions")) > 0 {
			return fail("couldn't convert expressions to map-based selector format")
		}
		return selector, nil
	}
}

// ports returns the ports of the service: of --port, or else of the object.
func (o *exposeOptions) ports(obj *unstructured.Object) ([]any, error) {
	numbers, protocols := portsOf(obj)
	switch {
	case o.port != "":
		numbers = strings.Split(o.port, ",")
	case len(numbers) == 0 && o.clusterIP != "None":
		return nil, errors.New("couldn't find port via --port flag or introspection")
	}
	var ports []any
	for i, text := range numbers {
		number, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		name := ""
		if len(numbers) > 1 {
			name = fmt.Sprintf("port-%d", i+1)
		}
		chosen := protocols[text]
		if o.protocol != "" {
			chosen = []string{o.protocol}
		}
		if len(chosen) == 0 {
			chosen = []string{"TCP"}
		}
		for _, protocol := range chosen {
			if len(chosen) > 1 {
				name = fmt.Sprintf("port-%d-%s", i+1, strings.ToLower(protocol))
			}
			ports = append(ports, o.servicePort(name, protocol, number))
		}
	}
	return ports, nil
}

func (o *exposeOptions) servicePort(name, protocol string, number int) object {
	port := object{"port": int64(number), "protocol": protocol, "targetPort": int64(number)}
	if o.targetPort != "" {
		port["targetPort"] = o.targetPort
		if target, err := strconv.Atoi(o.targetPort); err == nil {
			port["targetPort"] = int64(target)
		}
	}
	if name != "" {
		port["name"] = name
	}
	return port
}

// portsOf returns the port numbers of an object, in order, and the protocols of each.
func portsOf(obj *unstructured.Object) (numbers []string, protocols map[string][]string) {
	protocols = map[string][]string{}
	add := func(port any, field string) {
		number := strconv.FormatInt(nested.Int(port, field), 10)
		protocol := nested.String(port, "protocol")
		if protocol == "" {
			protocol = "TCP"
		}
		if !slices.Contains(numbers, number) {
			numbers = append(numbers, number)
		}
		if !slices.Contains(protocols[number], protocol) {
			protocols[number] = append(protocols[number], protocol)
		}
	}
	if obj.GetKind() == "Service" {
		for _, port := range nested.List(obj.Object, "spec", "ports") {
			add(port, "port")
		}
		return numbers, protocols
	}
	path := []string{"spec", "template", "spec", "containers"}
	if obj.GetKind() == "Pod" {
		path = []string{"spec", "containers"}
	}
	for _, container := range nested.List(obj.Object, path...) {
		for _, port := range nested.List(container, "ports") {
			add(port, "containerPort")
		}
	}
	return numbers, protocols
}

func mapOf(labels map[string]string) object {
	values := object{}
	for key, value := range labels {
		values[key] = value
	}
	return values
}
