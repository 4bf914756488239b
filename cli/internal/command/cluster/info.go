// Package cluster implements cluster-info and top.
package cluster

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/unstructured"
)

// Commands returns the package's commands.
func Commands(s *command.State) []*cobra.Command {
	return []*cobra.Command{infoCommand(s), topCommand(s)}
}

func infoCommand(s *command.State) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster-info",
		Short: "Display cluster information",
		Long: "Display addresses of the control plane and services with label kubernetes.io/cluster-service=true.\n" +
			"To further debug and diagnose cluster problems, use 'anyctl cluster-info dump'.",
		Example: "  anyctl cluster-info",
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := printServices(cmd.Context(), s)
			_ = s.Printf("\nTo further debug and diagnose cluster problems, use '%s dump'.\n", cmd.CommandPath())
			return err
		},
	}
	if s.IsNamed(cmd.Name()) {
		cmd.AddCommand(dumpCommand(s))
	}
	return cmd
}

// clusterServices selects the services of the cluster itself.
const clusterServices = "kubernetes.io/cluster-service=true"

// systemNamespace is the default namespace of cluster-info.
const systemNamespace = "kube-system"

func printServices(ctx context.Context, s *command.State) error {
	services, err := s.Connection.Handle(ctx, "services")
	if err != nil {
		return err
	}
	if s.Connection.NamespaceFlag == "" {
		services = services.Namespace(systemNamespace)
	}
	cfg, err := s.Connection.Config(ctx)
	if err != nil {
		return err
	}
	page, err := services.ListPage(ctx, &metav1.ListOptions{LabelSelector: clusterServices})
	if err != nil {
		return err
	}
	if err := s.Printf("Kubernetes control plane is running at %s\n", cfg.Server); err != nil {
		return err
	}
	for _, service := range page.Items {
		name := service.GetLabels()["kubernetes.io/name"]
		if name == "" {
			name = service.GetName()
		}
		if err := s.Printf("%s is running at %s\n", name, serviceURL(cfg.Server, service)); err != nil {
			return err
		}
	}
	return nil
}

// serviceURL returns the addresses of a service's load balancer, or else the address through the API server.
func serviceURL(server string, service *unstructured.Object) string {
	ports, _ := unstructured.GetAll[int64](service, "spec", "ports", "[*]", "port")
	if ingress := nested.List(service.Object, "status", "loadBalancer", "ingress"); len(ingress) > 0 {
		host := nested.String(ingress[0], "ip")
		if host == "" {
			host = nested.String(ingress[0], "hostname")
		}
		var links strings.Builder
		for _, port := range ports {
			links.WriteString("http://" + host + ":" + itoa(port) + " ")
		}
		return links.String()
	}
	name := service.GetName()
	if len(ports) > 0 {
		portName := nested.String(nested.List(service.Object, "spec", "ports")[0], "name")
		switch {
		case portName == "https" || ports[0] == 443:
			name = "https:" + name + ":" + portName
		case portName != "":
			name += ":" + portName
		}
	}
	return server + "/api/v1/namespaces/" + service.GetNamespace() + "/services/" + name + "/proxy"
}
