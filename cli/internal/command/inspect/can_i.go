package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/unstructured"
)

// canI is the command auth can-i.
type canI struct {
	*command.State

	allNamespaces, quiet, list, noHeaders bool
	subresource                           string
}

// access is the subject of a SelfSubjectAccessReview.
type access struct {
	verb, path                                         string // path is a non-resource URL
	namespace, group, version, resource, name, subPart string
}

func canICommand(s *command.State) *cobra.Command {
	c := &canI{State: s}
	cmd := &cobra.Command{
		Use:   "can-i VERB [TYPE | TYPE/NAME | NONRESOURCEURL]",
		Short: "Check whether an action is allowed",
		Long: "Check whether the user may do something: VERB is one of the API, such as get, list or delete; TYPE a resource; NONRESOURCEURL a path " +
			"that begins with a slash. The exit code is 0 for yes and 1 for no.",
		Example: "  anyctl auth can-i create pods -A\n  anyctl auth can-i get pods --subresource=log\n" +
			"  anyctl auth can-i get /logs/\n  anyctl auth can-i --list -n shop\n  anyctl auth can-i list pods --as=system:serviceaccount:dev:foo -n prod",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.validate(args); err != nil {
				return err
			}
			if c.list {
				return c.printRules(cmd.Context())
			}
			return c.check(cmd.Context(), args[0], args[1])
		},
	}
	cmd.Flags().BoolVarP(&c.allNamespaces, "all-namespaces", "A", false, "Check the action in all namespaces")
	cmd.Flags().BoolVarP(&c.quiet, "quiet", "q", false, "Print nothing and just return the exit code")
	cmd.Flags().StringVar(&c.subresource, "subresource", "", "Subresource such as log or scale")
	cmd.Flags().BoolVar(&c.list, "list", false, "Print all allowed actions")
	cmd.Flags().BoolVar(&c.noHeaders, "no-headers", false, "Print allowed actions without headers")
	return cmd
}

// validate rejects conflicting arguments and flags.
func (c *canI) validate(args []string) error {
	switch {
	case c.list && len(args) > 0:
		return errors.New("list option must be specified with no arguments")
	case c.list && (c.quiet || c.allNamespaces || c.subresource != ""):
		return errors.New("list option can't be specified with neither quiet, all-namespaces nor subresource options")
	case c.list:
		return nil
	case len(args) != 2:
		return exit.WithHelp(errors.New("you must specify two arguments: verb resource or verb resource/resourceName."),
			"\nSee 'anyctl auth can-i -h' for help and examples.")
	case strings.HasPrefix(args[1], "/") && c.subresource != "":
		return errors.New("--subresource can not be used with NonResourceURL")
	}
	return nil
}

// check reviews a single action.
func (c *canI) check(ctx context.Context, verb, what string) error {
	asked := &access{verb: verb, subPart: c.subresource}
	if strings.HasPrefix(what, "/") {
		asked.path = what
		if !isPathVerb(verb) {
			c.warn("verb '%s' is not a known verb", verb)
		}
	} else if err := c.resolve(ctx, asked, what); err != nil {
		return err
	}
	if c.noHeaders {
		return errors.New("--no-headers cannot be set without --list specified")
	}
	client, err := c.Client(ctx)
	if err != nil {
		return err
	}
	review, err := createReview(ctx, client, "selfsubjectaccessreviews.authorization.k8s.io", asked.spec())
	if err != nil {
		return err
	}
	return c.report(review)
}

// report prints yes or no. For no it returns exit code 1.
func (c *canI) report(review *unstructured.Object) error {
	allowed, _, err := unstructured.Get[bool](review, "status", "allowed")
	if err != nil {
		return err
	}
	answer := "yes"
	if !allowed {
		answer = "no"
		for _, field := range []string{"reason", "evaluationError"} {
			if why, _, _ := unstructured.Get[string](review, "status", field); why != "" {
				answer += " - " + why
			}
		}
	}
	if !c.quiet {
		if err := c.Printf("%s\n", answer); err != nil {
			return err
		}
	}
	if !allowed {
		return &exit.Error{Code: 1}
	}
	return nil
}

// warn prints a warning and, as kubectl does, an empty line.
func (c *canI) warn(format string, args ...any) {
	c.Errorf("Warning: "+format+"\n", args...)
}

// resolve sets the resource of asked. An unknown resource is sent unchanged, with a warning.
func (c *canI) resolve(ctx context.Context, asked *access, what string) error {
	typed, name, _ := strings.Cut(what, "/")
	asked.name = name
	if !c.allNamespaces {
		namespace, _, err := c.Connection.Namespace(ctx)
		if err != nil {
			return err
		}
		asked.namespace = namespace
	}
	asked.resource = typed
	if typed == "*" {
		c.warnVerb(asked.verb)
		return nil
	}
	client, err := c.Client(ctx)
	if err != nil {
		return err
	}
	found, err := c.Connection.Handle(ctx, strings.ToLower(typed))
	if err != nil {
		if _, snapshotErr := client.Discovery().Snapshot(ctx); snapshotErr != nil {
			return snapshotErr
		}
		resource, group, hasGroup := strings.Cut(strings.ToLower(typed), ".")
		switch {
		case resource == "users" || resource == "groups":
		case hasGroup:
			c.warn("the server doesn't have a resource type '%s' in group '%s'", resource, group)
		default:
			c.warn("the server doesn't have a resource type '%s'", resource)
		}
		c.warnVerb(asked.verb)
		return nil
	}
	asked.setResource(found.APIResource())
	if !found.APIResource().Namespaced && !c.allNamespaces {
		c.warnScope(found.APIResource())
	}
	c.warnVerb(asked.verb)
	return nil
}

func (c *canI) warnScope(resource *discovery.Resource) {
	if group := resource.GVR.Group; group != "" {
		c.warn("resource '%s' is not namespace scoped in group '%s'", resource.GVR.Resource, group)
		return
	}
	c.warn("resource '%s' is not namespace scoped", resource.GVR.Resource)
}

// warnVerb warns of a verb unknown to the API.
func (c *canI) warnVerb(verb string) {
	known := []string{
		"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "bind", "impersonate", "*", "approve",
		"sign", "escalate", "attest",
	}
	if !c.allNamespaces && !slices.Contains(known, verb) {
		c.warn("verb '%s' is not a known verb", verb)
	}
}

// isPathVerb reports whether verb is valid for non-resource URLs.
func isPathVerb(verb string) bool {
	return slices.Contains([]string{"get", "put", "post", "head", "options", "delete", "patch", "*"}, verb)
}

func (a *access) setResource(resource *discovery.Resource) {
	a.group = resource.GVR.Group
	a.version = resource.GVR.Version
	a.resource = resource.GVR.Resource
}

// spec returns the spec of a SelfSubjectAccessReview.
func (a *access) spec() map[string]any {
	if a.path != "" {
		return map[string]any{"nonResourceAttributes": map[string]any{"verb": a.verb, "path": a.path}}
	}
	attributes := map[string]any{}
	for name, value := range map[string]string{
		"verb": a.verb, "namespace": a.namespace, "group": a.group, "resource": a.resource, "subresource": a.subPart, "name": a.name,
	} {
		if value != "" {
			attributes[name] = value
		}
	}
	return map[string]any{"resourceAttributes": attributes}
}

// printRules prints the allowed actions of the user in a namespace.
func (c *canI) printRules(ctx context.Context) error {
	namespace, _, err := c.Connection.Namespace(ctx)
	if err != nil {
		return err
	}
	client, err := c.Client(ctx)
	if err != nil {
		return err
	}
	review, err := createReview(ctx, client, "selfsubjectrulesreviews.authorization.k8s.io", map[string]any{"namespace": namespace})
	if err != nil {
		return err
	}
	response, err := unstructured.As[struct {
		Status rulesStatus `json:"status"`
	}](review)
	if err != nil {
		return fmt.Errorf("decode the SelfSubjectRulesReview: %w", err)
	}
	if response.Status.Incomplete {
		c.Errorf("Warning: the list may be incomplete: %s", response.Status.EvaluationError)
	}
	return writeRules(c.Out, response.Status.rules(), !c.noHeaders)
}
