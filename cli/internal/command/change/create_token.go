package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/unstructured"
)

type tokenOptions struct {
	output    command.Output
	audiences []string
	duration  time.Duration
	// The token is bound to this object: deleting the object invalidates the token.
	boundKind, boundName, boundUID string
}

func tokenCommand(s *command.State) *cobra.Command {
	o := &tokenOptions{}
	cmd := &cobra.Command{
		Use:     "token SERVICE_ACCOUNT_NAME",
		Short:   "Request a service account token",
		Example: "  anyctl create token myapp\n  anyctl create token myapp --duration 10m --audience https://example.com",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, _, err := nameAndCommand(cmd, args)
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), s, name)
		},
	}
	fs := cmd.Flags()
	o.output.AddFlags(fs)
	fs.StringArrayVar(&o.audiences, "audience", nil, "Audience of the requested token. If unset, defaults to requesting a token for use with the Kubernetes API server. May be repeated to request a token valid for multiple audiences.")
	fs.DurationVar(&o.duration, "duration", 0, "Requested lifetime of the issued token. If not set or if set to 0, the lifetime will be determined by the server automatically. The server may return a token with a longer or shorter lifetime.")
	fs.StringVar(&o.boundKind, "bound-object-kind", "", "Kind of an object to bind the token to. Supported kinds are Node, Pod, Secret. If set, --bound-object-name must be provided.")
	fs.StringVar(&o.boundName, "bound-object-name", "", "Name of an object to bind the token to. The token will expire when the object is deleted. Requires --bound-object-kind.")
	fs.StringVar(&o.boundUID, "bound-object-uid", "", "UID of an object to bind the token to. Requires --bound-object-kind and --bound-object-name. If unset, the UID of the existing object is used.")
	return cmd
}

func (o *tokenOptions) validate() error {
	switch {
	case o.duration < 0:
		return errors.New("--duration must be greater than or equal to 0")
	case o.duration%time.Second != 0:
		return errors.New("--duration cannot be expressed in units less than seconds")
	case slices.Contains(o.audiences, ""):
		return errors.New("--audience must not be an empty string")
	case o.boundKind == "" && o.boundName != "":
		return errors.New("--bound-object-name can only be set if --bound-object-kind is provided")
	case o.boundKind == "" && o.boundUID != "":
		return errors.New("--bound-object-uid can only be set if --bound-object-kind is provided")
	case o.boundKind != "" && !slices.Contains([]string{"Node", "Pod", "Secret"}, o.boundKind):
		return errors.New("supported --bound-object-kind values are Node, Pod, Secret")
	case o.boundKind != "" && o.boundName == "":
		return errors.New("--bound-object-name is required if --bound-object-kind is provided")
	}
	return nil
}

func (o *tokenOptions) run(ctx context.Context, s *command.State, name string) error {
	if err := o.validate(); err != nil {
		return err
	}
	if err := o.output.Complete(s.Out, flags.DryRunNone); err != nil {
		return err
	}
	accounts, err := s.Connection.Handle(ctx, "serviceaccounts")
	if err != nil {
		return err
	}
	response, err := accounts.Named(name).Subresource("token").Create(ctx, o.request(), &metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("failed to create token: %s", command.ServerMessage(err))
	}
	if o.output.Output != "" {
		return o.output.Object(response, "")
	}
	token, found, err := unstructured.Get[string](response, "status", "token")
	if err != nil || !found || token == "" {
		return errors.New("failed to create token: no token in server response")
	}
	if printable.IsTerminal(s.Out) {
		return s.Printf("%s\n", token)
	}
	return s.Printf("%s", token)
}

func (o *tokenOptions) request() *unstructured.Object {
	spec := map[string]any{}
	if len(o.audiences) > 0 {
		audiences := make([]any, len(o.audiences))
		for i, audience := range o.audiences {
			audiences[i] = audience
		}
		spec["audiences"] = audiences
	}
	if o.duration > 0 {
		spec["expirationSeconds"] = int64(o.duration / time.Second)
	}
	if o.boundKind != "" {
		reference := map[string]any{"kind": o.boundKind, "apiVersion": "v1", "name": o.boundName}
		if o.boundUID != "" {
			reference["uid"] = o.boundUID
		}
		spec["boundObjectRef"] = reference
	}
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec,
	}}
}
