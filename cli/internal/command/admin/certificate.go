package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

func certificateCommand(s *command.State) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certificate SUBCOMMAND",
		Short: "Modify certificate resources",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	approve := &decision{verb: "approve", condition: "Approved", opposite: "Denied", reason: "KubectlApprove", operation: "approved"}
	deny := &decision{verb: "deny", condition: "Denied", opposite: "Approved", reason: "KubectlDeny", operation: "denied"}
	cmd.AddCommand(approve.command(s), deny.command(s))
	return cmd
}

// decision approves or denies certificate signing requests. The reasons of the condition are kubectl's, since programs compare them.
type decision struct {
	verb, condition, opposite, reason, operation string

	objects resource.Finder
	output  command.Output
	force   bool
}

func (d *decision) command(s *command.State) *cobra.Command {
	long := "Deny a certificate signing request: no certificate is issued for it."
	if d.verb == "approve" {
		long = "Approve a certificate signing request. A controller then issues a certificate with the requested attributes.\n\n" +
			"The certificate can give access to the cluster: look at the requested attributes before the approval."
	}
	cmd := &cobra.Command{
		Use:     d.verb + " (-f FILENAME | NAME)",
		Short:   map[string]string{"approve": "Approve", "deny": "Deny"}[d.verb] + " a certificate signing request",
		Long:    long,
		Example: "  anyctl certificate " + d.verb + " csr-sqgzp",
		RunE:    func(cmd *cobra.Command, args []string) error { return d.run(cmd, s, args) },
	}
	fs := cmd.Flags()
	d.objects.Connection = s.Connection
	d.objects.Files.In = s.In
	d.objects.Files.AddFlags(fs, "identifying the resource to update")
	d.output.AddFlags(fs)
	fs.BoolVar(&d.force, "force", false, "Update the CSR even if it is already "+d.operation+".")
	return cmd
}

func (d *decision) run(cmd *cobra.Command, s *command.State, args []string) error {
	if err := d.output.Complete(s.Out, flags.DryRunNone); err != nil {
		return err
	}
	switch {
	case len(args) > 0:
		args = append([]string{"certificatesigningrequests"}, args...)
	case d.objects.Files.IsEmpty():
		return errors.New("one or more CSRs must be specified as <name> or -f <filename>")
	}
	ctx := cmd.Context()
	count := 0
	var errs []error
	for request, err := range d.objects.Objects(ctx, args, true) {
		if err == nil {
			err = d.decide(ctx, request, cmd.Root().Name())
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		count++
	}
	if count == 0 && len(errs) == 0 {
		return s.Printf("No resources found\n")
	}
	return errors.Join(errs...)
}

func (d *decision) decide(ctx context.Context, request *resource.Info, program string) error {
	if kind := request.Object.GroupVersionKind().GroupKind().String(); kind != "CertificateSigningRequest.certificates.k8s.io" {
		return fmt.Errorf("can only handle CertificateSigningRequest.certificates.k8s.io objects, got %s", kind)
	}
	obj := request.Object
	err := dynamic.RetryOnConflict(ctx, func(ctx context.Context) error {
		hasCondition, err := d.addCondition(obj, program)
		if err != nil || hasCondition && !d.force {
			return err
		}
		updated, err := request.Resource.Subresource("approval").Update(ctx, obj, nil)
		if err == nil {
			obj = updated
			return nil
		}
		if current, getErr := request.Resource.Get(ctx, request.Name, nil); getErr == nil {
			obj = current
		}
		return err
	})
	if err != nil {
		return err
	}
	return d.output.Object(obj, d.operation)
}

// addCondition adds the condition, and reports whether the object had it.
func (d *decision) addCondition(obj *unstructured.Object, program string) (hasCondition bool, err error) {
	conditions := nested.List(obj.Object, "status", "conditions")
	for _, condition := range conditions {
		switch nested.String(condition, "type") {
		case d.opposite:
			return false, fmt.Errorf("certificate signing request %q is already %s", obj.GetName(), d.opposite)
		case d.condition:
			return true, nil
		}
	}
	return false, unstructured.Set(obj, append(conditions, map[string]any{
		"type": d.condition, "status": "True", "reason": d.reason,
		"message":        fmt.Sprintf("This CSR was %s by %s certificate %s.", d.operation, program, d.verb),
		"lastUpdateTime": time.Now().UTC().Format(time.RFC3339),
	}), "status", "conditions")
}
