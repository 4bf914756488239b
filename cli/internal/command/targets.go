package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// Target is an object of a resource or, without Name, all objects matching the selectors. Resource is a handle in its namespace.
type Target struct {
	Resource *dynamic.Resource
	// Name is "" for all objects.
	Name string
}

// TargetOptions configures Targets.
type TargetOptions struct {
	Selection flags.Selection
	// Files are the files of -f, or nil. Non-empty Files replace the arguments.
	Files *flags.Files
	// All selects all objects of the types, like --all.
	All bool
	// AllowAll accepts a type without names or selectors for all its objects, as in get and describe.
	AllowAll bool
}

// Targets resolves files or arguments as kubectl does: TYPE[,TYPE] [NAME…], or TYPE/NAME…. Names are rejected with selectors or
// All.
func (s *State) Targets(ctx context.Context, args []string, opts *TargetOptions) ([]Target, error) {
	if opts.Files != nil && !opts.Files.IsEmpty() {
		return s.fileTargets(ctx, args, opts)
	}
	pairs, types, names, err := parseTargets(args)
	if err != nil {
		return nil, err
	}
	bySelector := opts.All || opts.Selection.LabelSelector != "" || opts.Selection.FieldSelector != ""
	if opts.All && (opts.Selection.LabelSelector != "" || opts.Selection.FieldSelector != "") {
		return nil, errors.New("setting 'all' parameter but found a non empty selector. ")
	}
	switch {
	case bySelector && len(names) > 0:
		return nil, errors.New("name cannot be provided when a selector is specified")
	case bySelector && len(pairs) > 0:
		return nil, errors.New("selectors and the all flag cannot be used when passing resource/name arguments")
	case bySelector && types == "":
		return nil, errors.New("at least one resource must be specified to use a selector")
	case len(pairs) > 0:
		return s.pairTargets(ctx, pairs, opts)
	case types == "":
		return nil, WithHelp(errors.New("You must provide one or more resources by argument or filename."),
			"\nExample resource specifications include:\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'\n   '<resource> <name>'\n   '<resource>'")
	}
	return s.typeTargets(ctx, types, names, bySelector || opts.AllowAll, opts)
}

// Visit calls visit for every object of the targets. It continues after errors and returns them joined, and stops if ctx is done.
// found is the number of objects.
func (s *State) Visit(ctx context.Context, targets []Target, selection *flags.Selection,
	visit func(ctx context.Context, in *dynamic.Resource, obj *unstructured.Object) error,
) (found int, err error) {
	var errs []error
	for _, target := range targets {
		for obj, err := range target.Objects(ctx, selection.ListOptions()) {
			if err != nil {
				errs = append(errs, err)
				break
			}
			found++
			if err := visit(ctx, In(target.Resource, obj), obj); err != nil {
				errs = append(errs, err)
			}
			if ctx.Err() != nil {
				return found, errors.Join(errs...)
			}
		}
	}
	return found, errors.Join(errs...)
}

// Objects yields the named object, or the objects selected by opts.
func (t Target) Objects(ctx context.Context, opts *metav1.ListOptions) func(yield func(*unstructured.Object, error) bool) {
	if t.Name == "" {
		return func(yield func(*unstructured.Object, error) bool) {
			for obj, err := range t.Resource.List(ctx, opts) {
				if err != nil {
					err = ListError(err, t.Resource, opts)
				}
				if !yield(obj, err) {
					return
				}
			}
		}
	}
	return func(yield func(*unstructured.Object, error) bool) {
		obj, err := t.Resource.Get(ctx, t.Name, nil)
		yield(obj, err)
	}
}

// In returns the handle in the namespace of obj.
func In(r *dynamic.Resource, obj *unstructured.Object) *dynamic.Resource {
	if !r.APIResource().Namespaced || obj.GetNamespace() == "" {
		return r
	}
	return r.Namespace(obj.GetNamespace())
}

type pair struct{ resource, name string }

func parseTargets(args []string) (pairs []pair, types string, names []string, err error) {
	slashes := 0
	for _, arg := range args {
		if strings.Contains(arg, "/") {
			slashes++
		}
	}
	if slashes == 0 {
		if len(args) == 0 {
			return nil, "", nil, nil
		}
		return nil, args[0], args[1:], nil
	}
	if slashes != len(args) {
		return nil, "", nil, errors.New("there is no need to specify a resource type as a separate argument when passing arguments in resource/name form " +
			"(e.g. 'anyctl get resource/<resource_name>' instead of 'anyctl get resource resource/<resource_name>'")
	}
	for _, arg := range args {
		parts := strings.Split(arg, "/")
		if len(parts) != 2 {
			return nil, "", nil, errors.New("arguments in resource/name form may not have more than one slash")
		}
		if parts[0] == "" || parts[1] == "" || strings.Contains(parts[0], ",") {
			return nil, "", nil, errors.New("arguments in resource/name form must have a single resource and name")
		}
		pairs = append(pairs, pair{parts[0], parts[1]})
	}
	return pairs, "", nil, nil
}

func (s *State) pairTargets(ctx context.Context, pairs []pair, opts *TargetOptions) ([]Target, error) {
	handles := map[string]*dynamic.Resource{}
	targets := make([]Target, 0, len(pairs))
	for _, pair := range pairs {
		handle, ok := handles[pair.resource]
		if !ok {
			var err error
			if handle, err = s.Connection.Handle(ctx, pair.resource); err != nil {
				return nil, err
			}
			handles[pair.resource] = handle
		}
		if err := namedInOneNamespace(handle, opts); err != nil {
			return nil, err
		}
		targets = append(targets, Target{Resource: handle, Name: pair.name})
	}
	return targets, nil
}

func namedInOneNamespace(handle *dynamic.Resource, opts *TargetOptions) error {
	if opts.Selection.AllNamespaces && handle.APIResource().Namespaced {
		return errors.New("a resource cannot be retrieved by name across all namespaces")
	}
	return nil
}

func (s *State) typeTargets(ctx context.Context, types string, names []string, allowAll bool, opts *TargetOptions) ([]Target, error) {
	handles, err := s.Connection.Handles(ctx, types)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 && !allowAll {
		return nil, fmt.Errorf("resource(s) were provided, but no name was specified")
	}
	var targets []Target
	for _, handle := range handles {
		if len(names) == 0 {
			if opts.Selection.AllNamespaces {
				handle = handle.AllNamespaces()
			}
			targets = append(targets, Target{Resource: handle})
			continue
		}
		if err := namedInOneNamespace(handle, opts); err != nil {
			return nil, err
		}
		for _, name := range names {
			targets = append(targets, Target{Resource: handle, Name: name})
		}
	}
	return targets, nil
}

// fileTargets returns the objects named in files. A label selector is matched with the labels of the stored objects.
func (s *State) fileTargets(ctx context.Context, args []string, opts *TargetOptions) ([]Target, error) {
	objects, err := ReadFiles(ctx, opts.Files, args)
	if err != nil {
		return nil, err
	}
	selector, err := parseSelector(opts.Selection.LabelSelector)
	if err != nil {
		return nil, err
	}
	resolver, err := s.NewFileResolver(ctx)
	if err != nil {
		return nil, err
	}
	var targets []Target
	for _, obj := range objects {
		found, err := resolver.Resolve(ctx, obj)
		if err != nil {
			return nil, err
		}
		if !selector.Empty() {
			stored, err := found.Resource.Metadata().Get(ctx, obj.GetName(), nil)
			if err != nil {
				return nil, err
			}
			if !selector.Matches(labels.Set(stored.GetLabels())) {
				continue
			}
		}
		targets = append(targets, Target{Resource: found.Resource, Name: obj.GetName()})
	}
	return targets, nil
}
