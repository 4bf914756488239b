package manifest

import (
	"context"
	"errors"
	"io"
	"io/fs"
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
	// a URL with a user.
	Client *http.Client
}

// Validate rejects repeated standard input and URLs with a user. It does not read files.
func (r *Reader) Validate() error {
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
func (r *Reader) Read(ctx context.Context) ([]*Object, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	files, err := expandPaths(r.fileSystem(), r.Paths, r.Recursive)
	if err != nil {
		return nil, err
	}
	var all []*Object
	var errs []error
	for _, path := range files {
		objects, err := r.readFile(ctx, path)
		all = append(all, objects...)
		if ctx.Err() != nil {
			return all, retry.WithContextError(ctx, err)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return all, errors.Join(errs...)
}

func (r *Reader) readFile(ctx context.Context, path string) ([]*Object, error) {
	switch {
	case path == Stdin:
		return readStdin(ctx, r.In, r.FieldLines)
	case isURL(path):
		return readURL(ctx, r.Client, path, r.FieldLines)
	}
	file, err := r.fileSystem().Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	return decode(path, file, r.FieldLines)
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
