package resource

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// Target is an object of a resource or, without Name, all objects matching the selectors. Resource is a handle in its namespace.
type Target struct {
	Resource *dynamic.Resource
	// Name is "" for all objects.
	Name string
}

// Targets are the targets of a command line.
type Targets []Target

// Objects yields the objects of all targets, as [Target.Objects] does. It continues with the next target after an error.
func (ts Targets) Objects(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[*unstructured.Object, error] {
	return func(yield func(*unstructured.Object, error) bool) {
		for _, t := range ts {
			for obj, err := range t.Objects(ctx, opts) {
				if !yield(obj, err) {
					return
				}
			}
		}
	}
}

// Targets returns what the arguments TYPE[,TYPE] [NAME…] or TYPE/NAME…, or Files name. It sends no request for objects, except for
// a label selector with files: the selector is matched with the labels of the stored objects.
func (f *Finder) Targets(ctx context.Context, args []string) (Targets, error) {
	if !f.Files.IsEmpty() {
		return f.fileTargets(ctx, args)
	}
	pairs, types, names, err := parseTargets(args)
	if err != nil {
		return nil, err
	}
	hasSelector := strings.TrimSpace(f.Selection.LabelSelector+f.Selection.FieldSelector) != "" // a blank selector matches all objects
	isStrict := f.All && f.RejectNamesWithAll
	bySelector := isStrict || hasSelector
	switch {
	case isStrict && hasSelector:
		return nil, errors.New("setting 'all' parameter but found a non empty selector. ")
	case bySelector && len(names) > 0:
		return nil, errors.New("name cannot be provided when a selector is specified")
	case bySelector && len(pairs) > 0:
		return nil, errors.New("selectors and the all flag cannot be used when passing resource/name arguments")
	case bySelector && types == "":
		return nil, errors.New("at least one resource must be specified to use a selector")
	case len(pairs) > 0:
		return f.pairTargets(ctx, pairs)
	case types == "":
		return nil, exit.WithHelp(errors.New("You must provide one or more resources by argument or filename."),
			"\nExample resource specifications include:\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'\n   '<resource> <name>'\n   '<resource>'")
	}
	return f.typeTargets(ctx, types, names, bySelector || f.AllowTypes || f.All || strings.TrimSpace(f.Where) != "")
}

// Visit calls visit for every object of targets for which Where holds. It continues after errors and returns them joined, and stops if ctx is done.
// found is the number of objects.
func (f *Finder) Visit(ctx context.Context, targets []Target,
	visit func(ctx context.Context, in *dynamic.Resource, obj *unstructured.Object) error,
) (found int, err error) {
	where, err := print.ParseWhere(f.Where)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, target := range targets {
		for obj, err := range target.Objects(ctx, f.Selection.ListOptions()) {
			if err != nil {
				errs = append(errs, err)
				break
			}
			if ctx.Err() != nil {
				return found, errors.Join(append(errs, contextError(ctx))...)
			}
			keep, err := where.Match(obj)
			switch {
			case err != nil:
				errs = append(errs, err)
				continue
			case !keep:
				continue
			}
			found++
			if err := visit(ctx, In(target.Resource, obj), obj); err != nil {
				errs = append(errs, err)
				if ctx.Err() != nil {
					return found, errors.Join(errs...)
				}
			}
		}
	}
	return found, errors.Join(errs...)
}

// NoneFound returns the text for targets without an object, such as "No resources found in default namespace."
func (f *Finder) NoneFound(ctx context.Context, targets []Target) (string, error) {
	isClusterScoped := func(t Target) bool { return !t.Resource.APIResource().Namespaced }
	if f.Selection.AllNamespaces || slices.ContainsFunc(targets, isClusterScoped) {
		return "No resources found", nil
	}
	namespace, _, err := f.Connection.Namespace(ctx)
	return fmt.Sprintf("No resources found in %s namespace.", namespace), err
}

// Objects yields the named object, or the objects selected by opts.
func (t Target) Objects(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[*unstructured.Object, error] {
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
		yield(obj, getError(ctx, t.Resource, err))
	}
}

// Rows yields the row of the named object, or the rows of the objects selected by opts. include is that of [dynamic.Handle.Tables].
func (t Target) Rows(ctx context.Context, include metav1.IncludeObjectPolicy, opts *metav1.ListOptions) iter.Seq2[*dynamic.TableRow, error] {
	tables := t.Resource.Tables(include)
	return func(yield func(*dynamic.TableRow, error) bool) {
		if t.Name != "" {
			row, err := tables.Get(ctx, t.Name, nil)
			yield(row, getError(ctx, t.Resource, err))
			return
		}
		for row, err := range tables.List(ctx, opts) {
			if err != nil {
				err = ListError(err, t.Resource, opts)
			}
			if !yield(row, err) {
				return
			}
		}
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
		if slices.Contains(args[1:], "") { // a Target without a name is all objects
			return nil, "", nil, errors.New("resource name may not be empty")
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

func (f *Finder) pairTargets(ctx context.Context, pairs []pair) ([]Target, error) {
	handles := map[string]*dynamic.Resource{}
	targets := make([]Target, 0, len(pairs))
	for _, pair := range pairs {
		handle, ok := handles[pair.resource]
		if !ok {
			var err error
			if handle, err = f.Connection.Handle(ctx, pair.resource); err != nil {
				return nil, err
			}
			handles[pair.resource] = handle
		}
		if err := f.namedInOneNamespace(handle); err != nil {
			return nil, err
		}
		targets = append(targets, Target{Resource: handle, Name: pair.name})
	}
	return targets, nil
}

func (f *Finder) namedInOneNamespace(handle *dynamic.Resource) error {
	if f.Selection.AllNamespaces && handle.APIResource().Namespaced {
		return errors.New("a resource cannot be retrieved by name across all namespaces")
	}
	return nil
}

func (f *Finder) typeTargets(ctx context.Context, types string, names []string, allowAll bool) ([]Target, error) {
	handles, err := f.Connection.Handles(ctx, types)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 && !allowAll {
		return nil, errors.New("resource(s) were provided, but no name was specified")
	}
	var targets []Target
	for _, handle := range handles {
		if len(names) == 0 {
			if f.Selection.AllNamespaces {
				handle = handle.AllNamespaces()
			}
			targets = append(targets, Target{Resource: handle})
			continue
		}
		if err := f.namedInOneNamespace(handle); err != nil {
			return nil, err
		}
		for _, name := range names {
			targets = append(targets, Target{Resource: handle, Name: name})
		}
	}
	return targets, nil
}

// fileTargets returns the objects named in files. A label selector is matched with the labels of the stored objects.
func (f *Finder) fileTargets(ctx context.Context, args []string) ([]Target, error) {
	objects, err := ReadFiles(ctx, &f.Files, args)
	if err != nil {
		return nil, err
	}
	selector, err := parseSelector(f.Selection.LabelSelector)
	if err != nil {
		return nil, err
	}
	resolver, err := NewResolver(ctx, f.Connection)
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
