package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/anykind/anykind/internal/sanitize"
)

// CopyOptions are those of [CopyTo] and [CopyFrom].
type CopyOptions struct {
	// Container is where the files are; see [ExecOptions].
	Container string
	// Progress is called with each file, link and folder as it begins, and after every MiB of a file. One goroutine
	// calls it, and copying waits for it.
	Progress func(Progress)
	// MaxSize ends [CopyFrom] with an error before the files that it writes exceed so many bytes in all; 0 means no limit.
	// A sparse file, which takes up less than its size, counts with its size.
	MaxSize int64
}

// Progress is how far a copy has come.
type Progress struct {
	// Path is that of the file, link or folder, below what is copied, with slashes; "." for that itself.
	Path string
	// Size is a file's, in bytes, and Done how many of them are copied.
	Size, Done int64
	// Total is how many bytes of all files are copied.
	Total int64
}

// progressEvery is how much of a file is copied between two calls of CopyOptions.Progress.
const progressEvery = 1 << 20

// CopyTo copies a local file or folder, with all that is in it, to path in a container: path is its name there, and
// must not end with a slash. A file whose path is that of a folder is copied into that, under its own name, and a folder
// is merged into one of that name. Folders that path lies in are made where they are missing. Permissions, times, in
// seconds, and symbolic links stay as they are, and what is there already is overwritten. What is neither file, folder
// nor symbolic link is an error.
//
// It streams a tar archive to the program tar, which the container must have; so it does with sh and mkdir. What was
// copied before an error stays. Errors are those of [Exec], with what tar said.
func CopyTo(ctx context.Context, target Target, name, local, path string, opts *CopyOptions) error {
	return onObject("copy into", target, name, copyTo(ctx, target, name, local, path, opts.orDefault()))
}

// CopyFrom copies a file or folder, with all that is in it, from path in a container to local, which is its name here.
// The folder that local lies in must be there. A path that is a symbolic link is an error, unless it leads to a folder and
// ends with a slash: then that folder is copied. Permissions (but for setuid, setgid and sticky bits), times of files and
// symbolic links stay as they are, what is there already is overwritten, and a folder is copied into one of that name.
// Sockets are left out, as tar does; pipes and devices are errors. Files that come as sparse stay so.
//
// The archive is not trusted: nothing is written outside of local, whatever names and links it has, and a symbolic link
// that leads out of what is copied is an error; so are a name that is absolute or holds .., and one that leads through a
// link. The program tar must be in the container. What was copied before an error stays. Errors are those of [Exec],
// with what tar said.
func CopyFrom(ctx context.Context, target Target, name, path, local string, opts *CopyOptions) error {
	return onObject("copy from", target, name, copyFrom(ctx, target, name, path, local, opts.orDefault()))
}

func (o *CopyOptions) orDefault() *CopyOptions {
	if o == nil {
		return &CopyOptions{}
	}
	return o
}

// meter counts what is copied.
type meter struct {
	report func(Progress)
	now    Progress
	told   int64
}

func (m *meter) begin(path string, size int64) {
	m.now.Path, m.now.Size, m.now.Done, m.told = path, size, 0, 0
	if m.report != nil {
		m.report(m.now)
	}
}

// Write counts what goes by.
func (m *meter) Write(data []byte) (int, error) {
	m.now.Done += int64(len(data))
	m.now.Total += int64(len(data))
	if m.report != nil && (m.now.Done-m.told >= progressEvery || m.now.Done == m.now.Size) {
		m.told = m.now.Done
		m.report(m.now)
	}
	return len(data), nil
}

// errNotCopied is what stands in an archive that is not copied.
var errNotCopied = errors.New("it is neither a file, a folder nor a symbolic link")

// entryError names what of an archive an error is about.
func entryError(path string, err error) error {
	var one *fs.PathError
	var two *os.LinkError
	switch {
	case errors.As(err, &one):
		err = fmt.Errorf("%s: %w", one.Op, one.Err) // the names in it are not safe to print
	case errors.As(err, &two):
		err = fmt.Errorf("%s: %w", two.Op, two.Err)
	}
	return fmt.Errorf("%s: %w", quoted(path), err)
}

// quoted returns a name from an archive as errors show it.
func quoted(name string) string { return strconv.Quote(sanitize.Text(name, maxName)) }

// toldBy adds what tar said to why it failed.
func toldBy(stderr *tail, err error) error {
	var exited *ExitError
	if !errors.As(err, &exited) {
		return err
	}
	exited.Stderr = stderr.last()
	switch said := sanitize.Text(string(exited.Stderr), maxMessage); {
	case exited.Code == 127 || exited.Code == 126:
		return fmt.Errorf("%w: the container must have the program tar: %s", err, said)
	case said != "":
		return fmt.Errorf("%w: %s", err, said)
	default:
		return err
	}
}

// firstError is the error that counts of a copy's two sides: that of this side, unless it only shows that the other has
// failed.
func firstError(local, remote error) error {
	if local == nil || (remote != nil && (errors.Is(local, io.ErrClosedPipe) || errors.Is(local, errEmpty))) {
		return remote
	}
	return local
}
