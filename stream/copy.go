package stream

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/stream/internal/archive"
	"github.com/anykind/anykind/stream/internal/wsconn"
)

// CopyOptions configures [CopyTo] and [CopyFrom].
type CopyOptions struct {
	// Container is the container with the files; see [ExecOptions].
	Container string
	// OnProgress is called at the start of each file, link and folder, and after each MiB of a file. Calls are sequential, and
	// copying waits for them.
	OnProgress func(CopyProgress)
	// MaxSize limits the total size of the files written by [CopyFrom], in bytes; beyond it CopyFrom returns an error. 0 means no
	// limit. A sparse file counts with its full size.
	MaxSize int64
	// NoPreserve makes [CopyTo] create files with the default permissions of the container's user and the current time.
	NoPreserve bool
}

// CopyProgress is the progress of a copy.
type CopyProgress struct {
	// Path is the path of the file, link or folder relative to the copied root, with slashes; "." for the root.
	Path string
	// Size is a file's size in bytes, and Done its bytes copied so far.
	Size, Done int64
	// Total is the bytes copied so far of all files.
	Total int64
}

// unpackFolder is a shell script that creates the folder $1 and unpacks standard input there: with the archive's permissions, as
// files of the current user. $3 are tar's options. busybox supports them, too.
const unpackFolder = `mkdir -p -- "$1" && exec tar -C "$1" $3 -xof -`

// unpackFile unpacks a file. It first prints whether the file's path is a folder, and unpacks into this folder.
const unpackFile = `if [ -d "$1/$2" ]; then echo folder && exec tar -C "$1/$2" $3 -xof -; fi; echo file && ` + unpackFolder

// maxOutput limits the line printed by unpackFile, in bytes.
const maxOutput = 64

// maxMessage limits the text of a program or node in an error, in bytes.
const maxMessage = 2 << 10

// CopyTo copies a local file or folder with all its content to path in a container: path is its new name, and must not end with a
// slash. If path is an existing folder, a file is copied into it under its local name, and a folder is merged with it. Missing
// parent folders are created. Permissions, times (in seconds) and symbolic links are kept, and existing files are overwritten.
// Anything but files, folders and symbolic links is an error.
//
// The container must have the programs tar, sh and mkdir: CopyTo streams a tar archive. After an error, files already copied
// remain. Errors are as for [Exec], with tar's message.
func CopyTo(ctx context.Context, target Target, name, local, path string, opts *CopyOptions) error {
	return operationError("copy into", target, name, copyTo(ctx, target, name, local, path, opts.orDefault()))
}

// CopyFrom copies a file or folder with all its content from path in a container to local, its new name. The parent folder of
// local must exist. A path to a symbolic link is an error, unless the link points to a folder and path ends with a slash: then
// the folder is copied. Permissions (without setuid, setgid and sticky bits), times of files and symbolic links are kept,
// existing files are overwritten, and a folder is merged with an existing folder. Sockets are skipped, like in tar; pipes and
// devices are errors. Sparse files in the archive stay sparse.
//
// The archive is not trusted: nothing is written outside of local, whatever its names and links. Symbolic links to the outside,
// absolute names, names with .., and names through links are errors. The container must have the program tar. After an error,
// files already copied remain. Errors are as for [Exec], with tar's message.
func CopyFrom(ctx context.Context, target Target, name, path, local string, opts *CopyOptions) error {
	return operationError("copy from", target, name, copyFrom(ctx, target, name, path, local, opts.orDefault()))
}

func (o *CopyOptions) orDefault() *CopyOptions {
	if o == nil {
		return &CopyOptions{}
	}
	return o
}

// unpackOptions returns tar's options for permissions and times. The shell splits them.
func (o *CopyOptions) unpackOptions() string {
	if o.NoPreserve {
		return "--no-same-permissions -m"
	}
	return "-p"
}

// onProgress returns OnProgress for the archive, or nil.
func (o *CopyOptions) onProgress() func(archive.Progress) {
	if o.OnProgress == nil {
		return nil
	}
	return func(p archive.Progress) { o.OnProgress(CopyProgress(p)) }
}

func copyTo(ctx context.Context, target Target, pod, local, remote string, opts *CopyOptions) error {
	folder, name := path.Split(remote)
	if name == "" || name == "." || name == ".." {
		return fmt.Errorf("the path %q must be the copy's own: give it a name at its end, such as %s",
			remote, path.Join(remote, filepath.Base(local)))
	}
	info, err := os.Lstat(local)
	if err != nil {
		return err
	}
	script := unpackFolder
	if !info.IsDir() {
		script = unpackFile
	}
	cmd := Command(ctx, target, pod, "sh", "-c", script, "sh", cmp.Or(folder, "."), name, opts.unpackOptions())
	stderr := &tailBuffer{}
	cmd.Container = opts.Container
	cmd.Stderr = stderr
	stdin, _ := cmd.StdinPipe() // a new command's pipes have no error
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		return err
	}
	output := bufio.NewReaderSize(stdout, maxOutput)
	if !info.IsDir() {
		if line, _, _ := output.ReadLine(); string(line) == "folder" {
			name = filepath.Base(local)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, output) }() // until the command ends
	buffered := bufio.NewWriterSize(stdin, wsconn.MaxMessage)
	localErr := archive.Pack(buffered, local, name, opts.onProgress())
	if localErr == nil {
		localErr = buffered.Flush()
	}
	_ = stdin.Close() // tar reports an incomplete archive
	return firstError(localErr, explainTar(stderr, cmd.Wait()))
}

func copyFrom(ctx context.Context, target Target, pod, remote, local string, opts *CopyOptions) error {
	if remote == "" || local == "" {
		return errors.New("a path is empty")
	}
	folder, name := splitRemote(remote)
	cmd := Command(ctx, target, pod, "tar", "-C", folder, "-cf", "-", "./"+name)
	stderr := &tailBuffer{}
	cmd.Container = opts.Container
	cmd.Stderr = stderr
	stdout, _ := cmd.StdoutPipe() // a new command's pipe has no error
	if err := cmd.Start(); err != nil {
		return err
	}
	localErr := archive.Unpack(ctx, stdout, name, local, opts.MaxSize, opts.onProgress())
	_ = stdout.Close() // ends tar
	return firstError(localErr, explainTar(stderr, cmd.Wait()))
}

// splitRemote returns the folder for tar to change into and the prefix of its entries. Changing into a path with a slash at its
// end follows links.
func splitRemote(remote string) (folder, name string) {
	cleaned := path.Clean(remote)
	folder, name = path.Split(cleaned)
	if name == "" || name == "." || name == ".." {
		return cleaned, "."
	}
	if strings.HasSuffix(remote, "/") {
		return cleaned + "/", "."
	}
	return cmp.Or(folder, "."), name
}

// explainTar adds tar's message to the error of its command.
func explainTar(stderr *tailBuffer, err error) error {
	var exited *ExitError
	if !errors.As(err, &exited) {
		return err
	}
	exited.Stderr = stderr.Bytes()
	switch message := sanitize.Text(string(exited.Stderr), maxMessage); {
	case exited.Code == 127 || exited.Code == 126:
		return fmt.Errorf("%w: the container must have the program tar: %s", err, message)
	case message != "":
		return fmt.Errorf("%w: %s", err, message)
	default:
		return err
	}
}

// firstError returns the cause of a failed copy: the local error, unless it is only a consequence of tar's failure.
func firstError(local, remote error) error {
	if local == nil || (remote != nil && (errors.Is(local, io.ErrClosedPipe) || errors.Is(local, archive.ErrEmpty))) {
		return remote
	}
	return local
}
