package config

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/transport/kubeconfig/edit"
)

// clusterOptions are the flags of set-cluster except the connection flags.
type clusterOptions struct {
	embed    bool
	proxyURL string
}

func newSetCluster(s *command.State) *cobra.Command {
	o := &clusterOptions{}
	cmd := &cobra.Command{
		Use:               "set-cluster NAME [--server=server] [--certificate-authority=path/to/certificate/authority] [--insecure-skip-tls-verify=true] [--tls-server-name=example.com]",
		Short:             "Set a cluster entry in kubeconfig",
		Long:              "Set a cluster entry in kubeconfig. An existing entry keeps the fields that no flag names.",
		ValidArgsFunction: s.Connection.CompleteClusters,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.UsageError(cmd, "Unexpected args: %v", args)
			}
			if err := o.validate(s, args[0]); err != nil {
				return err
			}
			return o.run(cmd, s, args[0])
		},
	}
	cmd.Flags().BoolVar(&o.embed, "embed-certs", false, "embed-certs for the cluster entry in kubeconfig")
	cmd.Flags().StringVar(&o.proxyURL, "proxy-url", "", "proxy-url for the cluster entry in kubeconfig")
	return cmd
}

func (o *clusterOptions) validate(s *command.State, name string) error {
	authority := s.Connection.CertificateAuthority
	switch {
	case name == "":
		return errors.New("you must specify a non-empty cluster name")
	case s.Connection.Insecure && authority != "":
		return errors.New("you cannot specify a certificate authority and insecure mode at the same time")
	case o.embed && authority == "":
		return errors.New("you must specify a --certificate-authority to embed")
	case o.embed:
		if _, err := os.Stat(authority); err != nil {
			return fmt.Errorf("could not stat certificate-authority file %s: %w", authority, err)
		}
	}
	return nil
}

func (o *clusterOptions) run(cmd *cobra.Command, s *command.State, name string) error {
	file, err := loadFile(s)
	if err != nil {
		return err
	}
	entry := file.Clusters[name]
	path, err := entryFile(s, entry.Origin)
	if err != nil {
		return err
	}
	if err := o.change(cmd, s, path, &entry); err != nil {
		return err
	}
	if err := putCluster(cmd.Context(), path, name, entry); err != nil {
		return err
	}
	return s.Printf("Cluster %q set.\n", name)
}

// change sets the fields of the changed flags. A certificate authority and insecure mode exclude each other.
func (o *clusterOptions) change(cmd *cobra.Command, s *command.State, path string, entry *kubeconfig.Cluster) (err error) {
	flags := cmd.Flags()
	c := s.Connection
	if flags.Changed("server") {
		entry.Server = c.Server
		entry.TLSServerName = ""
	}
	if flags.Changed("tls-server-name") {
		entry.TLSServerName = c.TLSServerName
	}
	if flags.Changed("insecure-skip-tls-verify") {
		if entry.InsecureSkipTLSVerify = c.Insecure; c.Insecure {
			entry.CertificateAuthority = ""
			entry.CertificateAuthorityData = nil
		}
	}
	if flags.Changed("proxy-url") {
		entry.ProxyURL = kubeconfig.NewSecret(o.proxyURL)
	}
	switch {
	case !flags.Changed("certificate-authority"):
	case o.embed:
		entry.CertificateAuthority = ""
		entry.InsecureSkipTLSVerify = false
		entry.CertificateAuthorityData, err = os.ReadFile(c.CertificateAuthority)
	default:
		if entry.CertificateAuthority, err = inFolder(path, c.CertificateAuthority); c.CertificateAuthority != "" {
			entry.InsecureSkipTLSVerify = false
			entry.CertificateAuthorityData = nil
		}
	}
	return err
}

func putCluster(ctx context.Context, path, name string, entry kubeconfig.Cluster) error {
	return edit.File(ctx, path, func(document *edit.Document) error {
		return document.Put(&kubeconfig.File{Clusters: map[string]kubeconfig.Cluster{name: entry}})
	})
}
