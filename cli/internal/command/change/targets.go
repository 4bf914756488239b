package change

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// objectArgs selects the objects of a command by arguments, selectors or files.
type objectArgs struct {
	files     flags.Files
	selection flags.Selection
	// all accepts a type without names for all its objects, like --all.
	all bool
	// isStrict rejects names and selectors together with --all.
	isStrict bool
	// allowTypes accepts a type without names for all its objects.
	allowTypes bool
	// definitionsLast resolves the resources of all objects in files first, and yields CustomResourceDefinitions last: deleting a
	// definition deletes its objects.
	definitionsLast bool
	// isLocal sends no request. The objects are read from files.
	isLocal bool
}

func (a *objectArgs) addFiles(fs *pflag.FlagSet, s *command.State, contents string) {
	a.files.In = s.In
	a.files.AddFlags(fs, contents)
}

func (a *objectArgs) addLabelSelector(fs *pflag.FlagSet) {
	fs.StringVarP(&a.selection.LabelSelector, "selector", "l", "", "Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
}

func (a *objectArgs) addAll(fs *pflag.FlagSet) {
	fs.BoolVar(&a.all, "all", false, "Select all resources, in the namespace of the specified resource types.")
}

// target is an object of a command.
type target struct {
	// resource is a handle in the object's namespace. It is nil for local objects.
	resource *dynamic.Resource
	name     string
	// namespace is the object's namespace, or "" for a cluster-scoped object.
	namespace string
	// object is the server's version or, if not read, the manifest. It is nil for an unread object selected by name.
	object *unstructured.Object
	source string // manifest file
}

// String returns the target in the form of messages: deployments.apps "web".
func (t *target) String() string {
	if t.resource == nil {
		return fmt.Sprintf("%s %q", t.object.GetKind(), t.name)
	}
	return fmt.Sprintf("%s %q", t.resource, t.name)
}

// each yields the objects. It continues after errors unless ctx is done. An error has a target without an object, or a nil target
// if the name is unknown. With read, every object is read from the server.
func (a *objectArgs) each(ctx context.Context, s *command.State, args []string, read bool) iter.Seq2[*target, error] {
	if !a.files.IsEmpty() {
		return a.fromFiles(ctx, s, args, read)
	}
	return a.fromArgs(ctx, s, args, read)
}

func (a *objectArgs) fromArgs(ctx context.Context, s *command.State, args []string, read bool) iter.Seq2[*target, error] {
	return func(yield func(*target, error) bool) {
		found, err := s.Targets(ctx, args, &command.TargetOptions{Selection: a.selection, All: a.all && a.isStrict, AllowAll: a.allowTypes || a.all})
		if err != nil {
			yield(nil, err)
			return
		}
		namespace, _, err := s.Connection.Namespace(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, t := range found {
			if t.Name != "" && !read {
				if !yield(namedTarget(t.Resource, t.Name, namespace), nil) {
					return
				}
				continue
			}
			for obj, err := range t.Objects(ctx, a.selection.ListOptions()) {
				found := newTarget(t.Resource, obj, "", namespace)
				if err != nil {
					found = unreadTarget(&t, namespace)
				}
				if !yield(found, err) {
					return
				}
			}
		}
	}
}

// newTarget returns the target of obj, or nil for nil. namespace is the default for an object without a namespace.
func newTarget(resource *dynamic.Resource, obj *unstructured.Object, source, namespace string) *target {
	if obj == nil {
		return nil
	}
	if own := obj.GetNamespace(); own != "" {
		namespace = own
	}
	t := namedTarget(command.In(resource, obj), obj.GetName(), namespace)
	t.object = obj
	t.source = source
	return t
}

// unreadTarget returns the target of an unreadable object, or nil for a list.
func unreadTarget(t *command.Target, namespace string) *target {
	if t.Name == "" {
		return nil
	}
	return namedTarget(t.Resource, t.Name, namespace)
}

func namedTarget(resource *dynamic.Resource, name, namespace string) *target {
	if !resource.APIResource().Namespaced {
		namespace = ""
	}
	return &target{resource: resource, name: name, namespace: namespace}
}

func (a *objectArgs) fromFiles(ctx context.Context, s *command.State, args []string, read bool) iter.Seq2[*target, error] {
	return func(yield func(*target, error) bool) {
		objects, readErr := a.readFiles(ctx, args)
		find, err := a.finder(ctx, s)
		if err != nil {
			yield(nil, err)
			return
		}
		if a.definitionsLast {
			find, objects = findAll(ctx, find, objects)
		}
		for _, obj := range objects {
			found, err := find(ctx, obj)
			if err == nil && read && found.resource != nil {
				found.object, err = found.resource.Get(ctx, found.name, nil)
			}
			if err != nil {
				found = nil
			}
			if !yield(found, err) || ctx.Err() != nil {
				return
			}
		}
		if readErr != nil {
			yield(nil, readErr)
		}
	}
}

// findTarget resolves the resource of a manifest object.
type findTarget func(context.Context, *manifest.Object) (*target, error)

// findAll resolves all resources. It returns a function for looking up the results, and the objects with definitions last.
func findAll(ctx context.Context, find findTarget, objects []*manifest.Object) (findTarget, []*manifest.Object) {
	type result struct {
		target *target
		err    error
	}
	results := map[*manifest.Object]result{}
	var ordered, definitions []*manifest.Object
	for _, obj := range objects {
		found, err := find(ctx, obj)
		results[obj] = result{found, err}
		if obj.GetKind() == "CustomResourceDefinition" {
			definitions = append(definitions, obj)
		} else {
			ordered = append(ordered, obj)
		}
	}
	known := func(_ context.Context, obj *manifest.Object) (*target, error) {
		r := results[obj]
		return r.target, r.err
	}
	return known, append(ordered, definitions...)
}

// readFiles returns the objects of the files matching the label selector, and the errors of broken files.
func (a *objectArgs) readFiles(ctx context.Context, args []string) ([]*manifest.Object, error) {
	if len(args) == 0 && a.all && !a.isLocal {
		return nil, errors.New("setting 'all' parameter but found files")
	}
	objects, readErr := command.ReadFiles(ctx, &a.files, args)
	objects, err := command.SelectFiles(objects, a.selection.LabelSelector)
	if err != nil {
		return nil, err
	}
	return objects, readErr
}

// finder returns a findTarget. It resolves each object to a handle in the object's namespace.
func (a *objectArgs) finder(ctx context.Context, s *command.State) (findTarget, error) {
	if a.isLocal {
		return func(_ context.Context, obj *manifest.Object) (*target, error) {
			return &target{name: obj.GetName(), object: obj.Object, source: obj.Source}, nil
		}, nil
	}
	resolver, err := s.NewFileResolver(ctx)
	if err != nil {
		return nil, err
	}
	namespace, _, err := s.Connection.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, obj *manifest.Object) (*target, error) {
		found, err := resolver.Resolve(ctx, obj)
		if err != nil {
			return nil, err
		}
		return newTarget(found.Resource, found.Object, obj.Source, namespace), nil
	}, nil
}
