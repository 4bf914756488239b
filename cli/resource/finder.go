// Package resource finds the objects that a command line names by arguments, selectors and files, as kubectl's commands do.
//
//	finder := &resource.Finder{Connection: connection}
//	finder.AddFlags(cmd.Flags())
//	…
//	for info, err := range finder.Objects(ctx, args) {
package resource

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/flagset"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// Finder finds objects. Set Connection, and bind the remaining fields to flags or set them. Non-empty Files replace the arguments.
type Finder struct {
	Connection *flags.Connection
	Selection  flags.Selection
	Files      flags.Files
	// All is the value of --all: a type without names means all its objects.
	All bool
	// RejectNamesWithAll makes names and selectors together with All an error, as in kubectl delete.
	RejectNamesWithAll bool
	// AllowTypes accepts a type without names, selectors and All for all its objects, as kubectl get does.
	AllowTypes bool
	// DefinitionsLast finds the resources of all objects in files first, and yields CustomResourceDefinitions last: deleting a
	// definition deletes its objects.
	DefinitionsLast bool
	// Where is the value of --where: a jq expression that must hold for an object, in the server's version. Without names it selects
	// objects of a type, as selectors do. With names and files, other objects are left out.
	Where string
	// Local sends no request. The objects are those of Files.
	Local bool
}

// AddFlags defines -f, -R, -l, --field-selector, --where, -A and --all. Flags and shorthands of fs and of without are left out, as
// [flags.Connection.AddFlags] does.
func (f *Finder) AddFlags(fs *pflag.FlagSet, without ...string) {
	flagset.Define(fs, func(fs *pflag.FlagSet) {
		f.Files.AddFlags(fs, "identifying the resource")
		f.Selection.AddFlags(fs)
		f.AddWhereFlag(fs)
		f.AddAllFlag(fs)
	}, without...)
}

// AddWhereFlag defines --where, unless fs has it.
func (f *Finder) AddWhereFlag(fs *pflag.FlagSet) {
	flagset.Define(fs, func(fs *pflag.FlagSet) {
		fs.StringVar(&f.Where, "where", f.Where, "Select only objects for which this jq expression holds (e.g. '.spec.replicas > 1').")
	})
}

// AddAllFlag defines --all, unless fs has it.
func (f *Finder) AddAllFlag(fs *pflag.FlagSet) {
	flagset.Define(fs, func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.All, "all", f.All, "Select all resources, in the namespace of the specified resource types.")
	})
}

// Info is a found object.
type Info struct {
	// Resource is a handle in the object's namespace. It is nil for local objects.
	Resource *dynamic.Resource
	Name     string
	// Namespace is the object's namespace, or "" for a cluster-scoped object.
	Namespace string
	// Object is the server's version or, if not read, the manifest. It is nil for an unread object selected by name.
	Object *unstructured.Object
	// Source is the manifest file, or "".
	Source string
}

// String returns the object in the form of messages: deployments.apps "web".
func (i *Info) String() string {
	if i.Resource == nil {
		return fmt.Sprintf("%s %q", i.Object.GetKind(), i.Name)
	}
	return fmt.Sprintf("%s %q", i.Resource, i.Name)
}

// Objects yields the objects of the arguments TYPE[,TYPE] [NAME…] or TYPE/NAME…, or of Files. It continues after errors unless ctx
// is done. An error has an Info without Object, or a nil Info if the name is unknown. With read, each object is read from the server.
func (f *Finder) Objects(ctx context.Context, args []string, read bool) iter.Seq2[*Info, error] {
	if !f.Files.IsEmpty() {
		return f.fromFiles(ctx, args, read)
	}
	return f.fromArgs(ctx, args, read)
}

func (f *Finder) fromArgs(ctx context.Context, args []string, read bool) iter.Seq2[*Info, error] {
	return func(yield func(*Info, error) bool) {
		targets, err := f.Targets(ctx, args)
		if err != nil {
			yield(nil, err)
			return
		}
		namespace, _, err := f.Connection.Namespace(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		where, err := print.ParseWhere(f.Where)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, t := range targets {
			if t.Name != "" && !read && where == nil {
				if !yield(named(t.Resource, t.Name, namespace), nil) {
					return
				}
				continue
			}
			for obj, err := range t.Objects(ctx, f.Selection.ListOptions()) {
				info := newInfo(t.Resource, obj, "", namespace)
				if err != nil && t.Name != "" {
					info = named(t.Resource, t.Name, namespace)
				}
				if info, err = filter(where, info, err); info == nil && err == nil {
					continue
				}
				if !yield(info, err) {
					return
				}
			}
		}
	}
}

// filter returns nil for an object without the condition. An error of the condition has an Info without Object.
func filter(where *print.Where, info *Info, err error) (*Info, error) {
	if err != nil || where == nil {
		return info, err
	}
	keep, err := where.Match(info.Object)
	switch {
	case err != nil:
		info.Object = nil
		return info, err
	case !keep:
		return nil, nil
	}
	return info, nil
}

// newInfo returns the Info of obj, or nil for nil. namespace is the default for an object without a namespace.
func newInfo(resource *dynamic.Resource, obj *unstructured.Object, source, namespace string) *Info {
	if obj == nil {
		return nil
	}
	if own := obj.GetNamespace(); own != "" {
		namespace = own
	}
	info := named(In(resource, obj), obj.GetName(), namespace)
	info.Object = obj
	info.Source = source
	return info
}

func named(resource *dynamic.Resource, name, namespace string) *Info {
	if !resource.APIResource().Namespaced {
		namespace = ""
	}
	return &Info{Resource: resource, Name: name, Namespace: namespace}
}

func (f *Finder) fromFiles(ctx context.Context, args []string, read bool) iter.Seq2[*Info, error] {
	return func(yield func(*Info, error) bool) {
		objects, readErr := f.Manifests(ctx, args)
		find, err := f.finder(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		where, err := print.ParseWhere(f.Where)
		if err != nil {
			yield(nil, err)
			return
		}
		read = read || where != nil
		if f.DefinitionsLast {
			find, objects = findAll(ctx, find, objects)
		}
		for _, obj := range objects {
			if ctx.Err() != nil {
				yield(nil, contextError(ctx))
				return
			}
			info, err := find(ctx, obj)
			if err == nil && read && info.Resource != nil {
				info.Object, err = info.Resource.Get(ctx, info.Name, nil)
				err = getError(ctx, info.Resource, err)
			}
			if err != nil {
				info = nil
			}
			if info, err = filter(where, info, err); info == nil && err == nil {
				continue
			}
			if !yield(info, err) || err != nil && ctx.Err() != nil {
				return
			}
		}
		if readErr != nil {
			yield(nil, readErr)
		}
	}
}

// findFunc finds the resource of a manifest object.
type findFunc func(context.Context, *manifest.Object) (*Info, error)

// findAll finds all resources. It returns a function for looking up the results, and the objects with definitions last.
func findAll(ctx context.Context, find findFunc, objects []*manifest.Object) (findFunc, []*manifest.Object) {
	type result struct {
		info *Info
		err  error
	}
	results := map[*manifest.Object]result{}
	var ordered, definitions []*manifest.Object
	for _, obj := range objects {
		info, err := find(ctx, obj)
		results[obj] = result{info, err}
		if obj.GetKind() == "CustomResourceDefinition" {
			definitions = append(definitions, obj)
		} else {
			ordered = append(ordered, obj)
		}
	}
	known := func(_ context.Context, obj *manifest.Object) (*Info, error) {
		r := results[obj]
		return r.info, r.err
	}
	return known, append(ordered, definitions...)
}

// finder returns a findFunc. It finds a handle in the namespace of each object.
func (f *Finder) finder(ctx context.Context) (findFunc, error) {
	if f.Local {
		return func(_ context.Context, obj *manifest.Object) (*Info, error) {
			return &Info{Name: obj.GetName(), Object: obj.Object, Source: obj.Source}, nil
		}, nil
	}
	resolver, err := NewResolver(ctx, f.Connection)
	if err != nil {
		return nil, err
	}
	return resolver.Resolve, nil
}

// Manifests returns the objects in Files that match the label selector, and the errors of broken files.
func (f *Finder) Manifests(ctx context.Context, args []string) ([]*manifest.Object, error) {
	if len(args) == 0 && f.All && !f.Local {
		return nil, errors.New("setting 'all' parameter but found files")
	}
	objects, readErr := ReadFiles(ctx, &f.Files, args)
	objects, err := SelectFiles(objects, f.Selection.LabelSelector)
	if err != nil {
		return nil, err
	}
	return objects, readErr
}
