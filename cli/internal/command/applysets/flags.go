// Package applysets implements --applyset of apply and delete, and the command status.
package applysets

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/dynamic"
)

// Flags has the value of --applyset.
type Flags struct {
	parent string
}

// AddFlags defines --applyset in fs. purpose completes its help.
func (f *Flags) AddFlags(fs *pflag.FlagSet, purpose string) {
	fs.StringVar(&f.parent, "applyset", "", "The set of objects "+purpose+", named by its parent: [RESOURCE[.GROUP]/]NAME. The parent is a Secret by default, in the namespace of --namespace.")
}

// IsSet reports whether the flag is given.
func (f *Flags) IsSet() bool { return f.parent != "" }

// Open returns the set. defaults are the defaults of its writes.
func (f *Flags) Open(ctx context.Context, s *command.State, defaults *dynamic.Defaults) (*applyset.Set, error) {
	parent, err := f.parse(ctx, s)
	if err != nil {
		return nil, err
	}
	client, err := s.Client(ctx)
	if err != nil {
		return nil, err
	}
	namespace, _, err := s.Connection.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	return applyset.New(client.WithDefaults(defaults), parent, &applyset.Options{Namespace: namespace}), nil
}

func (f *Flags) parse(ctx context.Context, s *command.State) (parent applyset.Parent, err error) {
	resource, name, hasResource := strings.Cut(f.parent, "/")
	isNamespaced := true
	if !hasResource {
		name = resource
	}
	if name == "" {
		return parent, fmt.Errorf("invalid parent reference %q: name cannot be blank", f.parent)
	}
	if hasResource {
		handle, err := s.Connection.Handle(ctx, resource)
		if err != nil {
			return parent, fmt.Errorf("invalid parent reference %q: %w", f.parent, err)
		}
		parent.Kind = handle.APIResource().GVK.GroupKind()
		isNamespaced = handle.APIResource().Namespaced
	}
	parent.Name = name
	if isNamespaced {
		parent.Namespace = s.Connection.NamespaceFlag
		if parent.Namespace == "" {
			return parent, errors.New("namespace is required to use namespace-scoped ApplySet")
		}
	}
	return parent, nil
}
