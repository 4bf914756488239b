package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/admin"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

func authCommand(s *command.State) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "auth",
		Short: "Inspect authorization",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(canICommand(s), whoamiCommand(s), admin.ReconcileCommand(s))
	return cmd
}

func whoamiCommand(s *command.State) *cobra.Command {
	output := print.NewFlags()
	cmd := &cobra.Command{
		Use:     "whoami",
		Short:   "Show the user that the server authenticates",
		Example: "  anyctl auth whoami\n  anyctl auth whoami -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return whoami(cmd.Context(), s, output)
		},
	}
	output.AddObjectFlags(cmd.Flags())
	return cmd
}

func whoami(ctx context.Context, s *command.State, output *print.Flags) error {
	var printer *print.Printer
	if !output.IsTable() {
		var err error
		if printer, err = output.Printer(s.Out); err != nil {
			return err
		}
	}
	client, err := s.Client(ctx)
	if err != nil {
		return err
	}
	review, err := createReview(ctx, client, "selfsubjectreviews.authentication.k8s.io", map[string]any{})
	switch {
	case apierrors.IsForbidden(err):
		return errors.New("the selfsubjectreviews API is not enabled in the cluster or you do not have permission to call it")
	case apierrors.IsNotFound(err):
		return errors.New("the selfsubjectreviews API is not enabled in the cluster")
	case err != nil:
		return err
	case printer != nil:
		return printer.Object(review)
	}
	return writeUser(s.Out, review)
}

// createReview creates a review and returns the server's response. The server does not store reviews.
func createReview(ctx context.Context, client *dynamic.Client, resource string, spec map[string]any) (*unstructured.Object, error) {
	reviews, err := client.Resource(ctx, resource)
	if err != nil {
		return nil, err
	}
	review := &unstructured.Object{Object: map[string]any{}}
	if len(spec) > 0 {
		review.Object["spec"] = spec
	}
	return reviews.Create(ctx, review, nil)
}

// writeUser writes status.userInfo of a review as a table.
func writeUser(out io.Writer, review *unstructured.Object) error {
	get := func(name string) string {
		value, _, _ := unstructured.Get[string](review, "status", "userInfo", name)
		return value
	}
	groups, _, err := unstructured.Get[[]string](review, "status", "userInfo", "groups")
	if err != nil {
		return err
	}
	extra, _, err := unstructured.Get[map[string]any](review, "status", "userInfo", "extra")
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 6, 4, 3, ' ', 0)
	fmt.Fprintln(w, "ATTRIBUTE\tVALUE")
	if name := get("username"); name != "" {
		fmt.Fprintf(w, "Username\t%s\n", name)
	}
	if uid := get("uid"); uid != "" {
		fmt.Fprintf(w, "UID\t%s\n", uid)
	}
	if len(groups) > 0 {
		fmt.Fprintf(w, "Groups\t%v\n", groups)
	}
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		fmt.Fprintf(w, "Extra: %s\t%v\n", key, extra[key])
	}
	return w.Flush()
}
