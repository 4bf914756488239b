package manifest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"net/http"

	"github.com/anykind/anykind/internal/retry"
)

// Stdin is the path of standard input.
const Stdin = "-"

const stdinName = "STDIN" // in messages

// Reader reads the objects of files, folders, URLs and standard input, as kubectl's -f and -R do.
type Reader struct {
	// Paths are files, folders, patterns such as "*.yaml", http and https URLs, or "-" for In. A folder stands for its .json, .yaml
	// and .yml files, in the order of their names.
	Paths []string
	// Recursive includes the subfolders of folders.
	Recursive bool
	// FS has the files and folders of Paths, such as an embed.FS. nil means the file system of the operating system.
	FS fs.FS
	// In is read for the path "-".
	In io.Reader
	// FieldLines keeps the text of all documents for [Object.FieldLine].
	FieldLines bool
	// Client requests URLs. nil means a client with the default transport, without cookies. Reader sends no credentials: it rejects
	// a URL with a user. It follows at most 10 redirects, which CheckRedirect may reject.
	Client *http.Client
}

// Validate rejects repeated standard input and URLs with a user. It does not read files.
func (r Reader) Validate() error {
	stdins := 0
	for _, path := range r.Paths {
		if path == Stdin {
			stdins++
		}
		if isURL(path) {
			if err := validateURL(path); err != nil {
				return err
			}
		}
	}
	if stdins > 1 {
		return errors.New("standard input cannot be used for multiple arguments")
	}
	return nil
}

// Read returns the objects of all files, in order. A file may have several documents of YAML or JSON; lists are replaced by their
// items (see [unstructured.YAMLDecoder]). A missing path, or a folder without manifests, is an error before any file is read. A
// broken file is read up to its error. Read returns the objects before the errors, and the joined errors of all files with file
// name, document and line.
//
// The body of a URL has at most 64 MiB. Redirects are followed, except from https to http. A failed connection and a status of 500
// or above are retried twice.
//
// If ctx is done while standard input is read, Read returns. The reading goroutine ends at the end of the input.
func (r Reader) Read(ctx context.Context) ([]*Object, error) {
	var all []*Object
	var errs []error
	for obj, err := range r.All(ctx) {
		if err != nil {
			errs = append(errs, err)
		} else {
			all = append(all, obj)
		}
	}
	return all, errors.Join(errs...)
}

// All yields the objects that Read returns, and the error of each broken file after the file's objects. A file is decoded while it
// is read: memory has one document at a time. Standard input and URLs are read before their first object.
func (r Reader) All(ctx context.Context) iter.Seq2[*Object, error] {
	return func(yield func(*Object, error) bool) {
		if err := r.Validate(); err != nil {
			yield(nil, err)
			return
		}
		files, err := expandPaths(r.fileSystem(), r.Paths, r.Recursive)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, path := range files {
			if err := retry.ContextError(ctx); err != nil {
				yield(nil, err)
				return
			}
			var broken error
			for obj, err := range r.objects(ctx, path) {
				if err != nil {
					broken = err
				} else if !yield(obj, nil) {
					return
				}
			}
			if broken != nil && (!yield(nil, retry.WithContextError(ctx, broken)) || ctx.Err() != nil) {
				return
			}
		}
	}
}

// objects yields the objects of a file up to the first error, and the error.
func (r Reader) objects(ctx context.Context, path string) iter.Seq2[*Object, error] {
	return func(yield func(*Object, error) bool) {
		if path != Stdin && !isURL(path) {
			file, err := r.fileSystem().Open(path)
			if err != nil {
				yield(nil, err)
				return
			}
			defer func() { _ = file.Close() }() // only read
			decodeAll(path, file, r.FieldLines)(yield)
			return
		}
		objects, err := r.readStream(ctx, path)
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

// readStream returns the objects of standard input or a URL.
func (r Reader) readStream(ctx context.Context, path string) ([]*Object, error) {
	if path == Stdin {
		return readStdin(ctx, r.In, r.FieldLines)
	}
	return readURL(ctx, r.Client, path, r.FieldLines)
}

// readStdin decodes in until ctx is done: a read of a terminal cannot be interrupted.
func readStdin(ctx context.Context, in io.Reader, withLines bool) ([]*Object, error) {
	if in == nil {
		return nil, errors.New("read -: the program has no standard input (name a file)")
	}
	type result struct {
		objects []*Object
		err     error
	}
	done := make(chan result, 1)
	go func() {
		objects, err := decode(stdinName, in, withLines)
		done <- result{objects, err}
	}()
	select {
	case got := <-done:
		return got.objects, got.err
	case <-ctx.Done():
		return nil, retry.ContextError(ctx)
	}
}
