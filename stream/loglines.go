package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Line is one line of a log and where it comes from.
type Line struct {
	Namespace, Pod, Container string
	// Time is when the container runtime took the line; zero for what is no line of the log but an error of the node.
	Time time.Time
	// Text is without the line break. A line longer than 1 MiB comes in several.
	Text string
}

// maxLine is how long a Line's text may become.
const maxLine = 1 << 20

// LogLines reads the logs of all containers, or of those named Container, of pods: those that the Selector matches, in
// the handle's namespace or in all, or with Name those of one pod, or of what a service or a workload of that name
// selects; the handle is then one on services, deployments and so on. Nil options mean all that is there. Containers that
// have not begun to run are left out; a Container that no pod has is an error.
//
// Without Follow one log comes after the other. With Follow all are read at once, and containers that begin to run
// later, after a restart or in a new pod, join them with all their lines; it ends with ctx, by leaving the loop, or when
// no log can be read. The log of a deleted pod ends a moment after the deletion, at most a minute. Lines of one container
// keep their order, come once, and none is lost as [Logs] says. A loop that takes its time makes the logs wait.
//
// A container whose log cannot be read, or not to its end, does not keep the others from being read: see
// [LogOptions].OnError. The error, if any, comes last.
//
// The user needs the RBAC verbs get and list on pods, with Follow also watch, and get on pods/log; for a service or
// workload also get on that.
func LogLines(ctx context.Context, target Target, opts *LogOptions) iter.Seq2[Line, error] {
	if opts == nil {
		opts = &LogOptions{}
	}
	return func(yield func(Line, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		err := eachLogLine(ctx, target, opts, func(line Line) bool { return yield(line, nil) })
		if err != nil && !errors.Is(err, errLeft) {
			yield(Line{}, fmt.Errorf("read logs: %w", err))
		}
	}
}

func eachLogLine(ctx context.Context, target Target, opts *LogOptions, give func(Line) bool) error {
	source, err := sourceOfLogs(ctx, target, opts)
	if err != nil {
		return err
	}
	if opts.Follow && !opts.Previous {
		return followLines(ctx, source, opts, give)
	}
	return readLines(ctx, source, opts, give)
}

// errLeft is a loop that was left.
var errLeft = errors.New("the loop was left")

// readLines reads one log after the other.
func readLines(ctx context.Context, source *podSource, opts *LogOptions, give func(Line) bool) error {
	list, err := source.list(ctx)
	if err == nil {
		err = list.check(opts, source)
	}
	if err != nil {
		return err
	}
	failures, read := &logFailures{opts: opts}, 0
	for _, pod := range list.Items {
		for _, container := range pod.containers() {
			if !opts.wants(&container) || (opts.Previous && container.RestartCount == 0) {
				continue
			}
			from := sourceOf(&pod, &container)
			err := eachLine(source.stream(ctx, &pod, &container, opts), from, give)
			switch {
			case err == nil:
				read++
			case errors.Is(err, errLeft) || ctx.Err() != nil:
				return err
			case !apierrors.IsNotFound(err): // the pod may have been deleted since
				failures.add(from, err)
			}
		}
	}
	if opts.OnError != nil && read > 0 {
		return nil
	}
	return failures.err()
}

// wants says whether a container's log is asked for, and there.
func (o *LogOptions) wants(container *containerParts) bool {
	return container.hasLog() && (o.Container == "" || o.Container == container.Name)
}

// sourceOf is a line without its text.
func sourceOf(pod *podParts, container *containerParts) Line {
	return Line{Namespace: pod.Metadata.Namespace, Pod: pod.Metadata.Name, Container: container.Name}
}

// eachLine gives a log's lines to its end.
func eachLine(stream *logStream, from Line, give func(Line) bool) error {
	defer stream.hangUp()
	var text strings.Builder
	line := from
	flush := func() bool {
		line.Text = strings.TrimSuffix(text.String(), "\n")
		text.Reset()
		return give(line)
	}
	for {
		next, err := stream.next()
		if err == io.EOF { //nolint:errorlint // itself: the log's end
			if text.Len() > 0 && !flush() {
				return errLeft
			}
			return nil
		}
		if err != nil {
			return err
		}
		line.Time = next.stamp
		text.Write(next.text)
		whole := len(next.text) > 0 && next.text[len(next.text)-1] == '\n'
		if (whole || text.Len() >= maxLine) && !flush() {
			return errLeft
		}
	}
}
