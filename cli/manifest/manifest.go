// Package manifest reads the objects of files, folders and standard input, as -f of kubectl does, and finds their
// resources:
//
//	files := manifest.Reader{In: os.Stdin}
//	files.AddFlags(command.Flags(), "that contains the configuration to apply")
//	…
//	objects, err := files.Read(ctx)
//	resolver := manifest.NewResolver(client)
//	ordered, err := manifest.InstallOrder(objects, namespace)
//	for _, obj := range ordered {
//		found, err := resolver.Resolve(ctx, obj)
//		…
//	}
package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/unstructured"
)

// Stdin is the path of standard input.
const Stdin = "-"

const stdinName = "STDIN" // in messages

// Object is an object of a manifest with its position.
type Object struct {
	*unstructured.Object
	// Source is the path of the file, or STDIN.
	Source string
	// Document is the number of the document in the file. Line is the first line of its content. Both count from 1.
	Document, Line int
}

// Position returns the position of the object for errors: "web.yaml: document 3, line 41".
func (o *Object) Position() string {
	return fmt.Sprintf("%s: document %d, line %d", o.Source, o.Document, o.Line)
}

// Reader reads the objects of files, folders and standard input.
type Reader struct {
	// Paths are files, folders, patterns such as "*.yaml", or "-" for In. A folder stands for its .json, .yaml and .yml files, in
	// the order of their names.
	Paths []string
	// Recursive includes the subfolders of folders.
	Recursive bool
	// In is read for the path "-".
	In io.Reader

	kustomize string
}

// AddFlags adds -f, -R and -k. Validate rejects -k with a hint. contents completes the help of -f, such as "containing the
// objects to apply".
func (r *Reader) AddFlags(fs *pflag.FlagSet, contents string) {
	fs.StringSliceVarP(&r.Paths, "filename", "f", r.Paths, "The files "+contents+": files, folders, or - for standard input.")
	fs.BoolVarP(&r.Recursive, "recursive", "R", r.Recursive, "Process the folders used in -f, --filename recursively.")
	fs.StringVarP(&r.kustomize, "kustomize", "k", "", "Not supported: pipe the output of kustomize build to -f -.")
	_ = fs.MarkHidden("kustomize") // the flag exists
}

// IsEmpty reports whether neither -f nor -k was given.
func (r *Reader) IsEmpty() bool { return len(r.Paths) == 0 && r.kustomize == "" }

// Validate rejects -k and repeated standard input. It does not read files.
func (r *Reader) Validate() error {
	stdins := 0
	for _, path := range r.Paths {
		if path == Stdin {
			stdins++
		}
	}
	switch {
	case r.kustomize != "":
		return fmt.Errorf("-k is not supported (run: kustomize build %s | … -f -)", r.kustomize)
	case stdins > 1:
		return errors.New("standard input cannot be used for multiple arguments")
	}
	return nil
}

// Read returns the objects of all files, in order. A file may have several documents of YAML or JSON; lists are replaced by their
// items (see [unstructured.YAMLDecoder]). A missing path, or a folder without manifests, is an error before any file is read. A
// broken file is read up to its error. Read returns the objects before the errors, and the joined errors of all files with file
// name, document and line.
//
// If ctx is done while standard input is read, Read returns. The reading goroutine ends at the end of the input.
func (r *Reader) Read(ctx context.Context) ([]*Object, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	files, err := expandPaths(r.Paths, r.Recursive)
	if err != nil {
		return nil, err
	}
	var all []*Object
	var errs []error
	for _, path := range files {
		objects, err := r.readFile(ctx, path)
		all = append(all, objects...)
		if ctx.Err() != nil {
			return all, context.Cause(ctx)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return all, errors.Join(errs...)
}

func (r *Reader) readFile(ctx context.Context, path string) ([]*Object, error) {
	if path == Stdin {
		return readStdin(ctx, r.In)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	return Decode(path, file)
}

// Decode returns the objects of a stream up to the first error, and the error. source names the stream in errors.
func Decode(source string, in io.Reader) ([]*Object, error) {
	var all []*Object
	decoder := unstructured.NewYAMLDecoder(in)
	for obj, err := range decoder.All() {
		if err != nil {
			return all, fmt.Errorf("%s: %w", source, err)
		}
		document, line := decoder.Position()
		all = append(all, &Object{Object: obj, Source: source, Document: document, Line: line})
	}
	return all, nil
}

// readStdin decodes in until ctx is done: a read of a terminal cannot be interrupted.
func readStdin(ctx context.Context, in io.Reader) ([]*Object, error) {
	if in == nil {
		return nil, errors.New("read -: the program has no standard input (name a file)")
	}
	type result struct {
		objects []*Object
		err     error
	}
	done := make(chan result, 1)
	go func() {
		objects, err := Decode(stdinName, in)
		done <- result{objects, err}
	}()
	select {
	case got := <-done:
		return got.objects, got.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
