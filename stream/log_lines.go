package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

const (
	// maxLine limits a LogLine's text, in bytes.
	maxLine = 1 << 20
	// maxShownErrors limits the errors listed in an error.
	maxShownErrors = 5
)

// LogSource is a run of a container. Each run has its own log.
type LogSource struct {
	Namespace, Pod, Container string
	// Node and Labels are the pod's, as of its last read. They are shared: do not change them.
	Node   string
	Labels map[string]string
	// Field is the container's field in the pod's spec: "initContainers", "containers" or "ephemeralContainers".
	Field string
	// Restarts is the number of restarts before this run.
	Restarts int
	// IsDefault reports that the container is the pod's default container for [Logs].
	IsDefault bool
}

// String returns namespace, pod and container: shop/web-0/app.
func (s LogSource) String() string { return s.Namespace + "/" + s.Pod + "/" + s.Container }

// LogLine is a line of a log and its source.
type LogLine struct {
	LogSource
	// Time is the time at which the container runtime received the line; zero for an error of the node in place of a line.
	Time time.Time
	// Text has no line break. A line longer than 1 MiB is split.
	Text string
}

// String returns the source and the text: shop/web-0/app: listening on :8080.
func (l LogLine) String() string { return l.LogSource.String() + ": " + l.Text }

// LogLines reads the logs of all containers, or of containers named Container, of several pods. Selector or Name chooses the
// pods. Selector matches pods in the handle's namespace or in all namespaces. Name is a pod, service or workload; the handle is
// then on pods, services, deployments and so on. Nil options read all existing lines. Containers that have not begun to run are
// skipped; it is an error if no pod has the Container.
//
// Without Follow the logs are read in sequence. With Follow they are read concurrently. Containers that begin to run later, after
// a restart or in a new pod, are added with all their lines, until ctx ends, the caller leaves the loop, or no log can be read.
// The log of a deleted pod ends shortly after the deletion, at most a minute. Lines of a container keep their order, are not
// repeated, and are lost only as described at [Logs]. A slow loop body makes the logs wait.
//
// [LogOptions].Filter narrows the containers further; OnStart and OnEnd report joining and leaving containers. An unreadable or
// incomplete log does not stop the remaining logs: see OnError. The error, if any, comes last.
//
// The user needs the RBAC verbs get and list on pods, with Follow also watch, and get on pods/log. A service or workload needs
// get on its resource, too.
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

// errStopped is the error of a stopped consumer.
var errStopped = errors.New("the loop was left")

// readLines reads the logs in sequence.
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
			if errors.Is(err, errStopped) || err != nil && ctx.Err() != nil {
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

// endOf returns the reason for a log's end with err. For a deleted pod it is an error if lines are lost.
func endOf(source LogSource, err error) (reason string, failure error) {
	switch {
	case err == nil:
		return endComplete, nil
	case errors.Is(err, errPodGone) && !errors.Is(err, io.ErrUnexpectedEOF):
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

// logErrors collects the errors of unreadable logs.
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
