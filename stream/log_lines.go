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

const (
	// maxLine is how long a LogLine's text may become.
	maxLine = 1 << 20
	// maxShownErrors is how many of many errors an error names.
	maxShownErrors = 5
)

// LogSource is one run of a container, which has a log of its own.
type LogSource struct {
	Namespace, Pod, Container string
	// Node is the pod's node, and Labels are the pod's when it was read. They are shared: do not change them.
	Node   string
	Labels map[string]string
	// Field is the field of the pod's spec that has the container: "initContainers", "containers" or "ephemeralContainers".
	Field string
	// Restarts is how often the container was restarted before.
	Restarts int
	// IsDefault reports that the container is the one of its pod that [Logs] reads where none is named.
	IsDefault bool
}

// LogLine is one line of a log and its source.
type LogLine struct {
	LogSource
	// Time is the time at which the container runtime received the line; zero for an error of the node in place of a line.
	Time time.Time
	// Text has no line break. A line longer than 1 MiB is split.
	Text string
}

// LogLines reads the logs of all containers, or of those named Container, of several pods: those that Selector matches, in the
// handle's namespace or in all, or with Name those of one pod or of the service or workload of that name; the handle is then on
// services, deployments and so on. Nil options read everything that exists. Containers that have not begun to run are skipped;
// a Container that no pod has is an error.
//
// Without Follow the logs are read one after the other. With Follow they are read concurrently, and containers that begin to
// run later, after a restart or in a new pod, are added with all their lines, until ctx ends, the caller leaves the loop, or no
// log can be read. The log of a deleted pod ends shortly after the deletion, at most a minute. Lines of one container keep
// their order, are not repeated, and are lost only as described at [Logs]. A slow loop body makes the logs wait.
//
// [LogOptions].Filter narrows the containers further; OnStart and OnEnd report those that join and leave. A container whose log
// cannot be read, or not to its end, does not stop the others: see OnError. The error, if any, comes last.
//
// The user needs the RBAC verbs get and list on pods, with Follow also watch, and get on pods/log; for a service or workload
// also get on that.
func LogLines(ctx context.Context, target Target, opts *LogOptions) iter.Seq2[LogLine, error] {
	if opts == nil {
		opts = &LogOptions{}
	}
	return func(yield func(LogLine, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		emit := func(line LogLine) bool { return yield(line, nil) }
		pods, err := newLogPods(ctx, target, opts)
		switch {
		case err != nil:
		case opts.Follow && !opts.Previous:
			err = followLines(ctx, pods, opts, emit)
		default:
			err = readLines(ctx, pods, opts, emit)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(LogLine{}, fmt.Errorf("read logs: %w", err))
		}
	}
}

// errStopped is the error of a consumer that needs no more lines.
var errStopped = errors.New("the loop was left")

// readLines reads one log after the other.
func readLines(ctx context.Context, pods *logPods, opts *LogOptions, emit func(LogLine) bool) error {
	list, err := pods.list(ctx)
	if err == nil {
		err = list.check(opts, pods)
	}
	if err != nil {
		return err
	}
	var failures logErrors
	succeeded := 0
	for _, pod := range list.Items {
		for _, container := range pod.containerStatuses() {
			source := newLogSource(&pod, &container)
			if opts.Previous && container.RestartCount == 0 || !opts.selects(&container, source) {
				continue
			}
			if opts.OnStart != nil {
				opts.OnStart(source)
			}
			err := emitLines(pods.log(ctx, &pod, &container, opts), source, emit)
			if errors.Is(err, errStopped) || ctx.Err() != nil {
				return err
			}
			reason, failure := endOf(source, err)
			opts.notifyEnd(source, reason, failure)
			if failure != nil {
				failures.add(failure)
			} else if reason == endComplete {
				succeeded++
			}
		}
	}
	if opts.OnError != nil && succeeded > 0 {
		return nil
	}
	return failures.err()
}

// selects reports whether a container's log exists and is requested.
func (o *LogOptions) selects(container *containerStatus, source LogSource) bool {
	return container.hasLog() && (o.Container == "" || o.Container == container.Name) && (o.Filter == nil || o.Filter(source))
}

func newLogSource(pod *pod, container *containerStatus) LogSource {
	chosen, err := pod.defaultContainer()
	return LogSource{
		Namespace: pod.Metadata.Namespace, Pod: pod.Metadata.Name, Container: container.Name, Node: pod.Spec.NodeName,
		Labels: pod.Metadata.Labels, Field: container.field, Restarts: container.RestartCount,
		IsDefault: err == nil && container.Name == chosen,
	}
}

// The reasons of LogOptions.OnEnd.
const (
	endComplete = "Complete"
	endRemoved  = "PodRemoved"
	endFailed   = "Failed"
)

// endOf returns how the reading of a log ended that returned err. The end of a deleted pod's is an error if lines are lost.
func endOf(source LogSource, err error) (reason string, failure error) {
	isGone := errors.Is(err, errPodGone) || apierrors.IsNotFound(err)
	switch {
	case err == nil:
		return endComplete, nil
	case isGone && !errors.Is(err, io.ErrUnexpectedEOF):
		return endRemoved, nil
	default:
		return endFailed, fmt.Errorf("pod %q, container %q: %w", source.Pod, source.Container, err)
	}
}

func (o *LogOptions) notifyEnd(source LogSource, reason string, failure error) {
	if failure != nil && o.OnError != nil {
		o.OnError(source, failure)
	}
	if o.OnEnd != nil {
		o.OnEnd(source, reason)
	}
}

func emitLines(log *containerLog, source LogSource, emit func(LogLine) bool) error {
	defer log.disconnect()
	line := LogLine{LogSource: source}
	var text strings.Builder
	flush := func() bool {
		line.Text = strings.TrimSuffix(text.String(), "\n")
		text.Reset()
		return emit(line)
	}
	for {
		piece, err := log.next()
		if err == io.EOF { //nolint:errorlint // itself: the log's end
			if text.Len() > 0 && !flush() {
				return errStopped
			}
			return nil
		}
		if err != nil {
			return err
		}
		line.Time = piece.stamp
		text.Write(piece.text)
		isWhole := len(piece.text) > 0 && piece.text[len(piece.text)-1] == '\n'
		if (isWhole || text.Len() >= maxLine) && !flush() {
			return errStopped
		}
	}
}

// logErrors collects the errors of containers whose logs cannot be read.
type logErrors struct {
	joined error // the first maxShownErrors
	count  int
}

func (e *logErrors) add(err error) {
	e.count++
	switch {
	case e.count == 1:
		e.joined = err
	case e.count <= maxShownErrors:
		e.joined = fmt.Errorf("%w; %w", e.joined, err)
	}
}

func (e *logErrors) err() error {
	if e.count > maxShownErrors {
		return fmt.Errorf("%w; and %d more", e.joined, e.count-maxShownErrors)
	}
	return e.joined
}
