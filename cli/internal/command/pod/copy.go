package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/progress"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/stream"
)

// copyOptions are the options of the command cp.
type copyOptions struct {
	*command.State

	container string
	quiet     bool
	// noPreserve sets stream.CopyOptions.NoPreserve: files in the container get default permissions and the current time.
	noPreserve bool
	// retries is the number of retries of a copy from a container after a lost connection. A negative number is unlimited.
	retries int
}

func copyCommand(s *command.State) *cobra.Command {
	o := &copyOptions{State: s}
	cmd := &cobra.Command{
		Use:   "cp <file-spec-src> <file-spec-dest>",
		Short: "Copy files and folders to and from containers",
		Long: "Copy a file, or a folder with all its content, from this machine to a container or back. " +
			"The container must have the program tar.\n\nA file in a container is written as [namespace/]pod:path.",
		Example:               "  anyctl cp ./site web-0:/srv/site\n  anyctl cp shop/web-0:/var/log/app.log ./app.log -c app",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("source and destination are required")
			}
			return o.run(cmd.Context(), args[0], args[1])
		},
	}
	cmd.Flags().StringVarP(&o.container, "container", "c", "", "Container name. If omitted, use the pod's default container")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "Show no progress")
	cmd.Flags().BoolVar(&o.noPreserve, "no-preserve", false, "The copied file/directory's ownership and permissions will not be preserved in the container")
	cmd.Flags().IntVar(&o.retries, "retries", 0, "Set number of retries to complete a copy operation from a container. Specify 0 to disable or any negative value for infinite retrying. The default is 0 (no retry).")
	return cmd
}

// fileSpec is a local file or, with a pod, a file in a container.
type fileSpec struct{ namespace, pod, path string }

var errFileSpec = errors.New("filespec must match the canonical format: [[namespace/]pod:]file/path")

// parseFileSpec parses [[namespace/]pod:]path. On Windows a single letter before the colon is a drive.
func parseFileSpec(text string) (fileSpec, error) {
	pod, file, isRemote := strings.Cut(text, ":")
	if !isRemote || runtime.GOOS == "windows" && len(pod) == 1 {
		return fileSpec{path: text}, nil
	}
	parts := strings.Split(pod, "/")
	switch {
	case pod == "" || len(parts) > 2:
		return fileSpec{}, errFileSpec
	case len(parts) == 2:
		return fileSpec{namespace: parts[0], pod: parts[1], path: file}, nil
	}
	return fileSpec{pod: pod, path: file}, nil
}

func (o *copyOptions) run(ctx context.Context, source, destination string) error {
	from, err := parseFileSpec(source)
	if err != nil {
		return err
	}
	to, err := parseFileSpec(destination)
	switch {
	case err != nil:
		return err
	case from.pod != "" && to.pod != "":
		return errors.New("one of src or dest must be a local file specification")
	case from.path == "" || to.path == "":
		return errors.New("filepath can not be empty")
	case from.pod == "" && to.pod == "":
		return errors.New("one of src or dest must be a remote file specification")
	}
	remote := from
	if to.pod != "" {
		remote = to
		if _, err := os.Stat(from.path); err != nil {
			return fmt.Errorf("%s doesn't exist in local filesystem", from.path)
		}
	}
	pods, err := o.Connection.Handle(ctx, "pods")
	if err != nil {
		return err
	}
	if remote.namespace != "" {
		pods = pods.Namespace(remote.namespace)
	}
	obj, err := pods.Get(ctx, remote.pod, nil)
	if err != nil {
		return err
	}
	if err := rejectEnded(obj, "exec into"); err != nil {
		return err
	}
	if o.container, err = chooseContainer(obj, o.container, o.Errorf); err != nil {
		return err
	}
	return o.copy(ctx, pods, from, to)
}

// copy copies to or from a container, and shows the progress unless quiet is set.
func (o *copyOptions) copy(ctx context.Context, pods *dynamic.Resource, from, to fileSpec) error {
	opts := &stream.CopyOptions{Container: o.container, NoPreserve: o.noPreserve}
	if !o.quiet {
		display := progress.New(o.Err)
		defer display.Close()
		opts.OnProgress = func(p stream.CopyProgress) {
			display.Update("copy", "%s: %s of %s, %s in all", p.Path, sizeText(p.Done), sizeText(p.Size), sizeText(p.Total))
		}
	}
	if to.pod == "" {
		return o.copyFrom(ctx, pods, from, to.path, opts)
	}
	destination := to.path
	if o.isFolder(ctx, pods, to.pod, destination) {
		base := filepath.Base(filepath.Clean(from.path))
		if base == "." || base == ".." {
			resolved, err := filepath.Abs(from.path)
			if err != nil {
				return err
			}
			base = filepath.Base(resolved)
		}
		if base != string(filepath.Separator) {
			destination = path.Join(destination, base)
		}
	}
	return commandError(stream.CopyTo(ctx, pods, to.pod, from.path, strings.TrimRight(destination, "/"), opts))
}

// copyFrom copies to a local path. A file is copied into an existing folder.
func (o *copyOptions) copyFrom(ctx context.Context, pods *dynamic.Resource, from fileSpec, local string, opts *stream.CopyOptions) error {
	if info, err := os.Stat(local); err == nil && info.IsDir() && !o.isFolder(ctx, pods, from.pod, from.path) {
		local = filepath.Join(local, path.Base(from.path))
	}
	for attempt := 0; ; attempt++ {
		err := stream.CopyFrom(ctx, pods, from.pod, from.path, local, opts)
		if err == nil || attempt == o.retries || ctx.Err() != nil || !isLost(err) {
			return commandError(err)
		}
		o.Errorf("Warning: the connection was lost, the copy begins again: %v", err)
	}
}

// isLost reports whether a copy failed because the connection broke or could not be opened.
func isLost(err error) bool {
	var network *net.OpError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network)
}

// isFolder reports whether a path in the container is a folder. It ignores errors: the copy fails with the same cause.
func (o *copyOptions) isFolder(ctx context.Context, pods *dynamic.Resource, pod, path string) bool {
	cmd := stream.Command(ctx, pods, pod, "test", "-d", path)
	cmd.Container = o.container
	return cmd.Run() == nil
}

// commandError converts a failure of tar in the container to an ExitError with tar's exit code.
func commandError(err error) error {
	var ended *stream.ExitError
	if errors.As(err, &ended) {
		return &exit.Error{Code: ended.Code, Err: err}
	}
	return err
}

// sizeText formats a number of bytes, such as 1.5 MiB.
func sizeText(bytes int64) string {
	const unit = 1024
	if bytes < unit {
		return fmt.Sprintf("%d B", bytes)
	}
	value := float64(bytes) / unit
	suffix := 0
	for value >= unit && suffix < len("KMGT")-1 {
		value /= unit
		suffix++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGT"[suffix])
}
