package flags

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/internal/flagset"
	"github.com/anykind/anykind/unstructured/manifest"
)

// Files has the values of the flags -f, -R and -k, and reads the objects of the files. Set In for standard input.
type Files struct {
	manifest.Reader
	kustomize string
}

// AddFlags defines -f, -R and -k in fs, except for flags and shorthands that fs has. Validate rejects -k with a hint. contents completes the help of -f, such as "containing the
// objects to apply".
func (f *Files) AddFlags(fs *pflag.FlagSet, contents string) {
	added := pflag.NewFlagSet("", pflag.ContinueOnError)
	added.StringSliceVarP(&f.Paths, "filename", "f", f.Paths, "The files "+contents+": files, folders, URLs, or - for standard input.")
	added.BoolVarP(&f.Recursive, "recursive", "R", f.Recursive, "Process the folders used in -f, --filename recursively.")
	added.StringVarP(&f.kustomize, "kustomize", "k", "", "Not supported: pipe the output of kustomize build to -f -.")
	_ = added.MarkHidden("kustomize") // the flag exists
	flagset.AddMissing(fs, added)
}

// IsEmpty reports whether neither -f nor -k was given.
func (f *Files) IsEmpty() bool { return len(f.Paths) == 0 && f.kustomize == "" }

// Validate rejects -k, and what [manifest.Reader.Validate] rejects. It does not read files.
func (f *Files) Validate() error {
	if f.kustomize != "" {
		return fmt.Errorf("-k is not supported (run: kustomize build %s | … -f -)", f.kustomize)
	}
	return f.Reader.Validate()
}

// Read returns the objects of all files, as [manifest.Reader.Read] does.
func (f *Files) Read(ctx context.Context) ([]*manifest.Object, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	return f.Reader.Read(ctx)
}
