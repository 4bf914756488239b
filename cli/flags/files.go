package flags

import (
	"context"
	"errors"
	"iter"
	"os"
	"slices"
	"sync"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/internal/flagset"
	"github.com/anykind/anykind/unstructured/manifest"
)

// Files has the values of the flags -f, -R and -k, and reads the objects of the files. Set In for standard input.
type Files struct {
	manifest.Reader
	// Kustomize is a folder or URL for the user's program kustomize or kubectl, which writes the objects.
	Kustomize string
}

// AddFlags defines -f, -R and -k in fs, except for flags and shorthands that fs has. contents completes the help of -f, such as
// "containing the objects to apply".
func (f *Files) AddFlags(fs *pflag.FlagSet, contents string) {
	added := pflag.NewFlagSet("", pflag.ContinueOnError)
	added.StringSliceVarP(&f.Paths, "filename", "f", f.Paths, "The files "+contents+": files, folders, URLs, or - for standard input.")
	added.BoolVarP(&f.Recursive, "recursive", "R", f.Recursive, "Process the folders used in -f, --filename recursively.")
	added.StringVarP(&f.Kustomize, "kustomize", "k", f.Kustomize, "A kustomization folder, in place of -f. Runs your program kustomize (kustomize build DIR), or kubectl (kubectl kustomize DIR), found in PATH.")
	flagset.AddMissing(fs, added)
}

// IsEmpty reports whether neither -f nor -k was given.
func (f *Files) IsEmpty() bool { return len(f.Paths) == 0 && f.Kustomize == "" }

// Validate rejects -k together with -f or -R, and what [manifest.Reader.Validate] rejects. It does not read files.
func (f *Files) Validate() error {
	switch {
	case f.Kustomize != "" && len(f.Paths) > 0:
		return errors.New("only one of -f or -k can be specified")
	case f.Kustomize != "" && f.Recursive:
		return errors.New("the -k flag can't be used with -f or -R")
	}
	return f.Reader.Validate()
}

// Read returns the objects of all files, as [manifest.Reader.Read] does, or of the kustomization.
func (f *Files) Read(ctx context.Context) ([]*manifest.Object, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	if f.Kustomize != "" {
		return readKustomization(ctx, f.Kustomize)
	}
	return f.Reader.Read(ctx)
}

// All yields the objects and errors of Read. Regular files are read again each time: memory has one document. Kustomizations, URLs, pipes
// and patterns are read once and kept.
func (f *Files) All(ctx context.Context) iter.Seq2[*manifest.Object, error] {
	if f.Kustomize == "" && !slices.ContainsFunc(f.Paths, isReadOnce) {
		return f.Reader.All(ctx)
	}
	read := sync.OnceValues(func() ([]*manifest.Object, error) { return f.Read(ctx) })
	return func(yield func(*manifest.Object, error) bool) {
		objects, err := read()
		for _, obj := range objects {
			if !yield(obj, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// isReadOnce reports whether a path is neither a regular file nor a folder.
func isReadOnce(path string) bool {
	info, err := os.Stat(path)
	return err != nil || !info.Mode().IsRegular() && !info.IsDir()
}
